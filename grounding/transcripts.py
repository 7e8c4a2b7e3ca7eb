"""Rollouts as texts: what a language model, its tools and its environment said, turn by turn.

>>> chat = [
...     {"role": "user", "content": "Where is the goal?"},
...     {"role": "assistant", "content": "Let me look.", "tool_calls": [{"function": {"name": "look"}}]},
...     {"role": "tool", "name": "look", "content": "To the east."},
...     {"role": "assistant", "content": "In the east."},
... ]
>>> rollout = Transcript.of_messages(chat, reward=1.0)
>>> [turn.role for turn in rollout.turns], rollout.answer, rollout.turns[1].reply.text
(['user', 'assistant', 'tool', 'assistant'], 'In the east.', 'To the east.')
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from nser.errors import NserError

AGENT = "assistant"
ROLES = ("system", "user", AGENT, "tool")
_SPOKEN = frozenset({"messages", "completion", "text", "prompt"})
_ROLES = {**dict(zip(ROLES, ROLES, strict=True)), "developer": "system", "function": "tool", "environment": "user"}


class TranscriptError(NserError, ValueError):
    """Messages or fields that make no transcript.

    Attributes: `field` (which one), `found`, `expected`, `where` (file and line, "" where nobody knows).
    """

    def __init__(self, field: str, found: object, expected: str, where: str = "") -> None:
        super().__init__(field, found, expected, where)
        self.field, self.found, self.expected, self.where = field, found, expected, where

    def __str__(self) -> str:
        text = self.found if isinstance(self.found, str) else repr(self.found)
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.field}: found {text if len(text) <= 80 else text[:79] + '…'}, expected {self.expected}"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that a message calls, and its arguments as text."""

    tool: str
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """What one speaker says: `role` is system, user, assistant or tool; `fields` are the message's other ones."""

    role: str
    text: str
    calls: tuple[Call, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """In the form of OpenAI's messages."""
        calls = [{"type": "function", "function": {"name": c.tool, "arguments": c.arguments}} for c in self.calls]
        return {"role": self.role, "content": self.text, **({"tool_calls": calls} if calls else {}), **self.fields}


@dataclass(frozen=True, slots=True)
class Turn:
    """A message in its place; what rules over `turn` speak of."""

    rollout: Transcript
    place: int

    @property
    def message(self) -> Message:
        """What is said."""
        return self.rollout.messages[self.place]

    @property
    def role(self) -> str:
        """Who speaks."""
        return self.message.role

    @property
    def text(self) -> str:
        """What is said, as plain text."""
        return self.message.text

    @property
    def calls(self) -> tuple[Call, ...]:
        """The tools called."""
        return self.message.calls

    @property
    def reply(self) -> Turn | None:
        """The turn after this one."""
        return self._at(self.place + 1)

    @property
    def earlier(self) -> Turn | None:
        """The last turn of the same speaker before this one."""
        places = range(self.place - 1, -1, -1)
        return next((turn for i in places if (turn := self._at(i)) and turn.role == self.role), None)

    def _at(self, place: int) -> Turn | None:
        return Turn(self.rollout, place) if 0 <= place < len(self.rollout.messages) else None


@dataclass(frozen=True)
class Transcript:
    """One rollout: its messages and what it was worth; what rules over `rollout` speak of.

    - `messages`: one or more;
    - `reward`: finite;
    - `group`: rollouts of one prompt share it; `task`: where the prompt comes from; "" where nobody knows;
    - `advantage`: of the whole rollout, where the trainer has told it;
    - `metadata`: everything else (success, finish_reason, …), as JSON values.
    """

    messages: tuple[Message, ...]
    reward: float = 0.0
    group: str = ""
    task: str = ""
    advantage: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.messages:
            raise TranscriptError("messages", "none", "at least one")
        for name in ("reward", "advantage"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise TranscriptError(name, value, "a finite number")

    @classmethod
    def of_messages(cls, messages: object, reward: float = 0.0, **fields: Any) -> Transcript:
        """From chat messages in the form of OpenAI's: role, content, tool_calls. Raises `TranscriptError`.

        `content` is a text, a list of parts of which the texts count, or null.
        """
        if not isinstance(messages, Sequence) or isinstance(messages, str):
            raise TranscriptError("messages", messages, "a list of messages")
        return cls(tuple(_message(one, i) for i, one in enumerate(messages)), reward, **fields)

    def as_dict(self) -> dict[str, Any]:
        """A line of a transcript file: messages, reward, task, group, advantage where it is known, then the rest."""
        known = {"reward": self.reward, "task": self.task, "group": self.group}
        known |= {} if self.advantage is None else {"advantage": self.advantage}
        return {"messages": [message.as_dict() for message in self.messages], **known, **self.metadata}

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """Every message in its place."""
        return tuple(Turn(self, place) for place in range(len(self.messages)))

    @cached_property
    def own(self) -> tuple[Turn, ...]:
        """The agent's own turns."""
        return tuple(turn for turn in self.turns if turn.role == AGENT)

    @cached_property
    def said(self) -> str:
        """All that the agent wrote, its turns on lines of their own."""
        return "\n".join(turn.text for turn in self.own)

    @property
    def answer(self) -> str:
        """The agent's last turn; "" where it took none."""
        return self.own[-1].text if self.own else ""


class RolloutLike(Protocol):
    """What of a stored rollout a transcript needs; see `nser.rollouts.record.Rollout`."""

    @property
    def reward(self) -> float:
        """Of the whole rollout."""

    @property
    def group(self) -> str:
        """Rollouts of one prompt share it."""

    @property
    def task(self) -> str:
        """Where the prompt comes from."""

    @property
    def advantage(self) -> Any:
        """A number, or [T] numbers."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Messages, or text, among others."""

    @property
    def prompt_ids(self) -> Any:
        """[P] token ids."""

    @property
    def response_ids(self) -> Any:
        """[T] token ids."""


Decode = Callable[[Sequence[int]], str]
"""Token ids to text: a tokenizer's `decode`."""


def as_transcript(rollout: Transcript | RolloutLike, decode: Decode | None = None) -> Transcript:
    """The text of a rollout: what its metadata hold, or its decoded ids.

    In `metadata` are looked for: `messages`; or `completion` or `text`, with `prompt` before it, each a text or a list
    of messages. Raises `TranscriptError` where there is no text and no `decode`.
    """
    if isinstance(rollout, Transcript):
        return rollout
    told = rollout.metadata
    messages = told.get("messages")
    if messages is None:
        text, prompt = told.get("completion", told.get("text")), told.get("prompt", "")
        if text is None and decode is not None:
            prompt = decode([int(i) for i in rollout.prompt_ids])
            text = decode([int(i) for i in rollout.response_ids])
        if text is None:
            expected = "messages, completion or text; store them with the rollout, or give decode=tokenizer.decode"
            raise TranscriptError("metadata", f"only {', '.join(told) or 'nothing'}", expected)
        messages = [*_spoken(prompt, "user"), *_spoken(text, AGENT)]
    advantage = rollout.advantage if isinstance(rollout.advantage, float) else None
    fields = {name: value for name, value in told.items() if name not in _SPOKEN}
    return Transcript.of_messages(
        messages, rollout.reward, group=rollout.group, task=rollout.task, advantage=advantage, metadata=fields
    )


def _spoken(said: object, role: str) -> list[Any]:
    """A list of messages as it is, a text as one message, no text as none."""
    if isinstance(said, str):
        return [{"role": role, "content": said}] if said or role == AGENT else []
    return list(said) if isinstance(said, Sequence) else [{"role": role, "content": said}]


def content_text(content: object) -> str:
    """The text of a message's content; parts that are no text are named by their type."""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        parts = [part for part in content if isinstance(part, Mapping)]
        return " ".join(str(part.get("text") or f"<{part.get('type', 'part')}>") for part in parts)
    return ""


def _message(found: object, place: int) -> Message:
    where = f"messages[{place}]"
    if not isinstance(found, Mapping):
        raise TranscriptError(where, found, "an object with role and content")
    role = _ROLES.get(str(found.get("role")))
    if role is None:
        raise TranscriptError(f"{where}.role", found.get("role"), f"one of {', '.join(_ROLES)}")
    content = found.get("content")
    if content is not None and not isinstance(content, str | list | tuple):
        raise TranscriptError(f"{where}.content", content, "a text, a list of parts, or null")
    calls = found.get("tool_calls") or ()
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        raise TranscriptError(f"{where}.tool_calls", calls, "a list of calls")
    rest = {str(name): value for name, value in found.items() if name not in ("role", "content", "tool_calls")}
    return Message(role, content_text(content), tuple(_call(one) for one in calls), rest)


def _call(found: object) -> Call:
    """A call in OpenAI's form, or with name and arguments at the top; one without a name is called `unknown`."""
    inner = found.get("function", found) if isinstance(found, Mapping) else None
    if not isinstance(inner, Mapping):
        return Call("unknown")
    given = inner.get("arguments", "")
    arguments = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return Call(str(inner.get("name") or "unknown"), arguments)
