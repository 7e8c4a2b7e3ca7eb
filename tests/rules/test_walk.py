"""Walks against slow, recursive twins."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings

from nser.rules.parse import parse_formula
from nser.rules.printer import print_formula
from nser.rules.signature import Scope
from nser.rules.syntax import (
    And,
    Atom,
    Comparison,
    Constant,
    Formula,
    Iff,
    Implies,
    Not,
    Or,
    Quantified,
    Temporal,
    Truth,
    Variable,
)
from nser.rules.walk import (
    atoms,
    children,
    conjunction,
    conjuncts,
    depth,
    disjunction,
    fold,
    horizon,
    literals,
    nodes,
    scope_of,
    substitute,
    with_children,
)
from tests.rules.strategies import SIGNATURE, formulas


def slow_nodes(formula: Formula) -> Iterator[Formula]:
    yield formula
    match formula:
        case Not(operand) | Temporal(_, operand) | Quantified(_, _, _, operand):
            yield from slow_nodes(operand)
        case And(operands) | Or(operands):
            for operand in operands:
                yield from slow_nodes(operand)
        case Implies(left, right) | Iff(left, right):
            yield from slow_nodes(left)
            yield from slow_nodes(right)


def slow_steps(formula: Formula, now: int) -> Iterator[int]:
    """Every step that a formula reads, one by one."""
    match formula:
        case Atom(_, args):
            yield from (now + term.offset for term in args if isinstance(term, Variable))
        case Comparison(feature):
            yield from slow_steps(feature, now)
        case Truth():
            yield now
        case Temporal(operator, operand, window):
            first, last = (window.start, window.stop) if window else (1, 1)
            sign = -1 if operator in {"prev", "once"} else 1
            for away in {first, last}:
                yield from slow_steps(operand, now + sign * away)
        case _:
            for child in children(formula):
                yield from slow_steps(child, now)


@given(formulas(levels=4))
@settings(max_examples=40)
def test_nodes_come_in_reading_order(formula: Formula) -> None:
    assert list(nodes(formula)) == list(slow_nodes(formula))


@given(formulas(levels=4))
@settings(max_examples=40)
def test_atoms_and_literals_come_in_reading_order(formula: Formula) -> None:
    leaves = [node for node in slow_nodes(formula) if not children(node)]
    assert list(atoms(formula)) == [
        leaf.feature if isinstance(leaf, Comparison) else leaf for leaf in leaves if not isinstance(leaf, Truth)
    ]
    found = literals(formula)
    assert [one.operand if isinstance(one, Not) else one for one in found] == leaves
    assert sum(isinstance(one, Not) for one in found) == sum(
        isinstance(node, Not) and not children(node.operand) for node in slow_nodes(formula)
    )


@given(formulas(levels=4))
@settings(max_examples=40)
def test_a_formula_is_rebuilt_from_its_parts(formula: Formula) -> None:
    assert with_children(formula, children(formula)) == formula
    assert fold(formula, with_children) == formula


@given(formulas(levels=4))
@settings(max_examples=40)
def test_depth_counts_the_longest_way_down(formula: Formula) -> None:
    def slow(node: Formula) -> int:
        return 1 + max((slow(child) for child in children(node)), default=0)

    assert depth(formula) == slow(formula) <= 5


@given(formulas(levels=3))
def test_the_horizon_holds_every_step_that_is_read(formula: Formula) -> None:
    steps = list(slow_steps(formula, 0))
    assert horizon(formula) == (max(0, -min(steps)), max(0, *steps))


@pytest.mark.parametrize(
    ("text", "past", "future"),
    [
        ("p(t)", 0, 0),
        ("true", 0, 0),
        ("p(t+2) | q(t-3)", 3, 2),
        ("next(next(p(t)))", 0, 2),
        ("prev(p(t+1))", 0, 0),
        ("once[2..4](p(t))", 4, 0),
        ("always[3..9](once[0..2](p(t)))", 0, 9),
        ("eventually[0..5](p(t)) & dist(t-7) < 3", 7, 5),
        ("next(true)", 0, 1),
    ],
)
def test_horizons(text: str, past: int, future: int) -> None:
    assert horizon(parse_formula(text)) == (past, future)


def test_substitution_leaves_what_a_quantifier_binds_again() -> None:
    formula = parse_formula("exists x in object: p(t, x) & (exists x in object: q(t, x)) & d(t, x) < 3")
    assert isinstance(formula, Quantified)
    replaced = substitute(formula.operand, "x", Constant("key"))
    assert print_formula(replaced) == "p(t, key) & (exists x in object: q(t, x)) & d(t, key) < 3.0"
    assert substitute(formula, "x", Constant("key")) == formula
    assert substitute(formula.operand, "y", Constant("key")) == formula.operand


@given(formulas(SIGNATURE))
def test_substitution_leaves_no_free_occurrence(formula: Formula) -> None:
    replaced = substitute(formula, "t", Constant("now"))
    assert not any(Variable("t", offset) in atom.args for atom in atoms(replaced) for offset in range(-3, 4))
    assert len(atoms(replaced)) == len(atoms(formula))


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("carrying(t) & true", "state"),
        ("dist_goal(t) < 3", "state"),
        ("carrying(t) & action_is(t, left)", "action"),
        ("prev(action_is(t, left)) & carrying(t)", "state"),
        ("action_is(t-1, left)", "state"),
        ("bumped(t)", "transition"),
        ("prev(bumped(t)) & action_is(t, left)", "action"),
        ("once[0..3](bumped(t))", "transition"),
        ("once[1..3](bumped(t))", "state"),
        ("once[0..3](action_is(t, left))", "action"),
        ("next(carrying(t))", "transition"),
        ("next(prev(carrying(t)))", "state"),
        ("eventually[0..2](carrying(t)) | action_is(t, left)", "transition"),
        ("next(true)", "transition"),
        ("unheard_of(t)", "transition"),
        ("prev(unheard_of(t))", "transition"),
    ],
)
def test_scopes(text: str, scope: Scope) -> None:
    assert scope_of(parse_formula(text), SIGNATURE) == scope


def test_conjunctions_and_disjunctions_are_flat() -> None:
    p, q, r = (parse_formula(f"{name}(t)") for name in "pqr")
    assert conjunction((p, And((q, r)))) == And((p, q, r))
    assert disjunction((Or((p, q)), r)) == Or((p, q, r))
    assert conjunction((p,)) == disjunction((p,)) == p
    assert conjunction(()) == Truth(True)
    assert disjunction(()) == Truth(False)
    assert conjuncts(And((p, q))) == (p, q)
    assert conjuncts(Or((p, q))) == (Or((p, q)),)
