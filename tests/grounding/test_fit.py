from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from nser.grounding.errors import FitError
from nser.grounding.evaluator import Evaluator
from nser.grounding.fit import correlation, fit, fit_thresholds, fit_weights
from nser.grounding.fit_settings import FitSettings
from nser.grounding.fit_thresholds import best_cut, round_between
from nser.grounding.steps import Steps, single_steps
from nser.grounding.vocabulary import Predicate, Vocabulary
from nser.rules.parse import parse_rule, parse_rules
from nser.rules.signature import PredicateSignature
from nser.rules.syntax import Rule

FEATURES = 6


class Column:
    def __init__(self, index: int) -> None:
        self.index = index

    def __call__(self, steps: Steps) -> Tensor:
        return steps.observations[:, self.index]


NUMBERS = Vocabulary(
    "numbers",
    [
        *(
            Predicate(PredicateSignature(f"x{i}", kind="number", unit="m", doc="A length"), Column(i))
            for i in range(FEATURES)
        ),
        Predicate(PredicateSignature("on", doc="A switch is on"), Column(FEATURES)),
    ],
)


def world(rows: int, seed: int) -> tuple[Steps, torch.Generator]:
    """Features between 0 and 10 m, and a switch."""
    generator = torch.Generator().manual_seed(seed)
    numbers = 10 * torch.rand(rows, FEATURES, generator=generator)
    switch = (torch.rand(rows, 1, generator=generator) < 0.5).float()
    return single_steps(torch.cat([numbers, switch], 1), torch.zeros(rows, dtype=torch.int64)), generator


def crisp(rule: Rule, steps: Steps) -> Tensor:
    return Evaluator([rule], NUMBERS, sharpness=None).firings(steps)[:, 0].detach() > 0.5


def planted(literals: int, seed: int) -> tuple[Rule, Rule, Steps, Tensor]:
    """A rule with a start 1.5 m off in every literal, the rule itself, steps, and outcomes with 5 % noise."""
    steps, generator = world(4000, seed)
    share = 0.12 ** (1 / literals)  # the planted rule holds on about 12 %
    off = 1.5 * (2 * torch.rand(literals, generator=generator) - 1)
    true, start = [], []
    for i in range(literals):
        at = 10 * share if i % 2 else 10 * (1 - share)
        sign = "<" if i % 2 else ">"
        true.append(f"x{i}(t) {sign} {at}")
        start.append(f"x{i}(t) {sign} ?{at + float(off[i])}")
    real, given_rule = (
        parse_rule(f"rule r: forall t in step: {' & '.join(parts)} -> good(t)") for parts in (true, start)
    )
    flips = torch.rand(len(steps), generator=generator) < 0.05
    return given_rule, real, steps, (crisp(real, steps) ^ flips).float()


@pytest.mark.parametrize("literals", [2, 3, 4, 5])
@pytest.mark.parametrize("seed", range(5))
def test_planted_thresholds_are_found(literals: int, seed: int) -> None:
    start, real, steps, outcomes = planted(literals, seed)
    found = fit_thresholds([start], NUMBERS, steps, outcomes)
    fresh, _ = world(20_000, seed + 1000)
    fires, truth = crisp(found.rules[0], fresh), crisp(real, fresh)
    f1 = 2 * int((fires & truth).sum()) / int(fires.sum() + truth.sum())
    assert f1 >= 0.95
    assert fires.sum() >= truth.sum() / 2
    (report,) = found.report
    assert report.correlation[1] > report.correlation[0]
    assert report.retired is None
    for change in report.thresholds:
        assert change.low <= change.after <= change.high
        assert (change.unit, change.before != change.after) == ("m", True)


@pytest.mark.parametrize("seed", range(3))
def test_cross_entropy_has_a_floor_under_the_support(seed: int) -> None:
    start, _, steps, outcomes = planted(2, seed)
    found = fit_thresholds([start], NUMBERS, steps, outcomes, FitSettings(objective="bce"))
    (report,) = found.report
    assert report.support[1] >= report.support[0] / 2
    assert report.correlation[1] >= report.correlation[0]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(("correlation", "bce")))
