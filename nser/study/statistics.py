"""What many seeds say: interquartile means, bootstrap intervals, paired differences, probability of improvement.

The unit that is resampled is the seed, never the episode: two evaluations of one seed tell less than two seeds.
Sources: Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice", NeurIPS 2021 (IQM,
percentile bootstrap over runs, probability of improvement); Efron and Tibshirani, "An Introduction to the Bootstrap",
1993, ch. 13 (percentile interval); Mann and Whitney 1947 (the count behind the probability of improvement).

Percentile intervals of few seeds are a little too narrow: ten normal seeds are covered about 90 times in 100, not 95.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
RESAMPLES = 10_000
BOOTSTRAP_SEED = 20_211_206  # any number: it only has to be the same each time, so that a table can be made again
LEAST_PAIRS = 6  # five differences of one sign happen by chance once in 16: no test at 5 % can call that shown
TRIMMED = 0.25  # share of the runs that an interquartile mean leaves out at each end

Values = NDArray[np.float64]
Statistic = Callable[[Values], Values]


@dataclass(frozen=True)
class Estimate:
    """A figure with its percentile-bootstrap interval; `low` and `high` are None where one seed allows none."""

    value: float
    low: float | None
    high: float | None

    @property
    def above_zero(self) -> bool:
        """Whether the whole interval lies above 0."""
        return self.low is not None and self.low > 0

    @property
    def below_zero(self) -> bool:
        """Whether the whole interval lies below 0."""
        return self.high is not None and self.high < 0


@dataclass(frozen=True)
class PairedDifference:
    """Ours minus theirs, seed by seed.

    Both averages are given, for either alone can mislead: the mean counts every seed, so that a method which fails
    now and then pays for it, while one odd seed can carry it; the IQM leaves the quarter of the seeds at each end out,
    so that no odd seed carries it, and may leave out just the failures. `verdict` asks both, so that nobody chooses
    the kinder one after the fact.
    """

    seeds: int
    mean: Estimate
    iqm: Estimate

    @property
    def verdict(self) -> str:
        """`better` or `worse` where both intervals exclude 0 on the same side, else `not shown`.

        Fewer than `LEAST_PAIRS` seeds show nothing, however far from 0 they lie: their bootstrap knows no value beyond
        those seen, so its interval excludes 0 as soon as all agree.
        """
        if self.seeds < LEAST_PAIRS:
            return "not shown"
        if self.mean.above_zero and self.iqm.above_zero:
            return "better"
        if self.mean.below_zero and self.iqm.below_zero:
            return "worse"
        return "not shown"


def iqm(values: Values) -> Values:
    """Interquartile mean along the last axis: the mean without the ⌊n/4⌋ smallest and the ⌊n/4⌋ largest of n.

    The convention of SciPy's `trim_mean`. Fewer than four values lose none.

    >>> float(iqm(np.array([0.0, 0.2, 0.4, 9.0])))
    0.30000000000000004
    """
    cut = int(TRIMMED * values.shape[-1])
    kept = np.sort(values, axis=-1)[..., cut : values.shape[-1] - cut]
    return np.asarray(kept.mean(axis=-1))


def mean(values: Values) -> Values:
    """Mean along the last axis."""
    return np.asarray(values.mean(axis=-1))


def estimate(values: Values, statistic: Statistic = iqm, *, resamples: int = RESAMPLES) -> Estimate:
    """A statistic of n seeds and its 95 % interval.

    `values` is [n], one finite figure a seed; `statistic` averages along the last axis. The order of the seeds does
    not matter. Raises `ValueError` without any seed.
    """
    _require_seeds(values)
    low, high = interval(statistic(np.sort(values)[_resamples(len(values), resamples)]))
    value = float(statistic(values))
    return Estimate(value, low, high) if len(values) > 1 else Estimate(value, None, None)


def band(curves: Values, *, resamples: int = 2_000) -> tuple[Values, Values, Values]:
    """IQM over seeds at each of k steps, with the ends of its 95 % interval.

    `curves` is [n, k], a row a seed; the answer is three arrays of [k]. Each step's interval stands alone: it is no
    band that holds the whole curve with 95 %. Raises `ValueError` without any seed.
    """
    _require_seeds(curves)
    drawn = _resamples(len(curves), resamples)
    ends = [np.quantile(iqm(column[drawn]), _TAILS) for column in curves.T]
    lows, highs = np.array(ends).reshape(-1, 2).T
    return iqm(curves.T), lows, highs


def paired_difference(ours: Values, theirs: Values, *, resamples: int = RESAMPLES) -> PairedDifference:
    """Ours minus theirs over n seeds that both were run with.

    `ours` and `theirs` are [n], place i of both of the same seed. What a seed decides for both (layouts, first
    weights) leaves the difference, so that fewer seeds show an effect. Raises `ValueError` where lengths differ.
    """
    _require_pairs(ours, theirs)
    differences = ours - theirs
    return PairedDifference(
        len(differences),
        mean=estimate(differences, mean, resamples=resamples),
        iqm=estimate(differences, iqm, resamples=resamples),
    )


def improvement(ours: Values, theirs: Values, *, resamples: int = RESAMPLES) -> Estimate:
    """Probability that a run of ours beats a run of theirs, a tie counted as half: the Mann-Whitney count over n².

    0.5 says that neither is better. `ours` and `theirs` are [n], place i of both of the same seed: seeds are resampled
    in pairs, for two runs of one seed are not independent. Raises `ValueError` where lengths differ.
    """
    _require_pairs(ours, theirs)
    order = np.lexsort((theirs, ours))  # the order of the seeds does not matter
    ours, theirs = ours[order], theirs[order]
    wins = (1.0 + np.sign(ours[:, None] - theirs[None, :])) / 2.0  # [n, n]
    n = len(ours)
    if n == 1:
        return Estimate(float(wins[0, 0]), None, None)
    times = _counts(n, resamples)
    low, high = interval((times @ wins * times).sum(axis=1) / n**2)
    return Estimate(float(wins.mean()), low, high)


def first_reached(steps: NDArray, curves: Values, threshold: float) -> Values:
    """The step of the first evaluation at or above a threshold, infinity for a run that never gets there.

    `steps` is [k], `curves` [n, k]; the answer is [n]. One lucky evaluation is enough: with few episodes an evaluation,
    runs are counted as there a little early, in every condition alike.
    """
    reached = curves >= threshold
    return np.where(reached.any(axis=1), np.asarray(steps, float)[reached.argmax(axis=1)], np.inf)


def median_reached(reached: Values) -> float | None:
    """The step by which half of the runs got there, None where fewer than half did.

    Runs that never get there are censored at the end, all at the same step, so this is the Kaplan-Meier median.

    >>> median_reached(np.array([4000.0, 2000.0, math.inf]))
    4000.0
    """
    half = float(np.sort(reached)[(len(reached) - 1) // 2])
    return half if math.isfinite(half) else None


def interval(statistics: Values) -> tuple[float, float]:
    """The middle 95 % of resampled statistics, an array of [resamples]."""
    low, high = np.quantile(statistics, _TAILS)
    return float(low), float(high)


_TAILS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)


@cache
def _resamples(seeds: int, resamples: int) -> NDArray[np.int64]:
    """Which seeds each resample holds, [resamples, seeds]: the same for every condition, so that pairs stay pairs."""
    return np.random.default_rng((BOOTSTRAP_SEED, seeds)).integers(seeds, size=(resamples, seeds))


@cache
def _counts(seeds: int, resamples: int) -> Values:
    """How often each resample holds each seed, [resamples, seeds]."""
    return np.stack([np.bincount(drawn, minlength=seeds) for drawn in _resamples(seeds, resamples)]).astype(float)


def _require_seeds(values: Values) -> None:
    if not len(values):
        raise ValueError("found no seeds, expected one at least")


def _require_pairs(ours: Values, theirs: Values) -> None:
    if ours.shape != theirs.shape or ours.ndim != 1:
        raise ValueError(f"found shapes {ours.shape} and {theirs.shape}, expected one figure a seed in both")
    _require_seeds(ours)
