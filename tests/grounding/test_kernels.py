"""Every kernel against the slow twin, in value and gradient, for rule sets that hypothesis makes up."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from nser.grounding.columns import map_comparisons
from nser.grounding.errors import DegreeError, ImplicationWarning
from nser.grounding.evaluator import DENSE_ROWS, Evaluator, Mode
from nser.grounding.operators import GODEL, LUKASIEWICZ, PRODUCT, Logic, goguen, yager
from nser.grounding.products import Products, TensorProducts
from nser.grounding.products_numba import NumbaProducts
from nser.grounding.reference import reference_truths, stacked
from nser.grounding.steps import Steps, single_steps
from nser.grounding.sweep import Sweep
from nser.grounding.temporal import windowed
from nser.grounding.vocabulary import Predicate, Vocabulary
from nser.rules.parse import parse_rule
from nser.rules.signature import PredicateSignature
from nser.rules.syntax import Comparison, Rule, TemporalOperator, Threshold, Window, blames
from tests.grounding.world import WORLD, random_steps
from tests.rules.strategies import OPERATORS, rules

LOGICS = (PRODUCT, GODEL, LUKASIEWICZ, yager(2.0))
MODES: tuple[Mode, ...] = ("support", "relevance", "violation")


def within_range(found: Rule) -> Rule:
    """The rule with thresholds between −2 and 2, where the features are: far away nothing has a gradient."""

    def tame(item: Comparison) -> Comparison:
        value = 2 * math.tanh(item.threshold.value / 2)
        return Comparison(item.feature, item.operator, Threshold(value, item.threshold.learnable))

    judged = found.head if "good" in str(found.head) else map_comparisons(found.head, tame)
    return replace(found, body=map_comparisons(found.body, tame), head=judged)


RULES = st.lists(rules(WORLD.signature, levels=2).map(within_range), min_size=1, max_size=4)


def rule(body: str, head: str = "good(t)", weight: float = 1.0) -> Rule:
    return parse_rule(f"rule r [{weight}]: forall t in step: {body} -> {head}")


def reference_scores(found: list[Rule], steps: Steps, mode: Mode, weights: Tensor, thresholds: list[Tensor]) -> Tensor:
    """[T] scores as the evaluator's docstring has them."""
    body, head = reference_truths(found, WORLD, steps, thresholds=thresholds)
    fired = {"support": body * head, "relevance": body, "violation": body * (1 - head)}[mode]
    scored = torch.tensor([float(not blames(item)) for item in found])
    return 1 - (1 - fired * weights * scored).prod(1)


def assert_gradient(found: nn.Parameter, expected: list[Tensor]) -> None:
    zero = torch.zeros(0)
    wanted = torch.cat([zero, *(torch.zeros(t.numel()) if t.grad is None else t.grad.reshape(-1) for t in expected)])
    given_back = torch.zeros_like(found) if found.grad is None else found.grad
    torch.testing.assert_close(given_back, wanted, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", [TensorProducts, NumbaProducts])
@settings(max_examples=60, deadline=None)
@given(RULES, st.integers(0, 99), st.sampled_from(MODES), st.integers(1, 40), st.booleans())
@example([parse_rule("rule everywhere: forall t in step: true -> good(t)")], 0, "support", 1, False)  # no column at all
def test_kernels_agree_with_the_interpreter_in_value_and_gradient(
    kind: type[Products], found: list[Rule], seed: int, mode: Mode, chunk: int, crisp: bool
) -> None:
    steps = random_steps(31, seed, crisp=crisp)
    evaluator = Evaluator(found, WORLD, mode=mode)
    weights = evaluator.weights.detach().clone().requires_grad_()
    thresholds = [t.clone().requires_grad_() for t in evaluator.thresholds.detach()]
    expected = reference_scores(found, steps, mode, weights, thresholds)
    mixed = torch.linspace(-1, 2, len(steps)) / len(steps)
    none = 0 * weights.sum()  # so that there is something to differentiate where no rule scores
    ((expected + none) * mixed).sum().backward()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sweep, "products", products_of(kind))
        for scores in (evaluator(steps), evaluator._swept(steps, chunk)):
            evaluator.zero_grad()
            torch.testing.assert_close(scores, expected, atol=1e-5, rtol=0)
            ((scores + 0 * evaluator.weights.sum()) * mixed).sum().backward()
            assert_gradient(evaluator.weights, [weights])
            assert_gradient(evaluator.thresholds, thresholds)


