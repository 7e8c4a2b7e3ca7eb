"""Statistics against SciPy, against loops that anybody can read, and against distributions whose truth is known."""

from __future__ import annotations

import math
from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from nser.study import statistics
from nser.study.statistics import (
    Estimate,
    PairedDifference,
    band,
    estimate,
    first_reached,
    improvement,
    iqm,
    mean,
    median_reached,
    paired_difference,
)

Areas = NDArray[np.float64]
shares = st.floats(0, 1).map(lambda share: round(share, 6))
samples = st.lists(shares, min_size=2, max_size=40).map(np.array)
pairs = st.lists(st.tuples(shares, shares), min_size=2, max_size=40).map(lambda rows: np.array(rows).T)
FEW = 400  # resamples where a test asks for laws that hold for any number of them


def resampled(values: Areas, resamples: int) -> Areas:
    return values[statistics._resamples(len(values), resamples)]


@given(st.lists(shares, min_size=1, max_size=60).map(np.array))
def test_iqm_is_scipys_trimmed_mean(values: Areas) -> None:
    assert float(iqm(values)) == pytest.approx(float(stats.trim_mean(values, 0.25)))


def test_iqm_leaves_out_a_quarter_at_each_end() -> None:
    assert float(iqm(np.array([100.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, -50.0]))) == 3.5
    assert float(iqm(np.array([0.0, 1.0, 5.0]))) == 2.0, "three values lose none"


@given(samples)
def test_an_estimate_lies_in_its_sample_and_its_interval_too(values: Areas) -> None:
    for statistic in (iqm, mean):
        found = estimate(values, statistic, resamples=FEW)
        assert found.low is not None
        assert found.high is not None
        assert values.min() - 1e-9 <= found.low <= found.high <= values.max() + 1e-9
        assert found.value == pytest.approx(float(statistic(values)))


@given(samples, st.randoms(use_true_random=False))
def test_the_order_of_seeds_does_not_matter(values: Areas, random: Random) -> None:
    order = np.array(random.sample(range(len(values)), len(values)))
    theirs = values[::-1] ** 2
    first, second = estimate(values, resamples=FEW), estimate(values[order], resamples=FEW)
    assert (first.low, first.high) == (second.low, second.high)
    assert first.value == pytest.approx(second.value)
    one, other = (improvement(values[o], theirs[o], resamples=FEW) for o in (slice(None), order))
    assert one == other


@given(samples, st.floats(-2, 2), st.floats(0.1, 5))
def test_intervals_move_and_stretch_with_the_values(values: Areas, shift: float, scale: float) -> None:
    before, after = estimate(values, resamples=FEW), estimate(shift + scale * values, resamples=FEW)
    assert before.low is not None
    assert before.high is not None
    assert after.value == pytest.approx(shift + scale * before.value, abs=1e-9)
    assert after.low == pytest.approx(shift + scale * before.low, abs=1e-9)
    assert after.high == pytest.approx(shift + scale * before.high, abs=1e-9)


def test_an_interval_is_what_a_loop_over_resamples_gives() -> None:
    values = np.sort(np.random.default_rng(3).uniform(size=9))
    means = []
    for drawn in resampled(values, 200):
        kept = sorted(drawn)[2:-2]
        means.append(sum(kept) / len(kept))
    found = estimate(values, resamples=200)
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(means, [2.5, 97.5])))


