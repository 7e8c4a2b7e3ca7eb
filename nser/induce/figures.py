"""What the data says of a rule: support, coverage, precision, recall and lift, with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 400


@dataclass(frozen=True)
class Figures:
    """Figures of one rule over some rows.

    firings:   rows on which body and head hold
    support:   firings as a share of all rows, in [0, 1]
    coverage:  share of the episodes in which the rule fires at least once, in [0, 1]
    precision: share of the firings whose outcome is above 0, in [0, 1]; NaN without firings
    recall:    share of the rows whose outcome is above 0 on which the rule fires, in [0, 1]; NaN without such rows
    lift:      mean outcome of the firings less the mean outcome of all rows, in units of return; NaN without firings
    lift_low, lift_high: 95 % bootstrap interval of the lift, episodes resampled whole
    precision_low, precision_high: 95 % Wilson interval of the precision, firings taken as independent
    """

    firings: int
    support: float
    coverage: float
    precision: float
    lift: float
    lift_low: float
    lift_high: float
    recall: float = math.nan
    precision_low: float = math.nan
    precision_high: float = math.nan


def figures(
    fires: NDArray[np.bool_], outcomes: NDArray[np.float64], episodes: NDArray[np.int64], seed: int = 0
) -> Figures:
    """Figures over [N] rows, each with its outcome and the number of its episode.

    Rows of one episode hang together, so the interval resamples episodes, never rows.
    """
    rows, firings = len(fires), int(fires.sum())
    if not rows or not firings:
        nan = float("nan")
        return Figures(0, 0.0, 0.0, nan, nan, nan, nan)
    _, number = np.unique(episodes, return_inverse=True)
    per_episode = np.stack(
        [
            np.bincount(number),
            np.bincount(number, weights=outcomes),
            np.bincount(number, weights=fires),
            np.bincount(number, weights=outcomes * fires),
        ],
        axis=1,
    )
    count = len(per_episode)
    n, total, n_fired, total_fired = (_resamples(count, seed) @ per_episode).T
    usable = n_fired > 0
    lifts = total_fired[usable] / n_fired[usable] - total[usable] / n[usable]
    low, high = np.quantile(lifts, (0.025, 0.975))
    right, worthy = int((outcomes[fires] > 0).sum()), int((outcomes > 0).sum())
    precision_low, precision_high = wilson(right, firings)
    return Figures(
        firings=firings,
        support=firings / rows,
        coverage=float((per_episode[:, 2] > 0).mean()),
        precision=right / firings,
        lift=float(outcomes[fires].mean() - outcomes.mean()),
        lift_low=float(low),
        lift_high=float(high),
        recall=right / worthy if worthy else math.nan,
        precision_low=precision_low,
        precision_high=precision_high,
    )


def wilson(right: int, count: int, z: float = 1.96) -> tuple[float, float]:
    """Ends of Wilson's score interval for a share of `right` in `count` trials (Wilson 1927); (0, 1) without any.

    >>> [round(end, 3) for end in wilson(9, 10)]
    [0.596, 0.982]
    """
    if not count:
        return 0.0, 1.0
    share, spread = right / count, z * z / count
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / count + spread / (4 * count)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


@lru_cache(maxsize=2)
def _resamples(episodes: int, seed: int) -> NDArray[np.float64]:
    """[RESAMPLES, E] how often each episode stands in each resample; the same for every rule of an induction."""
    drawn = np.random.default_rng(seed).multinomial(episodes, np.full(episodes, 1 / episodes), size=RESAMPLES)
    return drawn.astype(np.float64)  # products of floats go through the fast kernels, of integers they do not


def lower_bound(outcomes: NDArray[np.float64]) -> float:
    """Mean less two standard errors; −inf for no outcomes."""
    if not len(outcomes):
        return -np.inf
    return float(outcomes.mean() - 2 * outcomes.std() / np.sqrt(len(outcomes)))
