"""Truth tables against brute force: every world is played as an episode and evaluated by the grounding's twin."""

from __future__ import annotations

import random
from itertools import product

import pytest
import torch
from torch import Tensor

from nser.grounding.interpret import interpret
from nser.grounding.lower import lower
from nser.grounding.operators import GODEL
from nser.grounding.steps import Steps
from nser.grounding.vocabulary import Vocabulary, number, predicate
from nser.rules.logic import Budget, contradiction, equivalent, implies, overlap, satisfiable, tautology
from nser.rules.parse import parse_formula
from nser.rules.syntax import (
    Atom,
    Comparison,
    ComparisonOperator,
    Constant,
    Formula,
    Iff,
    Implies,
    Not,
    Quantified,
    Temporal,
    TemporalOperator,
    Threshold,
    Truth,
    Variable,
    Window,
)
from nser.rules.walk import conjunction, disjunction

ACTIONS = ("a", "b", "c")
POINTS = (-0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5)


@predicate()
def p(steps: Steps) -> Tensor:
    """One thing."""
    return steps.observations[:, 0]


@predicate("object")
def q(steps: Steps, thing: str) -> Tensor:
    """Another thing, of two objects."""
    return steps.observations[:, 1 if thing == "key" else 2]


@number(unit="m")
def x(steps: Steps) -> Tensor:
    """A number."""
    return steps.observations[:, 3]


WORLD = Vocabulary("world", (p, q, x), {"object": ("key", "door")}, ACTIONS)
SIGNATURE = WORLD.signature
T = Variable("t")


class Brute:
    """Formulas over every episode of a list, each at one step of it."""

    def __init__(self, episodes: list[tuple[list[tuple[float, ...]], int]]) -> None:
        rows = [row for episode, _ in episodes for row in episode]
        numbers = [i for i, (episode, _) in enumerate(episodes) for _ in episode]
        self.steps = Steps(
            torch.tensor([row[:4] for row in rows]),
            torch.tensor([int(row[4]) for row in rows]),
            torch.tensor(numbers),
        )
        starts = [0]
        for episode, _ in episodes:
            starts.append(starts[-1] + len(episode))
        self.at = torch.tensor([start + step for start, (_, step) in zip(starts, episodes, strict=False)])

    def holds(self, formula: Formula) -> Tensor:
        return interpret(lower(formula, SIGNATURE), self._leaf, self.steps.episodes, GODEL)[self.at] > 0.5

    def _leaf(self, leaf: Atom | Comparison) -> Tensor:
        if isinstance(leaf, Atom):
            return WORLD.degrees(leaf, self.steps)
        values, cut = WORLD.numbers(leaf.feature, self.steps), leaf.threshold.value
        tests = {"<": values < cut, "<=": values <= cut, ">": values > cut, ">=": values >= cut}
        return tests[leaf.operator].float()


STILL = Brute([([(*bits, at, action)], 0) for *bits, at, action in product((0, 1), (0, 1), (0, 1), POINTS, range(3))])
# Two steps before at most and two after, `p` and `q(key)` alone.
MOVING = Brute(
    [
        ([(one, other, 0, 0, 0) for one, other in rows], past)
        for past in range(3)
        for future in range(3)
        for rows in product(product((0, 1), (0, 1)), repeat=past + 1 + future)
    ]
)


class Maker:
    """Random formulas; `time` allows temporal operators and leaves out what MOVING does not vary."""

    def __init__(self, seed: int, time: bool) -> None:
        self.random, self.time = random.Random(seed), time

    def leaf(self, bound: bool) -> Formula:
        choice = self.random.random()
        if self.time:
            offset = self.random.choice((0, 0, 0, 1, -1))
            return Atom("p", (Variable("t", offset),)) if choice < 0.5 else Atom("q", (T, Constant("key")))
        if choice < 0.1:
            return Truth(self.random.random() < 0.5)
        if choice < 0.3:
            return Atom("p", (T,))
        if choice < 0.5:
            term = Variable("o") if bound else Constant(self.random.choice(("key", "door")))
            return Atom("q", (T, term))
        if choice < 0.65:
            return Atom("action_is", (T, Constant(self.random.choice(ACTIONS))))
        operators: tuple[ComparisonOperator, ...] = ("<", "<=", ">", ">=")
        cut = Threshold(self.random.choice((0.0, 1.0, 2.0)), self.random.random() < 0.3)
        return Comparison(Atom("x", (T,)), self.random.choice(operators), cut)

    def formula(self, levels: int, bound: bool = False, moved: bool = False) -> Formula:
        kinds = ["leaf", "not", "and", "or", "implies", "iff"]
        kinds += ["temporal"] * 3 if self.time and not moved else [] if self.time else ["quantified"]
        kind = self.random.choice(kinds) if levels else "leaf"
        if kind == "leaf":
            return self.leaf(bound)
        again = [self.formula(levels - 1, bound or kind == "quantified", moved or kind == "temporal") for _ in "12"]
        match kind:
            case "not":
                return Not(again[0])
            case "and":
                return conjunction(tuple(again))
            case "or":
                return disjunction(tuple(again))
            case "implies":
                return Implies(*again)
            case "iff":
                return Iff(*again)
            case "quantified":
                quantifier = self.random.choice(("forall", "exists"))
                return Quantified(quantifier, "o", "object", again[0])  # type: ignore[arg-type]
            case "temporal":
                operators: tuple[TemporalOperator, ...] = ("next", "prev", "eventually", "always", "once")
                operator = self.random.choice(operators)
                window = None if operator in ("next", "prev") else self.random.choice((Window(0, 1), Window(1, 1)))
                return Temporal(operator, again[0], window)
        raise AssertionError(kind)


