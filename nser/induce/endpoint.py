"""An OpenAI-compatible endpoint: OpenAI itself, vLLM, Ollama, llama.cpp, and whatever else speaks chat completions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from nser.induce.cassette import Call, Reply
from nser.induce.model import (
    ModelError,
    NoAnswerError,
    QuotaError,
    RateLimitedError,
    RefusalError,
    RefusedCallError,
    TimedOutError,
    TooLongError,
    UnreachableError,
)
from nser.induce.summary import estimate_tokens
from nser.rules.grammar import Engine

Constraint = Literal["auto", "lark-tool", "structured-outputs", "llguidance", "none"]

DIALECTS: dict[Constraint, Engine | None] = {
    "lark-tool": "openai",
    "structured-outputs": "openai",
    "llguidance": "llguidance",
    "none": None,
}
KEY_VARIABLE = "OPENAI_API_KEY"
CANARY = "zq7"
TOOL = "write_rules"


@dataclass(frozen=True)
class EndpointSettings:
    """How an endpoint is asked.

    timeout:     seconds for one call
    retries:     how often a call that may succeed later is asked again
    longest_pause: seconds; a server that asks for more (`Retry-After`) is taken at its word, and the call fails
    constraint:  how the grammar is sent: OpenAI's custom Lark tool, vLLM's structured outputs, llama.cpp's grammar
                 field, not at all, or as a canary finds out
    """

    timeout: float = 120.0
    retries: int = 2
    longest_pause: float = 30.0
    constraint: Constraint = "auto"


class ChatEndpoint:
    """Chat completions over HTTP by the `openai` client; the key is read from the environment and kept nowhere else."""

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        settings: EndpointSettings | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        from openai import OpenAI

        key = os.environ.get(KEY_VARIABLE)
        if key is None and base_url is None:
            raise RefusedCallError(f"found no {KEY_VARIABLE} in the environment, which openai:{model} needs; set it")
        self.model = model
        self.name = f"openai:{model}" if base_url is None else f"{base_url}#{model}"
        self.settings = settings or EndpointSettings()
        self.enforced: bool | None = None
        self._pause = pause
        self._hosted = base_url is None
        # Retries are ours: the client's own would neither know a spent quota nor tell anybody that they happen.
        self._client = OpenAI(api_key=key or "none", base_url=base_url, timeout=self.settings.timeout, max_retries=0)
        self._constraint: Constraint = self.settings.constraint

    def engine(self) -> Engine | None:
        """The dialect of grammar that the server enforces, found out by a canary once; None where it enforces none."""
        if self._constraint == "auto":
            self._constraint = self._find_constraint()
        return DIALECTS.get(self._constraint)

    def complete(self, call: Call) -> Reply:
        """Ask, and ask again where that may help; raises the `ModelError` that says what happened."""
        if call.grammar:
            self.engine()
        return self._persist(call, self._constraint if call.grammar else "none")

    def count_tokens(self, text: str) -> int:
        """An estimate: an endpoint does not lend its tokenizer."""
        return estimate_tokens(text)

    def _find_constraint(self) -> Constraint:
        """The first way of sending a grammar that the server obeys, told by a canary; none if it obeys no one.

        `auto`, to be found out another time, where the server broke down over the question.
        """
        broke = False
        ways: tuple[Constraint, ...] = ("lark-tool",) if self._hosted else ("structured-outputs", "llguidance")
        for way in ways:
            canary = Call(
                self.model,
                ({"role": "user", "content": "Say hello."},),
                {"max_tokens": 16, "temperature": 0.0},
                f'%llguidance {{}}\nstart: "{CANARY}"\n' if way == "llguidance" else f'start: "{CANARY}"\n',
            )
            try:
                if self._ask(canary, way).text.strip() == CANARY:
                    self.enforced = True
                    return way
            except RefusedCallError:
                continue  # a server that does not know the field may well say so
            except NoAnswerError:
                continue
            except UnreachableError:
                broke = True
        if broke:
            return "auto"
        self.enforced = False
        return "none"

    def _persist(self, call: Call, way: Constraint) -> Reply:
        for attempt in range(self.settings.retries + 1):
            try:
                return self._ask(call, way)
            except ModelError as error:
                last = attempt == self.settings.retries
                if error.fatal or last or isinstance(error, RefusalError | NoAnswerError):
                    raise
                asked = getattr(error, "retry_after", None)
                pause = asked if asked is not None else 2.0**attempt
                if pause > self.settings.longest_pause:
                    raise
                self._pause(pause)
        raise AssertionError("unreachable")

    def _ask(self, call: Call, way: Constraint) -> Reply:
        import openai

        try:
            answer = self._client.chat.completions.create(
                model=self.model,
                messages=[dict(message) for message in call.messages],  # type: ignore[misc]
                **dict(call.sampling),
                **_constrained(way, call.grammar),
            )
        except openai.APITimeoutError as error:
            raise TimedOutError(
                f"{self.name} gave no answer in {self.settings.timeout:g} s; allow more time or ask a faster model"
            ) from error
        except openai.APIConnectionError as error:
            raise UnreachableError(f"nobody answers at {self.name}; start the server or correct the address") from error
        except openai.APIStatusError as error:
            raise _refused(self.name, error) from error
        except (openai.APIError, ValueError, TypeError, AttributeError) as error:
            raise NoAnswerError(f"{self.name} answered with no chat completion; is this address an API?") from error
        return _read(self.name, answer)


def _constrained(way: Constraint, grammar: str) -> dict[str, Any]:
    match way:
        case "lark-tool":
            form = {"type": "grammar", "grammar": {"syntax": "lark", "definition": grammar}}
            tool = {"type": "custom", "custom": {"name": TOOL, "description": "Write the rules.", "format": form}}
            return {"tools": [tool], "tool_choice": {"type": "custom", "custom": {"name": TOOL}}}
        case "structured-outputs":
            return {"extra_body": {"structured_outputs": {"grammar": grammar}}}
        case "llguidance":
            return {"extra_body": {"grammar": grammar}}
        case _:
            return {}


def _refused(name: str, error: Any) -> ModelError:
    """The `ModelError` of an HTTP status."""
    status, code = error.status_code, getattr(error, "code", None)
    if status == 429:
        if code == "insufficient_quota" or "quota" in str(getattr(error, "message", "")).lower():
            return QuotaError(f"the quota of {name} is used up; top it up, or choose another model")
        limited = RateLimitedError(f"{name} takes no more calls now; ask less often, or later")
        limited.retry_after = _seconds(error.response.headers.get("retry-after"))  # type: ignore[attr-defined]
        return limited
    if status >= 500:
        return UnreachableError(f"{name} failed with HTTP {status}; ask again later")
    reason = " ".join(str(getattr(error, "message", "")).split())[:200]
    if status == 400 and (code == "context_length_exceeded" or "context size" in reason or "context length" in reason):
        return TooLongError(
            f"the prompt is too long for {name} ({reason}); serve it with a larger context, "
            "or show less with --episode-tokens"
        )
    return RefusedCallError(f"{name} refuses the call with HTTP {status}: {reason}; correct key, model or address")


def _seconds(header: str | None) -> float | None:
    """`Retry-After` in seconds; a date or nonsense counts as not given."""
    try:
        return max(0.0, float(header)) if header is not None else None
    except ValueError:
        return None


def _read(name: str, answer: Any) -> Reply:
    """Text of a chat completion, wherever the server has put it. Raises `RefusalError`, `NoAnswerError`."""
    choices = getattr(answer, "choices", None)
    if not choices:
        what = "a page instead of JSON" if isinstance(answer, str) else "no choices"
        raise NoAnswerError(f"{name} answered with {what}; is this address an API?")
    message, reason = choices[0].message, choices[0].finish_reason or "stop"
    refusal = getattr(message, "refusal", None)
    if refusal or reason == "content_filter":
        raise RefusalError(f"{name} declined: {' '.join(str(refusal or 'content filter').split())[:200]}")
    text = message.content or _tool_input(message) or _reasoning(message)
    if not text:
        raise NoAnswerError(f"{name} answered with nothing; ask for fewer tokens of thought, or choose another model")
    usage = getattr(answer, "usage", None)
    return Reply(
        text,
        str(reason),
        int(getattr(usage, "prompt_tokens", 0) or 0),
        int(getattr(usage, "completion_tokens", 0) or 0),
    )


def _tool_input(message: Any) -> str:
    for tool in getattr(message, "tool_calls", None) or ():
        custom = getattr(tool, "custom", None)
        if custom is not None and getattr(custom, "input", None):
            return str(custom.input)
    return ""


def _reasoning(message: Any) -> str:
    """Some servers leave `content` empty and put all of it into a field for thoughts."""
    extra = message.model_extra or {}
    return str(extra.get("reasoning_content") or extra.get("reasoning") or "")
