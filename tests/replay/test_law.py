import dataclasses
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nser.errors import NserError
from nser.replay import PRESETS, Law, LawError, Schedule, annealed, constant, linear, preset


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("alpha", -0.1),
        ("alpha", math.nan),
        ("alpha", 9.0),
        ("alpha", "0.6"),
        ("epsilon", -1e-9),
        ("epsilon", math.inf),
        ("tau", 0.0),
        ("tau", -1),
        ("tau", math.nan),
        ("max_age", -1),
        ("max_age", 1.5),
        ("mix", 1.1),
        ("mix", linear(0.0, 2.0, 10)),
        ("beta", -1.0),
        ("beta", math.inf),
        ("eta", -1.0),
        ("eta", math.nan),
        ("eta", linear(-1.0, 4.0, 10)),
        ("correct", "all"),
        ("normalise", "max"),
        ("max_rule_share", 1.5),
        ("default_relevance", 2.0),
        ("stratified", 1),
    ],
)
def test_a_field_out_of_range_is_named_with_what_was_expected(field: str, value: Any) -> None:
    with pytest.raises(LawError) as caught:
        dataclasses.replace(Law(), **{field: value})
    assert caught.value.argument == field
    assert "expected" in str(caught.value)
    assert isinstance(caught.value, NserError)
    assert isinstance(caught.value, ValueError)


def test_a_law_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Law().alpha = 1.0  # type: ignore[misc]


@pytest.mark.parametrize(
    "law", [Law(), Law(tau=500, eta=math.inf, max_age=3, beta=linear(0.4, 1.0, 9)), *PRESETS.values()]
)
def test_laws_go_through_json(law: Law) -> None:
    text = json.dumps(law.to_dict(), allow_nan=False)
    assert Law.from_dict(json.loads(text)) == law


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(LawError, match="gamma"):
        Law.from_dict({"gamma": 1.0})
    with pytest.raises(LawError, match="schedule"):
        Law.from_dict({"beta": {"start": 0.4}})


def test_half_life_is_that_of_the_sampling_weight() -> None:
    law = Law(alpha=0.6, tau=500.0)
    assert round(law.half_life) == 578
    assert math.exp(-law.rate * law.half_life) == pytest.approx(0.5)
    assert Law().half_life == math.inf


def test_uses_rules_only_where_they_can_change_a_draw() -> None:
    assert Law(eta=1.0).uses_rules
    assert Law(eta=linear(0.0, 1.0, 5)).uses_rules
    assert not Law().uses_rules
    assert not Law(eta=1.0, alpha=0.0).uses_rules
    assert not Law(eta=1.0, max_rule_share=0.0).uses_rules


def test_schedules() -> None:
    assert [linear(0.4, 1.0, 10)(clock) for clock in (0, 5, 10, 99)] == pytest.approx([0.4, 0.7, 1.0, 1.0])
    assert constant(3.0)(7) == 3.0
    assert annealed(1.0, 0.0, 4)(8) == 0.25
    assert (linear(4.0, 0.0, 9).low, linear(4.0, 0.0, 9).high) == (0.0, 4.0)


@given(st.floats(-5, 5), st.floats(-5, 5), st.integers(1, 1000), st.sampled_from(["linear", "annealed", "constant"]))
def test_stairs_are_few_and_near(start: float, stop: float, steps: int, kind: Any) -> None:
    schedule = Schedule(kind, start, stop, steps)
    clocks = range(0, 3 * steps, max(1, steps // 50))
    assert len({schedule.stair(clock) for clock in clocks}) <= 65
    for clock in clocks:
        assert abs(schedule.stair(clock) - schedule(clock)) <= abs(stop - start) / 128 + 1e-12
    assert schedule.stair(100 * steps) == (start if kind == "constant" else stop)
    assert Schedule.from_dict(json.loads(json.dumps(schedule.to_dict()))) == schedule


@pytest.mark.parametrize(
    ("kind", "stop", "steps"), [("cosine", 1.0, 1.0), ("linear", math.nan, 1.0), ("linear", 1.0, 0)]
)
def test_wrong_schedules_are_refused(kind: Any, stop: float, steps: float) -> None:
    with pytest.raises(LawError, match=r"schedule\."):
        Schedule(kind, 0.0, stop, steps)


def test_presets_hold_the_papers_defaults() -> None:
    assert set(PRESETS) == {"uniform", "per", "freshper", "rollout-grpo", "vlm-rb", "nser", "placebo"}
    fresh = preset("freshper")
    assert (fresh.alpha, fresh.tau, fresh.epsilon, fresh.stratified) == (0.6, 500.0, 1e-6, True)
    assert isinstance(fresh.beta, Schedule)
    assert (fresh.beta.start, fresh.beta.stop) == (0.4, 1.0)
    rollout = preset("rollout-grpo")
    assert (rollout.alpha, rollout.max_age, rollout.correct) == (0.5, 10, "none")
    clips = preset("vlm-rb")
    assert (clips.mix, clips.eta, clips.correct) == (linear(0.0, 0.5, 100_000), math.inf, "none")
    assert preset("nser").correct == "signal"
    assert preset("placebo") == preset("nser")
    assert preset("uniform").mix == 0.0


def test_presets_take_overrides_and_name_the_nearest() -> None:
    assert preset("per", alpha=0.7).alpha == 0.7
    with pytest.raises(LawError, match="Did you mean 'freshper'"):
        preset("fresh_per")
    with pytest.raises(LawError, match="Choose one"):
        preset("zzz")
    with pytest.raises(LawError, match="temperature"):
        preset("per", temperature=1.0)
    with pytest.raises(LawError, match="alpha"):
        preset("per", alpha=-1.0)
