"""Frames of a run for a judge of clips: rendered only where one is wanted, told to the scorer once they are stored."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from nser.agents.replay_buffer import IndexedReplayBuffer
from nser.errors import NserError
from nser.grounding.vocabulary import Vocabulary
from nser.runs.settings import RunSettings
from nser.scorers.clips import ClipScorer, ClipSettings, Frames, Judge
from nser.scorers.events import EventScorer
from nser.scorers.local_vision import LocalVisionJudge
from nser.scorers.vision import VisionJudge, VisionPrompt

EVENTS = "events:"
FORMS = "http://HOST:PORT/v1#MODEL, openai:MODEL, hf:FOLDER or events:FORMULA;FORMULA"


class JudgeError(NserError, ValueError):
    """A word that names no judge of clips."""


class FrameTap(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Renders the state that a step led to before a vector environment resets it away.

    `wanted` asks for the next step's frame whatever happens, `wanted_at_end` only if the episode ends with it.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.wanted = self.wanted_at_end = False
        self.frame: Frames | None = None

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """The environment's step, and its picture."""
        result = super().step(action)
        wanted = self.wanted or (self.wanted_at_end and (result[2] or result[3]))
        self.frame = np.asarray(self.env.render(), np.uint8) if wanted else None
        return result


class Watching:
    """Carries frames from the environments to a `ClipScorer`, and what it finds to the index.

    A transition is stored after the step's callback, so each is told to the scorer one step later.
    """

    def __init__(self, judge: Judge, buffer: IndexedReplayBuffer, taps: list[FrameTap], settings: ClipSettings) -> None:
        self.scorer = ClipScorer(judge, buffer.index, settings)
        self.buffer, self.taps = buffer, taps
        self._pending: list[tuple[int, int, Frames | None, bool]] = []
        self._ask()

    def on_step(self, dones: Any) -> None:
        """A step was taken and is about to be stored."""
        self.flush()
        first = self.buffer.pos * self.buffer.n_envs
        self._pending = [(env, first + env, tap.frame, bool(dones[env])) for env, tap in enumerate(self.taps)]

    def flush(self) -> None:
        """Tell the scorer what is stored by now, and fetch what it has found."""
        for transition in self._pending:
            self.scorer.add(*transition)
        self._pending = []
        self.scorer.collect()
        self._ask()

    def close(self) -> None:
        """End the scorer's thread."""
        self.scorer.close()

    def _ask(self) -> None:
        for env, tap in enumerate(self.taps):
            tap.wanted = self.scorer.wants_frame(env)
            tap.wanted_at_end = self.scorer.collects(env)


def judge_of(settings: RunSettings, vocabulary: Vocabulary | None) -> Judge | EventScorer:
    """The judge that `--vlm` names. Raises `JudgeError`, and `JudgementError` for a model that can't be loaded."""
    word = settings.vlm
    if word.startswith(EVENTS) and vocabulary is not None:
        formulas = [text.strip() for text in word.removeprefix(EVENTS).split(";") if text.strip()]
        return EventScorer(formulas, vocabulary, settings.clip_length)
    prompt = VisionPrompt(settings.vlm_task or f"Solve the environment {settings.env}.")
    if word.startswith("openai:"):
        return VisionJudge(word.removeprefix("openai:"), None, prompt)
    if word.startswith("hf:"):
        return LocalVisionJudge(word.removeprefix("hf:"), prompt)
    address, sign, model = word.partition("#")
    if address.startswith(("http://", "https://")) and sign and model:
        return VisionJudge(model, address, prompt)
    raise JudgeError(f"found --vlm {word or 'nothing'}, which --replay vlm-rb needs; expected {FORMS}")
