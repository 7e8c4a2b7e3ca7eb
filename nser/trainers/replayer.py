"""What a host with one update a step does for replay: draw old rollouts, keep the fresh ones until they are old."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nser.rollouts import (
    Admission,
    Replayed,
    Rollout,
    RolloutError,
    RolloutStore,
    StoreSettings,
    agreed_count,
    replay_count,
)
from nser.trainers.offpolicy import Correction

Score = Callable[[Sequence[Rollout]], ArrayLike]
"""Rules, or anything else, over rollouts: (n) rollouts → (n,) scores in [0, 1]."""


class Store(Protocol):
    """What is asked of a store: a `RolloutStore`, or one behind a Ray actor."""

    @property
    def settings(self) -> StoreSettings:
        """What is stored and drawn."""

    @property
    def version(self) -> int:
        """The trainer's version as last told."""

    @property
    def warming_up(self) -> bool:
        """Whether nothing should be replayed yet."""

    def __len__(self) -> int: ...

    def advance(self, version: int) -> None:
        """Tell the trainer's version."""

    def admit(self, rollouts: Sequence[Rollout]) -> Admission:
        """Store rollouts."""

    def teaches(self, rollouts: Sequence[Rollout]) -> NDArray[np.bool_]:
        """Which rollouts have a signal."""

    def draw(self, count: int) -> Replayed:
        """At most ``count`` of them."""

    def give_back(self, replayed: Replayed, keep: int) -> Replayed:
        """The first ``keep`` of what was drawn."""

    def save(self, path: Path) -> None:
        """Write the whole state."""


class Replayer:
    """The memory beside one trainer.

    Fresh rollouts wait until the policy that made them is gone, so that all that is replayed is at least one version
    old however often a version generates. ``score`` gives fresh rollouts their rule score, the relevance of the
    index; ``multiple_of`` rows are replayed, or a multiple of that, for trainers that split batches evenly.

    Raises ``RolloutError`` for the composition "pool", which would replace rows that the host counts on, and
    ``ArgumentError`` for a cap below 1.
    """

    def __init__(self, store: Store, score: Score | None = None, multiple_of: int = 1) -> None:
        if store.settings.composition == "pool":
            raise RolloutError(
                "composition", "pool", "anchored or separate", "Use nser.rollouts.plan and the converters for a pool."
            )
        self.correction = Correction(store.settings.correction, store.settings.cap)
        self.store = store
        self.score = score
        self.multiple_of = multiple_of
        self.pending: list[Rollout] = []

    def step(self, fresh: Sequence[Rollout], version: int) -> list[Replayed]:
        """What to replay beside (composition "anchored", at most one draw) or after ("separate", K) ``fresh``.

        Empty draws are left out. ``version``: of the policy now, never falling.
        """
        if version != self.store.version:
            self.settle()
            self.store.advance(version)
        settings = self.store.settings
        if settings.ratio == 0:
            return []
        survivors = int(np.count_nonzero(self.store.teaches(fresh)))
        count = replay_count(cast(RolloutStore, self.store), survivors)
        draws = settings.updates if settings.composition == "separate" else 1
        replays = [self._drawn(count) for _ in range(draws if count else 0)]
        self.pending.extend(self._scored(fresh))
        return [self._clipped(replayed) for replayed in replays if len(replayed)]

    def settle(self) -> None:
        """Store the fresh rollouts that wait."""
        if self.pending:
            self.store.admit(self.pending)
        self.pending = []

    def save(self, path: Path) -> None:
        """Write the store, what waits included; call it once the trainer's step is over."""
        self.settle()
        path.parent.mkdir(parents=True, exist_ok=True)
        self.store.save(path)

    def restore(self, path: Path) -> None:
        """Go on from what ``save`` wrote. Raises ``StoreStateError``, nothing changed."""
        if isinstance(self.store, RolloutStore):
            self.store.load_state_dict(RolloutStore.load(path).state_dict())
        else:
            cast(Any, self.store).restore(path)
        self.pending = []

    def figures(self, replays: Sequence[Replayed]) -> dict[str, float]:
        """For the trainer's log."""
        ages = np.concatenate([replayed.draw.ages for replayed in replays]) if replays else np.zeros(1)
        return {
            "nser/replayed": float(sum(map(len, replays))),
            "nser/age_mean": float(ages.mean()),
            "nser/age_oldest": float(ages.max()),
            "nser/stored": float(len(self.store)),
        }

    def _drawn(self, count: int) -> Replayed:
        replayed = self.store.draw(count)
        agreed = agreed_count([len(replayed)], self.multiple_of)
        return self.store.give_back(replayed, agreed) if agreed < len(replayed) else replayed

    def _scored(self, fresh: Sequence[Rollout]) -> list[Rollout]:
        if self.score is None or not fresh:
            return list(fresh)
        scores = np.asarray(self.score(fresh), np.float64).tolist()
        return [replace(rollout, rule_score=score) for rollout, score in zip(fresh, scores, strict=True)]

    def _clipped(self, replayed: Replayed) -> Replayed:
        bound = self.store.settings.advantage_clip
        if bound is None:
            return replayed
        return replace(replayed, rollouts=tuple(_clip(rollout, bound) for rollout in replayed.rollouts))


def _clip(rollout: Rollout, bound: float) -> Rollout:
    clipped = np.clip(rollout.advantage, -bound, bound)
    return replace(rollout, advantage=clipped if clipped.ndim else float(clipped))
