"""What the reader makes of the surface language: spellings, precedence, binding, positions."""

from __future__ import annotations

import pytest

from nser.rules.parse import parse_formula, parse_rule
from nser.rules.printer import print_formula, print_rule
from nser.rules.syntax import (
    KEYWORDS,
    Atom,
    Comparison,
    Constant,
    Not,
    Position,
    Quantified,
    Rule,
    Temporal,
    Threshold,
    Variable,
    Window,
)
from nser.rules.walk import atoms, conjuncts

T = Variable("t")
GOOD = Atom("good", (T,))
IN = "rule a: forall t in step: "


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("not done(t)", "~done(t)"),
        ("¬done(t)", "~done(t)"),
        ("not_done(t) & notdone(t)", "not_done(t) & notdone(t)"),
        ("p(t) and q(t) or not r(t)", "p(t) & q(t) | ~r(t)"),
        ("p(t)∧q(t)∨¬r(t)", "p(t) & q(t) | ~r(t)"),
        ("(p(t) implies q(t)) & (p(t) → q(t))", "(p(t) -> q(t)) & (p(t) -> q(t))"),
        ("(p(t) iff q(t)) | (p(t) ↔ q(t))", "(p(t) <-> q(t)) | (p(t) <-> q(t))"),
        ("∃ o ∈ object: near(t, o)", "exists o in object: near(t, o)"),
        ("∀o∈object:near(t,o)", "forall o in object: near(t, o)"),
        ("x(t) ≤ 3 & x(t) ≥ ?-2", "x(t) <= 3.0 & x(t) >= ?-2.0"),
        ("(((p(t))))", "p(t)"),
        ("p(t) & (q(t) & r(t))", "p(t) & q(t) & r(t)"),
        ("true & ~false", "true & ~false"),
        ("true_north(t) | nexto(t)", "true_north(t) | nexto(t)"),
        ("p( t , key ) & q(t + 1) & r(t-2) & s(t+0)", "p(t, key) & q(t+1) & r(t-2) & s(t)"),
        ("eventually [ 0 .. 5 ] ( p(t) )", "eventually[0..5](p(t))"),
        ("always[00..007](p(t))", "always[0..7](p(t))"),
    ],
)
def test_spellings(written: str, canonical: str) -> None:
    assert print_formula(parse_formula(written)) == canonical
    assert print_rule(parse_rule(f"{IN}{written.join('()')} -> good(t)")).startswith(IN)


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.30", 0.3), ("3", 3.0), ("-4", -4.0), (".5", 0.5), ("1e-3", 1e-3), ("-2.5E+10", -2.5e10), ("0", 0.0)],
)
def test_thresholds_are_fixed_or_learnable(text: str, value: float) -> None:
    feature = Atom("dist", (T,))
    for sign in ("<", "<=", ">", ">="):
        for glue in ("", " "):
            assert parse_formula(f"dist(t){glue}{sign}{glue}{text}") == Comparison(feature, sign, Threshold(value))
    assert parse_formula(f"dist(t) < ?{text}") == Comparison(feature, "<", Threshold(value, learnable=True))
    assert parse_formula(f"dist(t) < ? {text}") == Comparison(feature, "<", Threshold(value, learnable=True))


def test_a_comparison_with_a_negative_number_is_no_equivalence() -> None:
    assert parse_formula("dist(t)<-1") == Comparison(Atom("dist", (T,)), "<", Threshold(-1.0))


def test_a_whole_rule() -> None:
    rule = parse_rule("rule far [0.25]: forall t in step: near(t, key) & eventually[0..5](open(t)) -> ~good(t) ;\n")
    assert rule.name == "far"
    assert rule.weight == 0.25
    assert (rule.variable, rule.sort) == ("t", "step")
    assert rule.head == Not(GOOD)
    near, soon = conjuncts(rule.body)
    assert near == Atom("near", (T, Constant("key")))
    assert soon == Temporal("eventually", Atom("open", (T,)), Window(0, 5))


@pytest.mark.parametrize("sort", ["clip", "rollout"])
def test_other_sorts_and_variables_are_bound(sort: str) -> None:
    rule = parse_rule(f"rule a: forall r in {sort}: p(r, t) -> good(r)")
    assert rule == Rule("a", Atom("p", (Variable("r"), Constant("t"))), Atom("good", (Variable("r"),)), 1.0, "r", sort)


def test_the_first_arrow_outside_parentheses_ends_the_body() -> None:
    assert print_formula(parse_rule(IN + "(p(t) -> q(t)) -> good(t)").body) == "p(t) -> q(t)"
    assert print_formula(parse_rule(IN + "p(t) implies good(t)").body) == "p(t)"


def test_a_quantifier_reaches_over_and_and_or_but_not_over_an_arrow() -> None:
    body = parse_rule(IN + "p(t) & exists o in object: near(t, o) & red(t, o) | q(t) -> good(t)").body
    assert print_formula(body) == "p(t) & (exists o in object: near(t, o) & red(t, o) | q(t))"
    assert print_formula(parse_formula("exists o in object: near(t, o) -> q(t)")) == (
        "(exists o in object: near(t, o)) -> q(t)"
    )
    assert print_formula(parse_formula("~exists o in object: near(t, o) & q(t)")) == (
        "~(exists o in object: near(t, o) & q(t))"
    )


def test_names_are_variables_only_where_a_quantifier_binds_them() -> None:
    near = Atom("near", (T, Variable("o")))
    assert parse_formula("exists o in object: near(t, o)") == Quantified("exists", "o", "object", near)
    _, outside = conjuncts(parse_formula("(exists o in object: near(t, o)) & near(t, o)"))
    assert outside == Atom("near", (T, Constant("o")))
    assert parse_formula("p(s) & q(s+1)", variable="s") == parse_formula("p(s) & q(s + 1)", variable="s")
    assert parse_formula("p(s)") == Atom("p", (Constant("s"),))


@pytest.mark.parametrize(
    "head",
    [
        *["good(t)", "~good(t)", "next(open(t))", "~next(open(t))", "next(~open(t))", "action_is(t, left)"],
        *["eventually[0..3](dist(t) < 2.0)", "~(dist(t) < 2.0)", "prev(once[1..2](~open(t)))"],
    ],
)
def test_heads_are_literals_at_any_step(head: str) -> None:
    assert print_formula(parse_rule(f"{IN}p(t) -> {head}").head) == head
    assert print_formula(parse_rule(f"{IN}p(t) -> ({head})").head) == head


def test_positions_count_lines_and_columns_from_one() -> None:
    text = "# first\n\n  rule a: forall t in step:\n\tp(t)\n  & q(t) -> good(t)\n"
    rule = parse_rule(text)
    assert rule.position == Position(3, 3, text.index("rule a"))
    p, q, good = (*atoms(rule.body), *atoms(rule.head))
    assert p.position == Position(4, 2, text.index("p(t)"))
    assert q.position == Position(5, 5, text.index("q(t)"))
    assert good.position == Position(5, 13, text.index("good"))


@pytest.mark.parametrize("word", sorted(KEYWORDS))
def test_a_keyword_is_the_start_of_a_name_but_no_name(word: str) -> None:
    rule = parse_rule(f"rule {word}_: forall {word}1 in {word}s: {word}x({word}1, {word}y) -> good({word}1)")
    assert rule.name == f"{word}_"
    assert rule.body == Atom(f"{word}x", (Variable(f"{word}1"), Constant(f"{word}y")))
