from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nser.grounding.errors import DegreeError, UngroundedError
from nser.grounding.evaluator import Evaluator, Mode
from nser.grounding.operators import GODEL, LUKASIEWICZ, PRODUCT, Logic, yager
from nser.grounding.reference import reference_truths
from nser.rules.parse import parse_rule, parse_rules
from nser.rules.syntax import Rule
from tests.grounding.world import WORLD, random_steps
from tests.rules.strategies import rules

LOGICS = (PRODUCT, GODEL, LUKASIEWICZ, yager(2.0))


def rule(body: str, head: str = "good(t)", weight: float = 1.0) -> Rule:
    return parse_rule(f"rule r [{weight}]: forall t in step: {body} -> {head}")


def scores(body: str, rows: int = 8, seed: int = 0) -> Tensor:
    return Evaluator([rule(body)], WORLD, sharpness=None)(random_steps(rows, seed)).detach()


@settings(max_examples=60, deadline=None)
@given(st.lists(rules(WORLD.signature, levels=2), min_size=1, max_size=4), st.integers(0, 99), st.sampled_from(LOGICS))
def test_compiled_form_agrees_with_the_interpreter(found: list[Rule], seed: int, logic: Logic) -> None:
    steps = random_steps(12, seed)
    evaluator = Evaluator(found, WORLD, logic=logic)
    body, head = evaluator.truths(steps)
    expected_body, expected_head = reference_truths(found, WORLD, steps, logic=logic)
    torch.testing.assert_close(body.detach(), expected_body, atol=1e-5, rtol=0)
    torch.testing.assert_close(head.detach(), expected_head, atol=1e-5, rtol=0)


THRESHOLDS = """
rule one: forall t in step: height(t) < ?0.3 & hot(t) & ~near(t, cup) -> good(t)
rule two: forall t in step: height(t) > ?-0.5 & height(t) < ?1 -> good(t)
rule three: forall t in step: prev(clock(t) >= ?0) | hot(t) -> height(t) > ?0.1
"""


def test_gradients_to_thresholds_agree_with_the_interpreter() -> None:
    found = parse_rules(THRESHOLDS).rules
    steps = random_steps(50, 3)
    evaluator = Evaluator(found, WORLD)
    mixed = torch.linspace(-1, 2, 150).reshape(50, 3)
    body, head = evaluator.truths(steps)
    (body * head * mixed).sum().backward()
    free = [torch.tensor(v, requires_grad=True) for v in evaluator.thresholds.tolist()]
    body, head = reference_truths(found, WORLD, steps, thresholds=free)
    (body * head * mixed).sum().backward()
    assert evaluator.thresholds.grad is not None
    expected = torch.stack([t.grad for t in free if t.grad is not None])
    torch.testing.assert_close(evaluator.thresholds.grad, expected, atol=1e-5, rtol=1e-4)
    assert (expected.abs() > 1e-3).all()


def test_gradients_to_weights_are_those_of_the_formula() -> None:
    found = [rule("hot(t)", weight=0.4), rule("near(t, cup)", weight=0.7)]
    steps = random_steps(20, 4)
    evaluator = Evaluator(found, WORLD)
    evaluator(steps).sum().backward()
    hot, near = steps.observations[:, 0], steps.observations[:, 1]
    assert evaluator.weights.grad is not None
    torch.testing.assert_close(evaluator.weights.grad[0], (hot * (1 - 0.7 * near)).sum())
    torch.testing.assert_close(evaluator.weights.grad[1], (near * (1 - 0.4 * hot)).sum())


def test_score_is_the_weighted_probabilistic_sum() -> None:
    steps = random_steps(9, 5)
    found = [rule("hot(t)", weight=0.5), rule("~near(t, pan)", weight=0.25)]
    hot, pan = steps.observations[:, 0], steps.observations[:, 2]
    expected = 1 - (1 - 0.5 * hot) * (1 - 0.25 * (1 - pan))
    torch.testing.assert_close(Evaluator(found, WORLD)(steps).detach(), expected, atol=1e-6, rtol=0)


def test_blaming_rules_fire_but_do_not_score() -> None:
    steps = random_steps(9, 5)
    evaluator = Evaluator([rule("hot(t)", "~good(t)")], WORLD)
    torch.testing.assert_close(evaluator.firings(steps)[:, 0].detach(), steps.observations[:, 0], atol=1e-6, rtol=0)
    assert not evaluator(steps).any()


@pytest.mark.parametrize("mode", ["support", "relevance", "violation"])
def test_modes(mode: Mode) -> None:
    steps = random_steps(30, 6)
    hot, cup = steps.observations[:, 0], steps.observations[:, 1]
    expected = {"support": hot * cup, "relevance": hot, "violation": hot * (1 - cup)}[mode]
    found = Evaluator([rule("hot(t)", "near(t, cup)")], WORLD, mode=mode).firings(steps)[:, 0]
    torch.testing.assert_close(found.detach(), expected, atol=1e-5, rtol=0)


def test_support_is_not_the_truth_of_the_implication() -> None:
    """Where the body is false a rule says nothing: the score is 0, though the implication is true."""
    steps = random_steps(40, 7, crisp=True)
    found = Evaluator([rule("hot(t)", "near(t, cup)")], WORLD)(steps)
    assert not found[steps.observations[:, 0] == 0].any()


