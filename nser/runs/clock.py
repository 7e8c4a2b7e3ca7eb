"""Where the time of a run goes: at every moment exactly one part is on, so that the parts sum to the whole.

A switch costs two reads of the clock, and only the environment is timed step by step. What runs beside the learner on
another thread (a language model, a judge of clips) is no part of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from stable_baselines3.common.vec_env import DummyVecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from nser.agents.replay_buffer import IndexedReplayBuffer, Scorer

Part = Literal["environment", "acting", "learning", "scoring", "induction", "evaluation", "other"]
PARTS: tuple[Part, ...] = ("environment", "acting", "learning", "scoring", "induction", "evaluation", "other")


class Clock:
    """Seconds of each part so far; `acting` holds storing too, `other` logging, saving and setting up."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._seconds: dict[str, float] = dict.fromkeys(PARTS, 0.0)
        self._part: Part = "other"
        self._since = now()

    def switch(self, part: Part) -> Part:
        """From now on this part is on; returns the one that was."""
        now = self._now()
        before = self._part
        self._seconds[before] += now - self._since
        self._part, self._since = part, now
        return before

    @contextmanager
    def during(self, part: Part) -> Iterator[None]:
        """The part is on inside the block, the one before it afterwards."""
        before = self.switch(part)
        try:
            yield
        finally:
            self.switch(before)

    def seconds(self) -> dict[str, float]:
        """Seconds of each part up to now."""
        self.switch(self._part)
        return dict(self._seconds)

    def go_on(self, seconds: Mapping[str, float]) -> None:
        """Start from what an earlier part of the run took, and from now; parts that are not told count as 0."""
        self._seconds = {part: float(seconds.get(part, 0.0)) for part in PARTS}
        self._since = self._now()


class TimedEnvs(DummyVecEnv):
    """Environments one after the other, whose steps count as `environment`."""

    def __init__(self, makers: list[Callable[[], Any]], clock: Clock) -> None:
        self.clock = clock
        super().__init__(makers)

    def step_wait(self) -> VecEnvStepReturn:
        """Step every environment."""
        before = self.clock.switch("environment")
        stepped = super().step_wait()
        self.clock.switch(before)
        return stepped


class TimedReplayBuffer(IndexedReplayBuffer):
    """A replay buffer whose asking of scorers counts as `scoring`."""

    def __init__(self, *args: Any, clock: Clock, **kwargs: Any) -> None:
        self.clock = clock
        super().__init__(*args, **kwargs)

    def set_scorer(self, scorer: Scorer | None) -> None:
        """Put a scorer in force and score every stored transition anew."""
        with self.clock.during("scoring"):
            super().set_scorer(scorer)

    def score_new(self) -> None:
        """Score what was stored since the last time."""
        with self.clock.during("scoring"):
            super().score_new()
