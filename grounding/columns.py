"""A rule set, compiled: which columns of degrees are needed, and which rule multiplies which of them.

Every body and head is a conjunction of signed *columns*. A column is an atom, a comparison, or any other
formula as a whole (a disjunction, something temporal); equal columns are shared by all rules, so a predicate
that ten rules use is computed once. Two columns with a learnable threshold are never shared: each rule owns
its threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nser.grounding.lower import lower
from nser.grounding.vocabulary import ACTION_IS
from nser.rules.signature import Signature
from nser.rules.syntax import (
    And,
    Atom,
    Comparison,
    Formula,
    Not,
    Rule,
    Threshold,
    Truth,
    blames,
    praises,
)
from nser.rules.walk import children, with_children


@dataclass(frozen=True, slots=True)
class Learnable:
    """Which learnable threshold this is: the `number`-th of the rule set, and whose."""

    rule: str
    number: int
    start: float
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class Columns:
    """The compiled form of `R` rules over `C` columns.

    formulas:  [C] lowered formulas without negation at the top: atoms first (of these the actions last), then
               comparisons, then all others, so that each kind is one block of rows
    atoms, comparisons: how many there are of these
    bodies, heads: [R] tuples of (column, positive?) whose conjunction they are; an empty head is one that data
               judges and is taken as true
    learnable: the thresholds that training may move; comparison k of them stands in the columns as a
               comparison whose threshold value is its number k, marked learnable
    """

    formulas: tuple[Formula, ...]
    atoms: int
    comparisons: int
    bodies: tuple[tuple[tuple[int, bool], ...], ...]
    heads: tuple[tuple[tuple[int, bool], ...], ...]
    learnable: tuple[Learnable, ...]


def compile_rules(rules: Sequence[Rule], signature: Signature) -> Columns:
    """Lower every rule and share its columns. Raises `UngroundedError` for what the vocabulary can't ground."""
    learnable: list[Learnable] = []
    numbers: dict[Formula, int] = {}

    def columns_of(formula: Formula, rule: Rule) -> tuple[tuple[int, bool], ...]:
        owned = _own_thresholds(lower(formula, signature), rule, learnable)
        signed = [_signed(part) for part in _conjuncts(owned)]
        return tuple((numbers.setdefault(part, len(numbers)), positive) for part, positive in signed)

    bodies, heads = [], []
    for rule in rules:
        bodies.append(columns_of(rule.body, rule))
        judged = praises(rule) or blames(rule)
        heads.append(() if judged else columns_of(rule.head, rule))
    order = sorted(numbers, key=_kind)  # stable: within a kind in reading order
    place = {numbers[formula]: new for new, formula in enumerate(order)}
    kinds = [_kind(formula) for formula in order]
    return Columns(
        formulas=tuple(order),
        atoms=kinds.count(0) + kinds.count(1),
        comparisons=kinds.count(2),
        bodies=tuple(tuple((place[column], sign) for column, sign in body) for body in bodies),
        heads=tuple(tuple((place[column], sign) for column, sign in head) for head in heads),
        learnable=tuple(learnable),
    )


def _kind(formula: Formula) -> int:
    if isinstance(formula, Atom):
        return 1 if formula.predicate == ACTION_IS else 0
    return 2 if isinstance(formula, Comparison) else 3


def map_comparisons(formula: Formula, change: Callable[[Comparison], Formula]) -> Formula:
    """The formula with every comparison replaced, in reading order."""
    if isinstance(formula, Comparison):
        return change(formula)
    return with_children(formula, tuple(map_comparisons(part, change) for part in children(formula)))


def _own_thresholds(formula: Formula, rule: Rule, learnable: list[Learnable]) -> Formula:
    def own(comparison: Comparison) -> Formula:
        if not comparison.threshold.learnable:
            return comparison
        number = len(learnable)
        learnable.append(Learnable(rule.name, number, comparison.threshold.value, comparison))
        return Comparison(comparison.feature, comparison.operator, Threshold(float(number), True))

    return map_comparisons(formula, own)


def _conjuncts(formula: Formula) -> tuple[Formula, ...]:
    if isinstance(formula, And):
        return formula.operands
    return () if formula == Truth(True) else (formula,)


def _signed(formula: Formula) -> tuple[Formula, bool]:
    positive = True
    while isinstance(formula, Not):
        formula, positive = formula.operand, not positive
    return formula, positive