def test_nothing_leaves_the_observed_range_nor_gets_worse(seed: int, objective: str) -> None:
    steps, generator = world(300, seed)
    outcomes = torch.randn(300, generator=generator)
    rules = parse_rules(
        "rule a: forall t in step: x0(t) < ?5 & (x1(t) > ?2 | on(t)) -> good(t)\n"
        "rule b: forall t in step: x2(t) > ?40 -> good(t)\n"
        "rule c: forall t in step: ~(x3(t) >= ?1) -> ~good(t)\n"
    ).rules
    chosen = FitSettings(objective=objective, iterations=20)  # type: ignore[arg-type]
    for report in fit_thresholds(rules, NUMBERS, steps, outcomes, chosen).report:
        sign = -1 if report.rule == "c" else 1
        assert sign * report.correlation[1] >= sign * report.correlation[0] - 1e-9
        moved = [change for change in report.thresholds if change.after != change.before]
        assert all(change.low <= change.after <= change.high for change in moved)


def test_a_rule_that_blames_is_fitted_to_bad_outcomes() -> None:
    start, real, steps, outcomes = planted(2, 0)
    blaming = parse_rule("rule r: forall t in step: x0(t) > ?5 & x1(t) < ?5 -> ~good(t)")
    found = fit_thresholds([blaming], NUMBERS, steps, -outcomes)
    fires, truth = crisp(found.rules[0], steps), crisp(real, steps)
    assert 2 * int((fires & truth).sum()) / int(fires.sum() + truth.sum()) > 0.95
    del start


def test_a_threshold_inside_a_disjunction_moves_too() -> None:
    steps, _ = world(3000, 5)
    outcomes = ((steps.observations[:, 0] < 3) | (steps.observations[:, FEATURES] > 0.5)).float()
    found = fit_thresholds(
        [parse_rule("rule r: forall t in step: x0(t) < ?5 | on(t) -> good(t)")], NUMBERS, steps, outcomes
    )
    assert found.report[0].thresholds[0].after == pytest.approx(3, abs=0.3)


def test_a_rule_that_does_not_fire_is_retired_with_its_reason() -> None:
    steps, _ = world(500, 1)
    outcomes = steps.observations[:, 0]
    rules = parse_rules(
        "rule never: forall t in step: on(t) & ~on(t) -> good(t)\nrule some: forall t in step: x0(t) > ?4 -> good(t)"
    ).rules
    found = fit(rules, NUMBERS, steps, outcomes - outcomes.mean())
    assert [rule.name for rule in found.rules] == ["some"]
    assert found.report[0].retired == "it fired on 0 of 500 steps, expected at least 10"
    assert found.report[1].retired is None


def weighing(seed: int) -> tuple[tuple[Rule, ...], Steps, Tensor]:
    """Two rules that matter, 2 to 1; one that repeats the first; one that has no part; one that blames."""
    steps, generator = world(6000, seed)
    x = steps.observations
    logits = 2.0 * (x[:, 0] > 5).float() + 1.0 * (x[:, 1] > 5).float() - 1.5 * (x[:, 3] > 5).float() - 1
    outcomes = (torch.rand(len(steps), generator=generator) < torch.sigmoid(logits)).float() - 0.5
    rules = parse_rules(
        "rule strong: forall t in step: x0(t) > 5 -> good(t)\n"
        "rule weak: forall t in step: x1(t) > 5 -> good(t)\n"
        "rule none: forall t in step: x2(t) > 5 -> good(t)\n"
        "rule bad: forall t in step: x3(t) > 5 -> ~good(t)\n"
        "rule wrong: forall t in step: x3(t) > 6 -> good(t)\n"
    ).rules
    return rules, steps, outcomes


