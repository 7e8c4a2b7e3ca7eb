"""Advantages within groups, and the efficiency score of the rollout-level replay paper (arXiv 2606.04560)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nser.replay.types import Floats
from nser.rollouts.errors import RolloutError


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
    values = np.asarray(rewards, np.float64)
    labels = np.asarray(groups)
    if values.ndim != 1 or labels.shape != values.shape:
        raise RolloutError("groups", f"the shape {labels.shape}", f"{values.shape}, as rewards", "Pass one each.")
    if not np.isfinite(values).all():
        at = int(np.isfinite(values).argmin())
        raise RolloutError(f"rewards[{at}]", float(values[at]), "a finite number", "Look for what made it first.")
    _, group = np.unique(labels, return_inverse=True)
    size = np.bincount(group)
    mean = (np.bincount(group, values) / size)[group] if len(values) else values
    std = np.sqrt(np.bincount(group, (values - mean) ** 2) / size)[group] if len(values) else values
    # Not σ > 0: the mean of equal numbers may be off by a rounding, which the division would blow up to ± 1.
    kept = _largest(values, group) > -_largest(-values, group)
    return GroupAdvantages(np.where(kept, (values - mean) / np.where(kept, std, 1.0), 0.0), kept, mean, std)


def _largest(values: Floats, group: NDArray[np.intp]) -> Floats:
    """(n,) the largest value in the group of each."""
    largest = np.full(group.max(initial=-1) + 1, -np.inf)
    np.maximum.at(largest, group, values)
    return largest[group]


def efficiency_score(accuracy: float, length: float, reference_accuracy: float, reference_length: float) -> float:
    """AES = ΔL + β·ΔAcc, with ΔL and ΔAcc relative to the reference and β = 3 for a gain of accuracy, 5 for a loss.

    >>> round(efficiency_score(16.58, 1938, 15.75, 2174), 3)
    0.267
    """
    shorter = (reference_length - length) / reference_length
    better = (accuracy - reference_accuracy) / reference_accuracy
    return shorter + (3.0 if better >= 0 else 5.0) * better