@pytest.mark.parametrize("size", [12, 24, 36])
def test_intervals_agree_with_scipys_bootstrap(size: int) -> None:
    values = np.random.default_rng(size).beta(0.5, 0.8, size=size)
    theirs = stats.bootstrap(
        (values,),
        lambda x, axis: stats.trim_mean(x, 0.25, axis=axis),
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    found = estimate(values, iqm)
    assert found.low == pytest.approx(theirs.low, abs=0.012)
    assert found.high == pytest.approx(theirs.high, abs=0.012)


@pytest.mark.parametrize("statistic", [iqm, mean])
def test_intervals_cover_the_truth_about_as_often_as_they_say(statistic: statistics.Statistic) -> None:
    rng = np.random.default_rng(11)
    found = [estimate(rng.normal(0.4, 0.2, size=24), statistic, resamples=1_000) for _ in range(600)]
    covered = sum(one.low <= 0.4 <= one.high for one in found if one.low is not None and one.high is not None)
    assert 0.90 <= covered / 600 <= 0.98


def test_where_nothing_differs_a_difference_is_seldom_shown() -> None:
    rng = np.random.default_rng(12)
    shown = 0
    for _ in range(600):
        common = rng.beta(0.6, 0.9, size=12)
        ours, theirs = (np.clip(common + rng.normal(0, 0.2, size=12), 0, 1) for _ in range(2))
        shown += paired_difference(ours, theirs, resamples=1_000).verdict != "not shown"
    assert shown / 600 < 0.09


def test_pairing_finds_what_two_intervals_side_by_side_do_not() -> None:
    rng = np.random.default_rng(13)
    theirs = rng.uniform(0.1, 0.8, size=20)
    ours = theirs + rng.normal(0.05, 0.02, size=20)
    one, other = estimate(ours), estimate(theirs)
    assert one.low is not None
    assert other.high is not None
    assert one.low < other.high
    assert paired_difference(ours, theirs).verdict == "better"
    assert paired_difference(theirs, ours).verdict == "worse"


@given(pairs)
def test_a_difference_turned_round_has_the_other_sign(both: Areas) -> None:
    ours, theirs = both
    there, back = (paired_difference(*two, resamples=FEW) for two in ((ours, theirs), (theirs, ours)))
    assert there.mean.value == pytest.approx(-back.mean.value, abs=1e-12)
    assert there.iqm.value == pytest.approx(-back.iqm.value, abs=1e-12)
    assert there.mean.value == pytest.approx(ours.mean() - theirs.mean(), abs=1e-9)


@pytest.mark.parametrize(
    ("mean_low", "iqm_low", "seeds", "verdict"),
    [(0.1, 0.1, 6, "better"), (0.1, 0.0, 40, "not shown"), (-0.1, 0.1, 40, "not shown"), (0.1, 0.1, 5, "not shown")],
)
def test_both_averages_and_six_seeds_are_asked(mean_low: float, iqm_low: float, seeds: int, verdict: str) -> None:
    found = PairedDifference(seeds, mean=Estimate(0.3, mean_low, 0.5), iqm=Estimate(0.3, iqm_low, 0.5))
    assert found.verdict == verdict


def test_one_seed_has_no_interval() -> None:
    assert estimate(np.array([0.7])) == Estimate(0.7, None, None)
    assert improvement(np.array([0.7]), np.array([0.2])) == Estimate(1.0, None, None)
    assert paired_difference(np.array([0.7]), np.array([0.2])).verdict == "not shown"


@given(pairs)
def test_improvement_is_the_mann_whitney_count(both: Areas) -> None:
    ours, theirs = both
    found, back = improvement(ours, theirs, resamples=FEW), improvement(theirs, ours, resamples=FEW)
    count = stats.mannwhitneyu(ours, theirs, method="asymptotic", use_continuity=False).statistic
    assert found.value == pytest.approx(count / len(ours) ** 2)
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.high <= 1
    assert found.value + back.value == pytest.approx(1)


def test_improvement_is_what_a_loop_over_pairs_gives() -> None:
    rng = np.random.default_rng(4)
    ours, theirs = np.sort(rng.integers(0, 5, size=8) / 4.0), rng.integers(0, 5, size=8) / 4.0
    order = np.lexsort((theirs, ours))
    ours, theirs = ours[order], theirs[order]
    shares = []
    for drawn in statistics._resamples(8, 100):
        wins = [float(a > b) + 0.5 * float(a == b) for a, b in product(ours[drawn], theirs[drawn])]
        shares.append(sum(wins) / len(wins))
    found = improvement(ours, theirs, resamples=100)
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(shares, [2.5, 97.5])))


def test_a_band_is_an_interval_at_each_step() -> None:
    curves = np.random.default_rng(5).uniform(size=(11, 4))
    middle, low, high = band(curves, resamples=300)
    for step in range(4):
        found = resampled(curves[:, step], 300)
        assert middle[step] == pytest.approx(float(iqm(curves[:, step])))
        assert (low[step], high[step]) == pytest.approx(tuple(np.percentile(iqm(found), [2.5, 97.5])))


def test_resamples_are_the_same_every_time() -> None:
    values = np.random.default_rng(6).uniform(size=30)
    first = estimate(values)
    statistics._resamples.cache_clear()
    assert estimate(values) == first


@given(st.lists(st.lists(shares, min_size=5, max_size=5), min_size=1, max_size=12))
def test_first_reached_and_its_median_are_what_loops_give(rows: list[list[float]]) -> None:
    steps = np.arange(5) * 100
    reached = first_reached(steps, np.array(rows), 0.8)
    by_hand = [next((int(s) for s, v in zip(steps, row, strict=True) if v >= 0.8), math.inf) for row in rows]
    assert reached.tolist() == by_hand
    median = median_reached(reached)
    half = [step for step in steps if sum(one <= step for one in by_hand) >= len(rows) / 2]
    assert median == (float(half[0]) if half else None)


def test_seeds_must_pair() -> None:
    for function in (paired_difference, improvement):
        with pytest.raises(ValueError, match="expected one figure a seed"):
            function(np.zeros(3), np.zeros(4))
    for nothing in (lambda: estimate(np.zeros(0)), lambda: band(np.zeros((0, 3)))):
        with pytest.raises(ValueError, match="found no seeds"):
            nothing()