@pytest.mark.parametrize("seed", range(3))
def test_weights_are_those_of_the_odds_and_idle_rules_go(seed: int) -> None:
    rules, steps, outcomes = weighing(seed)
    found = fit_weights(rules, NUMBERS, steps, outcomes, FitSettings(penalty=0.1))
    weights = {rule.name: rule.weight for rule in found.rules}
    assert weights["strong"] == 1
    assert weights["weak"] == pytest.approx(0.5, abs=0.15)
    assert weights["bad"] == pytest.approx(0.75, abs=0.15)
    assert set(weights) == {"strong", "weak", "bad"}
    report = {item.rule: item for item in found.report}
    assert report["none"].retired == report["wrong"].retired
    assert report["wrong"].retired is not None
    assert report["strong"].coefficient is not None
    assert 1.4 < report["strong"].coefficient < 2.2
    assert report["bad"].coefficient is not None
    assert report["bad"].coefficient < 0
    assert report["strong"].weight == (1.0, 1.0)


def test_of_two_equal_rules_the_weight_is_shared_not_doubled() -> None:
    rules, steps, outcomes = weighing(0)
    alone = fit_weights(rules[:1], NUMBERS, steps, outcomes).report[0].coefficient
    both = fit_weights((rules[0], replace(rules[0], name="again")), NUMBERS, steps, outcomes).report
    assert alone is not None
    assert sum(item.coefficient or 0.0 for item in both) == pytest.approx(alone, rel=0.02)


def test_best_cut_is_the_best_of_all_cuts() -> None:
    generator = torch.Generator().manual_seed(3)
    values = torch.randint(0, 12, (80,), generator=generator).float()
    outcome = torch.randn(80, generator=generator).double()
    outcome -= outcome.mean()
    for above in (True, False):
        cut = best_cut(values, outcome, above, 80, 5)
        assert cut is not None

        def worth(at: float, above: bool = above) -> float:
            side = values > at if above else values < at
            return correlation(side.float(), outcome) if 5 <= int(side.sum()) < 80 else -1.0

        assert worth(cut) == pytest.approx(max(worth(k + 0.5) for k in range(12)))
    assert best_cut(values[:0], outcome[:0], True, 80, 5) is None
    assert best_cut(torch.ones(20), outcome[:20], True, 80, 5) is None


@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        (torch.ones(9), r"shape \(9,\)"),
        (torch.ones(10), "all alike"),
        (torch.full((10,), float("nan")), "no finite number"),
        (torch.arange(10) + 1.0, "above 0"),
    ],
)
def test_data_that_teaches_nothing_is_refused(outcomes: Tensor, words: str) -> None:
    steps, _ = world(10, 0)
    rules = [parse_rule("rule r: forall t in step: on(t) -> good(t)")]
    with pytest.raises(FitError, match=words):
        fit(rules, NUMBERS, steps, outcomes, FitSettings(least_firings=1))
    with pytest.raises(FitError, match="a name for each"):
        fit(rules * 2, NUMBERS, steps, outcomes)


def test_no_rules_fit_to_no_rules() -> None:
    steps, _ = world(10, 0)
    assert fit([], NUMBERS, steps, torch.arange(10.0)).rules == ()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"objective": "truth"}, "correlation or bce"),
        ({"iterations": 0}, "at least 1"),
        ({"penalty": 2.0}, "share"),
        ({"sharpness": (30.0, 10.0)}, "not smaller"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        FitSettings(**wrong)  # type: ignore[arg-type]


@given(st.floats(-1e6, 1e6, width=32), st.floats(-1e6, 1e6, width=32))
def test_a_round_threshold_lies_between(one: float, other: float) -> None:
    assume(abs(one - other) > 1e-6 * max(abs(one), abs(other), 1e-30))
    found = round_between(one, other)
    assert min(one, other) < found < max(one, other)
    middle, reach = (one + other) / 2, abs(one - other) / 4
    digits = len(f"{abs(found):.16e}".split("e")[0].replace(".", "")) if found else 1
    fewer = next((n for n in range(1, digits) if float(f"{middle:.{n}g}") == found), digits) - 1
    assert not fewer or abs(float(f"{middle:.{fewer}g}") - middle) > reach, "no shorter number lies as near"