def test_nothing_crosses_an_episode_end() -> None:
    steps = random_steps(40, 8, crisp=True)
    hot, episode = steps.observations[:, 0].tolist(), steps.episodes.tolist()

    def at(i: int) -> float | None:
        return hot[i] if 0 <= i < 40 and episode[i] == episode[current] else None

    nexts, prevs, soon, all_soon, before = [], [], [], [], []
    for current in range(40):
        ahead = [v for k in range(1, 4) if (v := at(current + k)) is not None]
        nexts.append(at(current + 1) or 0.0)
        prevs.append(at(current - 1) or 0.0)
        soon.append(max(ahead, default=0.0))
        all_soon.append(min(ahead, default=1.0))
        before.append(max((v for k in range(3) if (v := at(current - k)) is not None), default=0.0))
    for text, expected in (
        ("next(hot(t))", nexts),
        ("hot(t+1)", nexts),
        ("prev(hot(t))", prevs),
        ("hot(t-1)", prevs),
        ("eventually[1..3](hot(t))", soon),
        ("always[1..3](hot(t))", all_soon),
        ("once[0..2](hot(t))", before),
    ):
        found = Evaluator([rule(text)], WORLD)(steps).detach()
        torch.testing.assert_close(found, torch.tensor(expected), atol=1e-5, rtol=0, msg=text)


def test_quantifiers_run_over_the_constants_of_a_sort() -> None:
    steps = random_steps(10, 9)
    cup, pan = steps.observations[:, 1], steps.observations[:, 2]
    some = Evaluator([rule("exists x in thing: near(t, x)")], WORLD)(steps).detach()
    every = Evaluator([rule("forall x in thing: near(t, x)")], WORLD)(steps).detach()
    torch.testing.assert_close(some, 1 - (1 - cup) * (1 - pan), atol=1e-5, rtol=0)
    torch.testing.assert_close(every, cup * pan, atol=1e-5, rtol=0)


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_crisp_comparisons_hold_as_they_read(operator: str) -> None:
    steps = random_steps(5, 10)
    steps.observations[:, 3] = torch.tensor([-1.0, 0.5, 0.5, 0.75, 2.0])
    expected = [float(eval(f"{x} {operator} 0.5")) for x in steps.observations[:, 3].tolist()]
    found = Evaluator([rule(f"height(t) {operator} 0.5")], WORLD, sharpness=None)(steps)
    assert found.tolist() == expected


def test_soft_comparisons_are_steeper_with_sharpness_and_half_at_the_threshold() -> None:
    steps = random_steps(3, 10)
    steps.observations[:, 3] = torch.tensor([0.0, 0.5, 1.0])
    for k in (10.0, 30.0):
        found = Evaluator([rule("height(t) > 0.5")], WORLD, sharpness=k)(steps).detach()
        torch.testing.assert_close(found, torch.sigmoid(torch.tensor([-0.5, 0.0, 0.5]) * k / 4), atol=1e-5, rtol=0)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(0, 50))
def test_chunks_give_what_the_whole_gives(chunk: int, seed: int) -> None:
    found = [rule("eventually[0..3](hot(t)) & prev(prev(near(t, cup)))", weight=0.8), rule("height(t) < ?0.2")]
    steps = random_steps(37, seed)
    evaluator = Evaluator(found, WORLD)
    whole = evaluator(steps).detach()
    torch.testing.assert_close(evaluator.score(steps, chunk=chunk), whole)


def test_no_rules_score_nothing() -> None:
    assert not Evaluator([], WORLD)(random_steps(4, 0)).any()
    assert Evaluator([rule("hot(t)")], WORLD).score(random_steps(4, 0)[:0]).shape == (0,)


def test_true_as_body_fires_everywhere_and_false_nowhere() -> None:
    assert scores("true").tolist() == [1.0] * 8
    assert scores("false").tolist() == [0.0] * 8


def test_a_wrong_degree_inside_a_rule_set_names_the_predicate() -> None:
    steps = random_steps(6, 0)
    steps.observations[3, 0] = float("nan")
    with pytest.raises(DegreeError, match=r"hot\(t\) gave nan at row 3"):
        Evaluator([rule("near(t, cup) & hot(t)")], WORLD)(steps)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("cold(t)", "predicate cold"),
        ("near(t, lid)", "lid is no constant of sort thing"),
        ("near(t)", "0 arguments"),
        ("good(t)", "judged"),
        ("exists x in place: hot(t)", "sort place"),
    ],
)
def test_what_has_no_ground_is_refused(body: str, words: str) -> None:
    with pytest.raises(UngroundedError, match=words):
        Evaluator([rule(body)], WORLD)


def test_fitted_rules_carry_what_was_learnt() -> None:
    evaluator = Evaluator(parse_rules(THRESHOLDS).rules, WORLD)
    with torch.no_grad():
        evaluator.thresholds.copy_(torch.tensor([0.25, 9.0, 0.5, 1.5, -3.0]))
        evaluator.weights.copy_(torch.tensor([1.5, 0.5, -1.0]))
    evaluator.project()
    assert evaluator.thresholds.tolist() == [0.25, 2.0, 0.5, 1.5, -2.0]
    fitted = evaluator.fitted_rules()
    assert [item.weight for item in fitted] == [1.0, 0.5, 0.0]
    again = Evaluator(fitted, WORLD)
    assert again.thresholds.tolist() == evaluator.thresholds.tolist()


def test_learning_moves_a_threshold_to_where_the_outcome_turns() -> None:
    """Correlation of firing and outcome: the planted threshold is 0.5, the start is off by 1."""
    steps = random_steps(2000, 11)
    outcome = (steps.observations[:, 3] < 0.5).float()
    evaluator = Evaluator([rule("height(t) < ?-0.5")], WORLD)
    optimizer = torch.optim.Adam([evaluator.thresholds], 0.05)
    for _ in range(150):
        fired = evaluator.firings(steps)[:, 0]
        loss = -torch.corrcoef(torch.stack([fired, outcome]))[0, 1]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        evaluator.project()
    assert abs(float(evaluator.thresholds[0].detach()) - 0.5) < 0.1
