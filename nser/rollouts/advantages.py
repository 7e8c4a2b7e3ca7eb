"""Advantages within groups, and the efficiency score of the rollout-level replay paper (arXiv 2606.04560)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nser.replay.types import Floats


@dataclass(frozen=True)
class GroupAdvantages:
    """``values`` (n,), 0 in dropped groups; ``kept`` (n,) False there; ``mean`` and ``std`` (n,) of the group."""

    values: Floats
    kept: NDArray[np.bool_]
    mean: Floats
    std: Floats


def group_advantages(rewards: ArrayLike, groups: ArrayLike) -> GroupAdvantages:
    """A = (r − μ_g)/σ_g with the *population* σ (ddof = 0); groups with σ = 0 are dropped, without refill.

    ``rewards`` (n,) finite, ``groups`` (n,) labels of any sortable kind. Raises ``RolloutError``.
    """
    raise NotImplementedError


def efficiency_score(accuracy: float, length: float, reference_accuracy: float, reference_length: float) -> float:
    """AES = ΔL + β·ΔAcc, with ΔL and ΔAcc relative to the reference and β = 3 for a gain of accuracy, 5 for a loss.

    >>> round(efficiency_score(16.58, 1938, 15.75, 2174), 3)
    0.267
    """
    shorter = (reference_length - length) / reference_length
    better = (accuracy - reference_accuracy) / reference_accuracy
    return shorter + (3.0 if better >= 0 else 5.0) * better
