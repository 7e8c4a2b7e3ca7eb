"""Windows of several steps, cut where one transition is not followed by the next of the same episode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Windows:
    """For `B` first transitions: what the `k` ≤ n steps from there add up to.

    returns:   [B] sum of γ^j times the reward of step j, j < k
    discounts: [B] γ^k, the factor of the value of what follows the last step
    last:      [B] slot of the last step
    lengths:   [B] k
    """

    returns: Floats
    discounts: Floats
    last: Ints
    lengths: Ints


def windows(
    slots: Ints,
    steps: int,
    gamma: float,
    stride: int,
    total: int,
    rewards: Callable[[Ints], NDArray],
    goes_on: Callable[[Ints], NDArray[np.bool_]],
) -> Windows:
    """Windows of at most `steps` ≥ 1 steps that start in `slots` [B].

    stride:  slots from one step of an environment to its next, in a ring of `total` slots
    rewards: [m] slots → [m] rewards
    goes_on: [m] slots → [m] whether the next step of the same episode is stored behind it; False at the last step
             of an episode, terminated or cut by a time limit, and at the newest transition
    """
    last = slots.copy()
    returns = rewards(slots).astype(np.float64)
    lengths = np.ones(len(slots), np.int64)
    open_ = np.arange(len(slots))
    for step in range(1, steps):
        open_ = open_[goes_on(last[open_])]
        if not len(open_):
            break
        following = last[open_] + stride
        following[following >= total] -= total
        last[open_] = following
        lengths[open_] += 1
        returns[open_] += gamma**step * rewards(following)
    return Windows(returns.astype(np.float32), (gamma**lengths).astype(np.float32), last, lengths)
