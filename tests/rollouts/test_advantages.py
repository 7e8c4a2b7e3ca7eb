"""Group advantages and the efficiency score: the numbers of arXiv 2606.04560."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nser.rollouts import RolloutError, efficiency_score, group_advantages


@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_k_correct_of_g_have_the_closed_form(size: int) -> None:
    for correct in range(1, size):
        found = group_advantages([1.0] * correct + [-1.0] * (size - correct), ["g"] * size)
        np.testing.assert_allclose(found.values[:correct], math.sqrt((size - correct) / correct))
        np.testing.assert_allclose(found.values[correct:], -math.sqrt(correct / (size - correct)))
        assert found.kept.all()


def test_groups_of_eight_have_seven_values() -> None:
    values = {
        round(abs(float(value)), 3)
        for correct in range(1, 8)
        for value in group_advantages([1.0] * correct + [-1.0] * (8 - correct), [0] * 8).values
    }
    assert sorted(values) == [0.378, 0.577, 0.775, 1.0, 1.291, 1.732, 2.646]


def test_the_deviation_is_that_of_the_population() -> None:
    found = group_advantages([0.0, 1.0], [0, 0])
    assert found.std.tolist() == [0.5, 0.5]
    assert found.values.tolist() == [-1.0, 1.0]


def test_groups_that_agree_are_dropped_even_where_their_mean_is_rounded() -> None:
    found = group_advantages([0.1] * 3 + [0.3] * 7 + [0.0, 1.0], ["a"] * 3 + ["b"] * 7 + ["c"] * 2)
    assert found.kept.tolist() == [False] * 10 + [True] * 2
    assert found.values[:10].tolist() == [0.0] * 10


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-20, 20)), max_size=40))
def test_it_is_the_plain_formula_in_any_order(pairs: list[tuple[int, int]]) -> None:
    groups, rewards = [group for group, _ in pairs], [reward / 4 for _, reward in pairs]
    found = group_advantages(rewards, groups)
    for place, group in enumerate(groups):
        own = [reward for reward, other in zip(rewards, groups, strict=True) if other == group]
        mean, std = statistics.fmean(own), statistics.pstdev(own)
        assert found.mean[place] == pytest.approx(mean)
        assert found.std[place] == pytest.approx(std, abs=1e-9)
        assert bool(found.kept[place]) == (len(set(own)) > 1)
        if found.kept[place]:
            assert found.values[place] == pytest.approx((rewards[place] - mean) / std)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(RolloutError, match="as rewards"):
        group_advantages([1.0, 2.0], [0])
    with pytest.raises(RolloutError, match=r"rewards\[1\]: found nan"):
        group_advantages([1.0, math.nan], [0, 0])


def test_the_efficiency_score_has_the_papers_check_value() -> None:
    assert efficiency_score(16.58, 1938, 15.75, 2174) == pytest.approx(0.267, abs=5e-4)
    assert efficiency_score(0.9, 100, 1.0, 100) == pytest.approx(-0.5), "a loss of accuracy counts five times"
    assert efficiency_score(1.0, 50, 1.0, 100) == 0.5