def products_of(kind: type[Products]) -> object:
    def products(self: Sweep, steps: Steps, weights: Tensor, size: int) -> Products:
        rows = min(size + self.past + self.future, len(steps))
        return kind(self.conjunctions, weights.detach()[self.rules], self.soft, rows, steps.dtype)  # type: ignore[call-arg]

    return products


@settings(max_examples=25, deadline=None)
@given(RULES, st.integers(0, 99), st.sampled_from(LOGICS), st.sampled_from(MODES), st.integers(1, 40))
def test_sweeps_of_every_logic_give_what_the_whole_gives(
    found: list[Rule], seed: int, logic: Logic, mode: Mode, chunk: int
) -> None:
    steps = random_steps(31, seed)
    evaluator = Evaluator(found, WORLD, logic=logic, mode=mode)
    torch.testing.assert_close(evaluator.score(steps, chunk=chunk), evaluator.score(steps), atol=1e-5, rtol=0)
    crisp = Evaluator(found, WORLD, logic=logic, mode=mode, sharpness=None)
    torch.testing.assert_close(crisp.score(steps, chunk=chunk), crisp.score(steps), atol=1e-5, rtol=0)


def test_long_batches_are_swept_and_agree() -> None:
    text = "height(t) < ?0.3 & hot(t) & ~near(t, cup) & eventually[0..2](near(t, pan))"
    found = [rule(text, weight=0.9), rule("clock(t) > ?-1", weight=0.4), rule("true", weight=0.1)]
    steps = random_steps(DENSE_ROWS + 500, 1)
    swept = Evaluator(found, WORLD)
    swept(steps).mean().backward()
    whole = Evaluator(found, WORLD)
    firings = whole.firings(steps)
    assert firings.shape == (len(steps), 3)
    whole.combine(firings).mean().backward()
    torch.testing.assert_close(swept(steps), whole.combine(whole.firings(steps)), atol=1e-5, rtol=0)
    torch.testing.assert_close(swept.weights.grad, whole.weights.grad, atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(swept.thresholds.grad, whole.thresholds.grad, atol=1e-6, rtol=1e-4)
    assert whole.thresholds.grad is not None
    assert (whole.thresholds.grad.abs() > 1e-4).all()


class Learned(nn.Module):
    """A predicate with parameters of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 1)

    def on_steps(self, steps: Steps) -> Tensor:
        found: Tensor = torch.sigmoid(self.layer(steps.observations)).squeeze(1)
        return found


def test_gradients_reach_what_the_vocabulary_learns() -> None:
    torch.manual_seed(0)
    learned = Learned()
    told = Predicate(PredicateSignature("told", doc="what the network says"), learned.on_steps)
    vocabulary = Vocabulary("learned", (told, *WORLD.declared), {"thing": ("cup", "pan")})
    found = [rule("told(t) & hot(t)", weight=0.7), rule("~told(t) | prev(told(t)) & height(t) > ?0.1", weight=0.3)]
    steps = random_steps(60, 2)
    evaluator = Evaluator(found, vocabulary)
    gradients = []
    for scores in (evaluator(steps), evaluator._swept(steps, 7)):
        evaluator.zero_grad()
        learned.zero_grad()
        (scores**2).sum().backward()
        gradients.append(
            [p.grad.clone() for p in (*learned.parameters(), *evaluator.parameters()) if p.grad is not None]
        )
    assert len(gradients[0]) == 4
    for dense, swept in zip(*gradients, strict=True):
        assert dense.abs().max() > 1e-3
        torch.testing.assert_close(swept, dense, atol=1e-5, rtol=1e-4)


def test_gradients_reach_a_learned_number_in_long_batches_too() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(5, 1)
    signature = PredicateSignature("level", kind="number", low=-2, high=2, doc="what the network measures")
    level = Predicate(signature, lambda steps: layer(steps.observations).squeeze(1))
    evaluator = Evaluator(
        [rule("level(t) < ?0.3 & hot(t)")], Vocabulary("learned", (level, *WORLD.declared), {"thing": ("cup", "pan")})
    )
    steps = random_steps(DENSE_ROWS + 100, 5)
    gradients = []
    for scores in (evaluator(steps), evaluator.combine(evaluator.firings(steps))):
        layer.zero_grad()
        (scores**2).mean().backward()
        assert layer.weight.grad is not None
        gradients.append(layer.weight.grad.clone())
    assert gradients[0].abs().max() > 1e-4
    torch.testing.assert_close(*gradients, atol=1e-6, rtol=1e-4)


def test_a_wrong_degree_far_down_is_named_with_its_predicate() -> None:
    steps = random_steps(50, 0)
    steps.observations[33, 1] = 1.5
    evaluator = Evaluator([rule("hot(t) & near(t, cup)")], WORLD)
    with pytest.raises(DegreeError, match=r"near\(t, cup\) gave 1.5 at row 3,"):
        evaluator.score(steps, chunk=30)
    steps = random_steps(50, 0)
    steps.observations[20, 3] = float("inf")
    with pytest.raises(DegreeError, match=r"height\(t\) gave inf at row 20"):
        Evaluator([rule("height(t) < 1")], WORLD)(steps)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(OPERATORS), st.integers(0, 12), st.integers(0, 30), st.sampled_from(LOGICS), st.integers(0, 50))
def test_windows_are_what_they_say(operator: TemporalOperator, start: int, more: int, logic: Logic, seed: int) -> None:
    steps = random_steps(25, seed)
    degrees = steps.observations[:, 0]
    window = Window(start, start + more)
    found = windowed(operator, degrees, window, steps.episodes, logic)
    expected = stacked(operator, degrees, window, steps.episodes, logic)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_scoring_by_implication_is_warned_of_and_does_what_it_says() -> None:
    steps = random_steps(20, 3)
    hot, cup = steps.observations[:, 0], steps.observations[:, 1]
    with pytest.warns(ImplicationWarning, match="use mode='support'"):
        scores = Evaluator([rule("hot(t)", "near(t, cup)")], WORLD, mode="implication")(steps)
    torch.testing.assert_close(scores.detach(), 1 - hot + hot * cup, atol=1e-5, rtol=0)
    with pytest.warns(ImplicationWarning):
        other = Evaluator(
            [rule("hot(t)", "near(t, cup)")], WORLD, mode="implication", logic=replace(PRODUCT, implies=goguen)
        )
    torch.testing.assert_close(other(steps).detach(), goguen(hot, cup), atol=1e-5, rtol=0)


def test_sharpness_may_change_in_place() -> None:
    steps = random_steps(30, 4)
    evaluator = Evaluator([rule("height(t) < 0.5")], WORLD, sharpness=10.0)
    evaluator.sharpness = None
    assert evaluator(steps).tolist() == (steps.observations[:, 3] < 0.5).float().tolist()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_scores_on_a_cuda_device_are_those_of_the_cpu() -> None:
    found = [rule("height(t) < ?0.3 & hot(t) & action_is(t, left)", weight=0.9), rule("prev(clock(t) > ?-1)")]
    steps = random_steps(200, 1)
    there = Steps(steps.observations.cuda(), steps.actions.cuda(), steps.episodes.cuda())
    evaluator = Evaluator(found, WORLD)
    for chunk in (None, 64):
        scores = evaluator.score(there, chunk)
        assert scores.device.type == "cuda"
        torch.testing.assert_close(scores.cpu(), evaluator.score(steps), atol=1e-5, rtol=0)


def test_single_rows_have_no_neighbours() -> None:
    steps = single_steps(torch.ones(3, 5), torch.zeros(3, dtype=torch.int64))
    assert Evaluator([rule("next(hot(t)) | prev(hot(t))")], WORLD)(steps).tolist() == [0, 0, 0]


def test_a_chunk_reads_the_steps_on_the_way_to_the_step_it_asks_for() -> None:
    """`next(p(t-1))` speaks of now, and is false in an episode's last step."""
    steps = random_steps(20, 3)
    evaluator = Evaluator([rule("next(hot(t-1)) & prev(hot(t+1))")], WORLD)
    assert (evaluator.past, evaluator.future) == (1, 1)
    torch.testing.assert_close(evaluator.score(steps, chunk=1), evaluator.score(steps), atol=1e-5, rtol=0)


def test_a_threshold_beyond_all_floats_spoils_no_other_rule() -> None:
    steps = random_steps(10, 0)
    found = [rule("hot(t)"), rule("height(t) < 4.5e37"), rule("height(t) > 4.5e37")]
    body, _ = Evaluator(found, WORLD).truths(steps)
    torch.testing.assert_close(body[:, 0], steps.observations[:, 0])
    assert body[:, 1:].tolist() == [[1.0, 0.0]] * 10
