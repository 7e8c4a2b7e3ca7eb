"""A vision-language model behind an OpenAI-compatible endpoint as a judge of clips."""

from __future__ import annotations

import base64
import hashlib
import io
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nser.errors import NserError
from nser.scorers.clips import Frames

YES = frozenset({"yes", "y", "true"})
NO = frozenset({"no", "n", "false"})


class JudgementError(NserError):
    """A vision model that gave no judgement."""

    exit_code = 1


@dataclass(frozen=True)
class VisionPrompt:
    """What the model is asked of a clip: data, stored with a run. `version` changes with the words."""

    task: str
    question: str = "Do these frames, in the order of time, show progress on the task? Answer with yes or no."

    @property
    def text(self) -> str:
        """The words before the frames."""
        return f"Task: {self.task}\n{self.question}"

    @property
    def version(self) -> int:
        """A number made of the words, stored with each score."""
        return int(hashlib.sha256(self.text.encode()).hexdigest()[:12], 16)


class VisionJudge:
    """z = P(yes) / (P(yes) + P(no)), over the spellings of both, from the log-probabilities of the first token.

    A server that gives no log-probabilities is taken by its word: 1 for yes, 0 for no.
    """

    def __init__(self, model: str, base_url: str | None, prompt: VisionPrompt, timeout: float = 60.0) -> None:
        from openai import OpenAI

        self.model, self.prompt = model, prompt
        self.version = prompt.version
        self.name = f"{base_url or 'openai'}#{model}"
        self._client = OpenAI(
            api_key=os.environ.get("OPENAI_API_KEY", "none"), base_url=base_url, timeout=timeout, max_retries=1
        )

    def judge(self, frames: Frames) -> float:
        """z in [0, 1] of frames [K, H, W, 3]. Raises `JudgementError`."""
        import openai

        content: list[Any] = [{"type": "text", "text": self.prompt.text}]
        content += [{"type": "image_url", "image_url": {"url": data_url(frame)}} for frame in frames]
        try:
            answer = self._client.chat.completions.create(
                model=self.model,
                messages=[{"role": "user", "content": content}],
                max_tokens=1,
                temperature=0.0,
                logprobs=True,
                top_logprobs=20,
            )
            choice = answer.choices[0]
        except (openai.OpenAIError, ValueError, TypeError, IndexError, AttributeError) as error:
            raise JudgementError(f"{self.name} gave no judgement: {' '.join(str(error).split())[:160]}") from error
        tokens = (choice.logprobs.content or []) if choice.logprobs else []
        if tokens:
            share = yes_share((top.token, top.logprob) for top in tokens[0].top_logprobs)
            if share is not None:
                return share
        word = bare_word(choice.message.content or "")
        if word in YES | NO:
            return float(word in YES)
        raise JudgementError(f"{self.name} answered {choice.message.content!r:.40}, expected yes or no")


def yes_share(tokens: Iterable[tuple[str, float]]) -> float | None:
    """P(yes) / (P(yes) + P(no)) of tokens with their log-probabilities; None where neither word is among them.

    >>> yes_share([(" Yes", math.log(0.3)), ("no", math.log(0.1)), ("maybe", math.log(0.5))])
    0.75
    """
    yes = no = 0.0
    for token, logarithm in tokens:
        word = bare_word(token)
        yes += math.exp(logarithm) if word in YES else 0.0
        no += math.exp(logarithm) if word in NO else 0.0
    return round(yes / (yes + no), 12) if yes + no > 0 else None


def data_url(frame: Frames) -> str:
    """A frame [H, W, 3] as a PNG inside a URL."""
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(frame).save(stream, format="PNG")
    return f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}"


def bare_word(token: str) -> str:
    """A token's word: without blanks, the signs that tokenizers use for them, quotes and points, in small letters."""
    return token.strip(" \t\n▁Ġ.,!\"'`*").lower()