def pairs(count: int, seed: int, time: bool, levels: int) -> list[tuple[Formula, Formula]]:
    maker = Maker(seed, time)
    made = []
    for i in range(count):
        left = maker.formula(levels)
        # Half of the pairs are near each other, so that both answers are common.
        right = maker.formula(levels) if i % 2 else conjunction((left, maker.formula(1)))
        made.append((left, right))
    return made


@pytest.mark.parametrize(("time", "count", "levels"), [(False, 700, 3), (True, 300, 2)], ids=["still", "moving"])
def test_a_thousand_random_pairs_agree_with_brute_force(time: bool, count: int, levels: int) -> None:
    brute = MOVING if time else STILL
    seen = {"yes": 0, "no": 0}
    for left, right in pairs(count, 7, time, levels):
        one, other = brute.holds(left), brute.holds(right)
        expected = {
            equivalent: bool((one == other).all()),
            implies: bool((~one | other).all()),
        }
        for ask, right_answer in expected.items():
            answer = ask(left, right, SIGNATURE)
            assert answer == ("yes" if right_answer else "no"), (ask.__name__, left, right)
            seen[answer] += 1
        assert contradiction(left, SIGNATURE) == ("no" if one.any() else "yes"), left
        assert tautology(left, SIGNATURE) == ("yes" if one.all() else "no"), left
        assert overlap(left, right, SIGNATURE).answer == ("yes" if (one & other).any() else "no")
    assert min(seen.values()) > count / 10


@pytest.mark.parametrize(
    ("text", "can", "fails"),
    [
        ("x(t) < 1 & x(t) > 2", "no", "yes"),
        ("x(t) <= 1 & x(t) >= 1", "yes", "yes"),
        ("x(t) < 1 & x(t) >= 1", "no", "yes"),
        ("x(t) < 1 | x(t) > 1 | ~(x(t) < 1) & ~(x(t) > 1)", "yes", "no"),
        ("action_is(t, a) & action_is(t, b)", "no", "yes"),
        ("prev(action_is(t, a)) & action_is(t, b)", "yes", "yes"),
        ("~next(p(t)) & ~next(~p(t))", "yes", "yes"),
        ("always[0..3](p(t)) -> p(t)", "yes", "no"),
        ("p(t+1) <-> next(p(t))", "yes", "no"),
        ("once[2..2](p(t)) <-> p(t-2)", "yes", "no"),
        ("true", "yes", "no"),
        ("false", "no", "yes"),
    ],
)
def test_what_can_hold_and_what_can_fail(text: str, can: str, fails: str) -> None:
    formula = parse_formula(text)
    assert satisfiable(formula).answer == can
    assert satisfiable(Not(formula)).answer == fails


def test_actions_are_all_there_are_only_where_a_vocabulary_says_so() -> None:
    every = parse_formula("action_is(t, a) | action_is(t, b) | action_is(t, c)")
    assert tautology(every) == "no"
    assert tautology(every, SIGNATURE) == "yes"


def test_quantifiers_are_looked_into_only_with_a_vocabulary() -> None:
    formula = parse_formula("(forall o in object: q(t, o)) & ~q(t, key)")
    assert satisfiable(formula).answer == "undecided"
    assert satisfiable(formula, SIGNATURE).answer == "no"


def test_beyond_the_cap_the_answer_is_undecided_never_wrong() -> None:
    many = " & ".join(f"(p{i}(t) | r{i}(t))" for i in range(9))
    assert satisfiable(parse_formula(many)).answer == "undecided"
    assert satisfiable(parse_formula(" & ".join(f"p{i}(t)" for i in range(16)))).answer == "yes"
    wide = "eventually[0..900](p(t))"
    assert satisfiable(parse_formula(f"{wide} & ~{wide}")).answer == "no", "what is not looked into may still decide"
    assert satisfiable(parse_formula(wide)).answer == "undecided"


def test_a_spent_budget_answers_undecided() -> None:
    budget = Budget(0)
    assert equivalent(parse_formula("p(t)"), parse_formula("p(t)"), budget=budget) == "undecided"
    assert budget.over


def test_a_world_is_told_in_words() -> None:
    told = overlap(parse_formula("x(t) < 3 & x(t) > 1 & action_is(t, a)"), parse_formula("~p(t)"))
    assert dict(told.world) == {"x(t)": "above 1 and below 3", "action": "a", "p(t)": "false"}
