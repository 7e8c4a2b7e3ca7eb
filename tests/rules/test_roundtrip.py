"""What is printed reads back as the same rule, in every spelling."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nser.rules.parse import parse_formula, parse_rule, parse_rules
from nser.rules.printer import print_formula, print_rule, unicode_formula, unicode_rule
from nser.rules.syntax import (
    MAX_DEPTH,
    MAX_LITERALS,
    And,
    Atom,
    Formula,
    Iff,
    Implies,
    Not,
    Or,
    Quantified,
    Rule,
    Temporal,
    Variable,
    Window,
)
from nser.rules.walk import atoms, depth
from tests.rules.strategies import formulas, rules

P, Q, R = (Atom(name, (Variable("t"),)) for name in "pqr")
GOOD = Atom("good", (Variable("t"),))


@given(rules())
def test_a_printed_rule_reads_back(rule: Rule) -> None:
    text = print_rule(rule)
    assert text.isascii()
    assert "\n" not in text
    again = parse_rule(text)
    assert again == rule
    assert print_rule(again) == text


@given(formulas(levels=4))
@settings(max_examples=60)
def test_a_printed_formula_reads_back_in_both_alphabets(formula: Formula) -> None:
    assert parse_formula(print_formula(formula)) == formula
    assert parse_formula(unicode_formula(formula)) == formula


@given(rules())
def test_the_signs_of_logic_read_back(rule: Rule) -> None:
    assert parse_rule(unicode_rule(rule)) == rule


@given(rules(quoted=False))
def test_the_signs_of_logic_replace_the_others(rule: Rule) -> None:
    text = unicode_rule(rule)
    assert not {"&", "|", "->", "<->", "forall", "exists", "<=", ">="} & set(text.split())


@given(rules(quoted=False), st.data())
@settings(max_examples=50)
def test_blanks_and_comments_between_tokens_change_nothing(rule: Rule, data: st.DataObject) -> None:
    blanks = st.sampled_from((" ", "\n", "\t ", "  # a note -> ) rule\n", "\r\n", "\u00a0"))
    words = print_rule(rule).split(" ")
    text = words[0] + "".join(data.draw(blanks) + word for word in words[1:])
    assert parse_rule(text) == rule


@given(st.lists(rules(levels=1), max_size=5, unique_by=lambda rule: rule.name), st.sampled_from("\n; "))
@settings(max_examples=50)
def test_a_batch_reads_back_whatever_stands_between(batch: list[Rule], between: str) -> None:
    text = between.join(print_rule(rule) for rule in batch)
    parsed = parse_rules(text, strict=True)
    assert parsed.problems == ()
    assert parsed.rules == tuple(batch)


@given(rules())
@settings(max_examples=30)
def test_rules_copy_and_pickle(rule: Rule) -> None:
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert copy.deepcopy(rule) == rule


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (And((Or((P, Q)), R)), "(p(t) | q(t)) & r(t)"),
        (Or((And((P, Q)), R)), "p(t) & q(t) | r(t)"),
        (Not(And((P, Q))), "~(p(t) & q(t))"),
        (Not(Not(P)), "~~p(t)"),
        (And((Not(P), Q)), "~p(t) & q(t)"),
        (Implies(P, Implies(Q, R)), "p(t) -> q(t) -> r(t)"),
        (Implies(Implies(P, Q), R), "(p(t) -> q(t)) -> r(t)"),
        (Iff(P, Iff(Q, R)), "p(t) <-> q(t) <-> r(t)"),
        (Iff(Iff(P, Q), R), "(p(t) <-> q(t)) <-> r(t)"),
        (Implies(Or((P, Q)), And((Q, R))), "p(t) | q(t) -> q(t) & r(t)"),
        (Temporal("next", Implies(P, Q)), "next(p(t) -> q(t))"),
        (Temporal("once", P, Window(0, 3)), "once[0..3](p(t))"),
        (Quantified("exists", "o", "object", And((P, Q))), "exists o in object: p(t) & q(t)"),
        (And((P, Quantified("exists", "o", "object", Q))), "p(t) & (exists o in object: q(t))"),
        (Not(Quantified("forall", "o", "object", P)), "~(forall o in object: p(t))"),
    ],
)
def test_parentheses_stand_only_where_they_are_needed(formula: Formula, text: str) -> None:
    assert print_formula(formula) == text
    assert parse_formula(text) == formula


def test_a_weight_of_one_is_not_printed() -> None:
    assert print_rule(Rule("a", P, GOOD)) == "rule a: forall t in step: p(t) -> good(t)"
    assert print_rule(Rule("a", P, Not(GOOD), 0.1)) == "rule a [0.1]: forall t in step: p(t) -> ~good(t)"


WRAPS: tuple[Callable[[Formula], Formula], ...] = (
    Not,
    lambda inner: Or((And((P, inner)), P)),
    lambda inner: Implies(inner, P),
    lambda inner: Iff(P, inner),
    lambda inner: Temporal("always", inner, Window(0, 1000)),
    lambda inner: Quantified("exists", "o", "object", inner),
    lambda inner: Not(Quantified("exists", "o", "object", Or((P, inner)))),
)


@pytest.mark.parametrize("wrap", WRAPS)
def test_rules_at_the_limits_read_back(wrap: Callable[[Formula], Formula]) -> None:
    deepest: Formula = P
    while depth(wrap(deepest)) <= MAX_DEPTH and len(atoms(wrap(deepest))) < MAX_LITERALS:
        deepest = wrap(deepest)
    rule = Rule("deep", deepest, GOOD)
    assert depth(deepest) > MAX_DEPTH - 4 or len(atoms(deepest)) > MAX_LITERALS - 4
    assert parse_rule(print_rule(rule)) == rule
