from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nser.study.curves import collect
from nser.study.errors import NoResultsError
from tests.study.rows import cell, row, sample


def test_a_curve_a_seed_in_the_order_asked_for() -> None:
    rows = cell("per", 1, [0, 0.2, 0.4, 1]) + cell("per", 0, [0, 0, 0, 0.5]) + cell("uniform", 0, [0, 0, 0, 0])
    random.Random(1).shuffle(rows)
    found = collect(rows, ["uniform", "per"])
    assert found.conditions == ["uniform", "per"]
    assert found.measure == "success"
    per = found.groups[1]
    assert per.seeds == (0, 1)
    assert per.areas.tolist() == pytest.approx([0.125, 0.4])
    assert per.finals.tolist() == [0.5, 1.0]
    assert per.cpu_seconds == 4.0
    assert found.gaps == ("uniform at 1/4: seeds 1 are missing",)


def test_an_early_last_evaluation_counts_for_its_steps_only() -> None:
    found = collect([row("per", 0, step, value) for step, value in ((1000, 0.2), (2000, 0.4), (2500, 1.0))])
    assert found.groups[0].areas.tolist() == pytest.approx([(0.2 * 1000 + 0.4 * 1000 + 1.0 * 500) / 2500])


def test_ratios_are_kept_apart() -> None:
    found = collect(sample({"per": 0.5}, 3) + sample({"per": 0.7}, 3, ratio=1.0))
    assert [(group.condition, group.ratio) for group in found.groups] == [("per", 0.25), ("per", 1.0)]
    assert len(found.at(1.0)[0].seeds) == 3


def test_returns_are_scaled_where_there_is_no_success() -> None:
    rows = [
        row("per", seed, step, None, **{"return": value})
        for seed, values in enumerate([(-200.0, -150.0), (-175.0, -100.0)])
        for step, value in zip((1000, 2000), values, strict=True)
    ]
    found = collect(rows)
    assert found.measure == "normalised return"
    assert found.scale == (-200.0, -100.0)
    assert found.groups[0].curves.tolist() == [[0.0, 0.5], [0.25, 1.0]]


def test_returns_can_be_asked_for_beside_success() -> None:
    found = collect(cell("per", 0, [0, 0.2, 0.4, 1]), measure="return")
    assert found.measure == "normalised return"
    assert found.scale == (0.0, 0.9)
    with pytest.raises(NoResultsError, match="found no success in 1 evaluations"):
        collect([row("per", 0, 1000, None)], measure="success")


def test_returns_that_never_differ_are_zero() -> None:
    found = collect([row("per", 0, step, None, **{"return": 5.0}) for step in (1000, 2000)])
    assert not found.groups[0].curves.any()


def test_a_seed_that_was_cut_short_is_left_out_and_named() -> None:
    rows = sample({"per": 0.5, "uniform": 0.3}, 6)
    cut = [one for one in rows if not (one["condition"] == "per" and one["seed"] == 2 and one["step"] == 3000)]
    found = collect(cut, ["uniform", "per", "induced"], [0.25], range(6))
    per = next(group for group in found.groups if group.condition == "per")
    assert per.seeds == (0, 1, 3, 4, 5)
    assert found.steps.tolist() == [1000, 2000, 3000, 4000]
    assert found.gaps == (
        "induced at 1/4: seeds 0-5 are missing",
        "per at 1/4: seeds 2 lack evaluations and were left out",
    )


def test_rows_that_lack_something_are_counted_not_guessed() -> None:
    bad = [
        row("per", 9, 1000, float("nan")),
        row("per", 9, 1000, 0.5) | {"seed": "9"},
        row("", 0, 0, 1),
    ]
    found = collect(cell("per", 0, [0, 0, 0, 1], colour="red") + bad, lost=2)
    assert found.groups[0].seeds == (0,)
    assert found.gaps == ("lines of evaluations.jsonl that could not be read and were left out: 5",)


def test_the_later_of_two_equal_rows_counts() -> None:
    found = collect([*cell("per", 0, [0, 0, 0, 0]), row("per", 0, 4000, 1.0)])
    assert found.groups[0].finals.tolist() == [1.0]


def test_nothing_to_show_is_said_in_words() -> None:
    with pytest.raises(NoResultsError, match="found no evaluations yet"):
        collect([])
    with pytest.raises(NoResultsError, match="found rows of A, B"):
        collect([row("per", 0, 1, 1.0, environment="A"), row("per", 0, 1, 1.0, environment="B")])


plain = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)
)
few = st.sampled_from([0, 1, 2, 1000, 0.25, -1, "per", None, math.nan, math.inf])
keys = ("environment", "condition", "ratio", "seed", "step", "success", "return", "cpu_seconds")


@given(st.lists(st.dictionaries(st.sampled_from(keys), few | plain, max_size=2), min_size=1, max_size=8))
def test_any_rows_give_finite_curves_or_an_error_in_words(spoilt: list[dict[str, Any]]) -> None:
    rows = [row("per", number % 3, 1000 * (1 + number % 2), 0.5) | values for number, values in enumerate(spoilt)]
    try:
        found = collect(rows)
    except NoResultsError:
        return
    for group in found.groups:
        assert np.isfinite(group.curves).all()
        assert np.isfinite(group.areas).all()


def test_areas_are_in_the_unit_interval() -> None:
    for group in collect(sample({"per": 0.9, "uniform": 0.0}, 20)).groups:
        assert np.all((group.areas >= 0) & (group.areas <= 1))
