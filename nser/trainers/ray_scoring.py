"""Rule scores of many rollouts, as Ray tasks over batches. Needs the extra: `pip install nser[ray]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nser.rollouts import Rollout, RolloutError
from nser.trainers.ray_store import RemoteStore
from nser.trainers.replayer import Score

ROUND = 8  # batches that are asked from a store at once


class RemoteScore:
    """``score`` as it is, computed on the workers of a Ray cluster: (n) rollouts → (n,) scores in [0, 1].

    The scoring function is sent once; rollouts go in batches of ``rows``, each a task of ``num_cpus``, as arrays
    through the object store. Its results are the same in the same order, whatever the number of workers.
    """

    def __init__(self, score: Score, rows: int = 256, num_cpus: float = 1.0) -> None:
        if rows < 1:
            raise RolloutError("rows", rows, "a number ≥ 1", "256 is usual.")
        import ray

        self.rows = rows
        self._score = ray.put(score)
        self._task = ray.remote(_scores).options(num_cpus=num_cpus)

    def __call__(self, rollouts: Sequence[Rollout]) -> NDArray[np.float64]:
        """Scores (n,) of (n) rollouts; raises what the scoring function raises, as Ray wraps it."""
        import ray

        cuts = range(0, len(rollouts), self.rows)
        parts = [self._task.remote(self._score, list(rollouts[cut : cut + self.rows])) for cut in cuts]
        return np.concatenate([np.zeros(0), *ray.get(parts)])

    def rescore(self, store: RemoteStore, version: int) -> int:
        """Score all that is stored by rules of ``version``; returns how many had left meanwhile.

        The store is not blocked: it is asked for one batch after another, and each answer names who was meant.
        """
        slots = store.live_slots()
        gone = 0
        for cut in range(0, len(slots), ROUND * self.rows):
            asked = slots[cut : cut + ROUND * self.rows]
            live, generations, rollouts = store.living(asked)
            gone += len(asked) - len(live) + store.relate(live, self(rollouts), version, generations)
        return gone


def _scores(score: Any, rollouts: list[Rollout]) -> NDArray[np.float64]:
    found = np.asarray(score(rollouts), np.float64)
    if found.shape != (len(rollouts),):
        raise RolloutError("score", f"scores {found.shape}", f"({len(rollouts)},)", "Give one for each rollout.")
    return found
