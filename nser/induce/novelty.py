"""Novelty: what a step brought about for the first time in its episode, and in how few episodes that ever happens.

It judges rules while nothing has been won yet. Where no episode stands out, returns say nothing about any action, and
that is when an agent needs to know what is worth trying: to pick up the key, to open the door. Such achievements are
told by the vocabulary: a literal over the state that holds after a step, and never held before in that episode. Each
is worth 1/√n with n the episodes in which it happens, as count-based bonuses of exploration are (Strehl and Littman
2008; Bellemare et al., arXiv 1606.01868), so that common ones soon count for little. Undoing and doing again earns
nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nser.experience.trajectories import Trajectories
from nser.grounding.vocabulary import Vocabulary
from nser.induce.kinds import Valuation


def novelty(trajectories: Trajectories, vocabulary: Vocabulary, gamma: float) -> NDArray[np.float64]:
    """[N] sum of 1/√n over what each step achieved, less the mean of all steps.

    A reward above the median of all rewards counts as an achievement like a literal.
    """
    del gamma
    earned = np.zeros(len(trajectories))
    if not len(trajectories):
        return earned
    steps = trajectories.steps()
    valuation = Valuation.over(vocabulary, steps)
    before, after = valuation.codes(steps).numpy(), valuation.codes(trajectories.next_steps()).numpy()
    columns = [*zip(before.T, after.T, strict=True), _rewarded(trajectories)]
    for one, other in columns:
        for code in np.unique(other):
            rows = _first(other == code, trajectories, held=one[trajectories.starts] == code)
            earned[rows] += 1 / np.sqrt(max(1, len(rows)))
    return np.asarray(earned - earned.mean(), np.float64)


def _rewarded(trajectories: Trajectories) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
    """Before no step has a reward been seen."""
    above = trajectories.rewards > np.median(trajectories.rewards)
    return np.zeros(len(above), np.int16), above.astype(np.int16)


def _first(holds: NDArray[np.bool_], trajectories: Trajectories, held: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Rows after which something holds for the first time in their episode; `held` [E] where it did from the start."""
    rows = np.flatnonzero(holds & ~held[trajectories.numbers])
    return rows[np.unique(trajectories.numbers[rows], return_index=True)[1]]
