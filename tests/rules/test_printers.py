"""Rules as English, LaTeX and Prolog."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings

from nser.rules.parse import parse_formula, parse_rule
from nser.rules.print_english import english, english_formula
from nser.rules.print_latex import latex_formula, latex_rule
from nser.rules.print_prolog import prolog_rule
from nser.rules.signature import PredicateSignature, Signature
from nser.rules.syntax import Rule
from tests.rules.strategies import SIGNATURE, rules

IN = "rule a: forall t in step: "


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (
            "facing(t, key) & ~carrying(t) & action_is(t, pickup) -> good(t)",
            "when facing(key) and not carrying: pickup is good",
        ),
        ("action_is(t, left) -> ~good(t)", "left is bad"),
        ("carrying(t) -> good(t)", "when carrying: the step is good"),
        ("~action_is(t, left) -> good(t)", "when not action_is(left): the step is good"),
        (
            "action_is(t, left) & action_is(t, right) -> good(t)",
            "when action_is(left) and action_is(right): the step is good",
        ),
        (
            "prev(action_is(t, left)) & action_is(t, right) -> ~good(t)",
            "when at the step before action_is(left): right is bad",
        ),
        ("carrying(t) -> next(open(t, door))", "when carrying: at the next step open(door)"),
        ("dist(t) < ?3 -> good(t)", "when dist is below about 3: the step is good"),
        ("dist(t) >= 0.5 | ~(p(t) & q(t)) -> good(t)", "when dist is at least 0.5 or not (p and q): the step is good"),
    ],
)
def test_english_by_names(rule: str, told: str) -> None:
    assert english(parse_rule(IN + rule)) == told


@pytest.mark.parametrize(
    ("formula", "told"),
    [
        ("p(t-2)", "p 2 steps before"),
        ("p(t+1)", "p 1 step later"),
        ("eventually[0..5](p(t))", "at some step from 0 to 5 ahead p"),
        ("always[1..2](p(t) | q(t))", "at every step from 1 to 2 ahead (p or q)"),
        ("once[3..3](p(t))", "3 steps back p"),
        ("p(t) -> q(t)", "if p then q"),
        ("p(t) <-> true", "p exactly when always"),
        ("exists o in object: near(t, o) & red(t, o)", "for some object o, (near(o) and red(o))"),
        ("forall o in object: near(t, o)", "for every object o, near(o)"),
    ],
)
def test_english_of_formulas(formula: str, told: str) -> None:
    assert english_formula(parse_formula(formula)) == told


def test_english_by_the_meanings_of_a_vocabulary() -> None:
    text = IN + "facing(t, key) & ~carrying(t) & dist_goal(t) < 3 & action_is(t, left) -> good(t)"
    assert english(parse_rule(text), SIGNATURE) == (
        "when the cell ahead holds key and it is not so that the agent carries the key "
        "and dist_goal is below 3 cells: left is good"
    )
    taken = english_formula(parse_formula("prev(action_is(t, left))"), SIGNATURE)
    assert taken == "at the step before the agent took the action left"


@pytest.mark.parametrize(
    ("doc", "told"),
    [
        ("The {object} is red.", "the key is red (hall)"),
        ("{1} lies in {2}", "key lies in hall"),
        ("is inside", "is inside (key, hall)"),
        ("Thistle {0} {room.__class__} %s", "thistle {0} {room.__class__} %s (key, hall)"),
        ("RGB of this", "RGB of key (hall)"),
    ],
)
def test_meanings_are_filled_in_and_never_formatted(doc: str, told: str) -> None:
    known = PredicateSignature("inside", ("object", "room"), doc=doc)
    formula = parse_formula("inside(t, key, hall)")
    said = english_formula(formula, Signature({"inside": known}, {}))
    assert said == told


@pytest.mark.parametrize(
    ("formula", "written"),
    [
        ("~p(t) & (q(t) | r_s(t+1))", r"\neg \mathrm{p}(t) \wedge (\mathrm{q}(t) \vee \mathrm{r\_s}(t+1))"),
        ("d(t) <= ?1e-05", r"\mathrm{d}(t) \le \widehat{1 \cdot 10^{-5}}"),
        ("d(t, key) > -2", r"\mathrm{d}(t, \mathrm{key}) > -2.0"),
        ("(p(t) -> q(t)) <-> false", r"(\mathrm{p}(t) \rightarrow \mathrm{q}(t)) \leftrightarrow \bot"),
        ("once[1..2](p(t))", r"\mathbf{O}_{[1,2]}(\mathrm{p}(t))"),
        (
            "~(exists o in object: next(p(t, o)))",
            r"\neg (\exists o \in \mathrm{object}.\; \mathbf{X}(\mathrm{p}(t, o)))",
        ),
    ],
)
def test_latex(formula: str, written: str) -> None:
    assert latex_formula(parse_formula(formula)) == written


def test_latex_of_a_rule() -> None:
    rule = parse_rule("rule a [0.5]: forall step_1 in step: (p(step_1) -> q(step_1)) -> ~good(step_1)")
    variable = r"\mathit{step\_1}"
    assert latex_rule(rule) == (
        rf"\forall {variable} \in \mathrm{{step}}.\; (\mathrm{{p}}({variable}) \rightarrow \mathrm{{q}}({variable}))"
        rf" \stackrel{{0.5}}{{\rightarrow}} \neg \mathrm{{good}}({variable})"
    )


@pytest.mark.parametrize(
    ("rule", "clause"),
    [
        ("~p(t) & q(t, key) -> good(t)", r"good(T) :- step(T), \+ p(T), q(T, key)."),
        ("p(t) | q(t) -> ~good(t)", "bad(T) :- step(T), (p(T) ; q(T))."),
        ("p(t-1, Key) -> good(t)", "good(T) :- step(T), (window(T, -1, -1, T1), p(T1, 'Key'))."),
        ("d(t) <= ?1e-05 -> good(t)", "good(T) :- step(T), (d(T, Value), Value =< 1.0e-05)."),
        ("~(d(t) < -3) -> good(t)", r"good(T) :- step(T), \+ (d(T, Value), Value < -3.0)."),
        (
            "once[1..3](next(p(t))) -> good(t)",
            "good(T) :- step(T), (window(T, -3, -1, T1), (window(T1, 1, 1, T2), p(T2))).",
        ),
        ("always[0..2](p(t)) -> good(t)", r"good(T) :- step(T), \+ (window(T, 0, 2, T1), \+ p(T1))."),
        ("(p(t) -> q(t) & r(t)) -> good(t)", "good(T) :- step(T), implies(p(T), (q(T), r(T)))."),
        ("(p(t) <-> true) -> good(t)", "good(T) :- step(T), iff(p(T), true)."),
        ("exists o in object: p(t, o) -> good(t)", "good(T) :- step(T), (object(O), p(T, O))."),
        ("forall o in object: p(t, o) -> good(t)", r"good(T) :- step(T), \+ (object(O), \+ p(T, O))."),
        ("p(t) -> next(q(t))", r"violated(a, T) :- step(T), p(T), \+ (window(T, 1, 1, T1), q(T1))."),
    ],
)
def test_prolog(rule: str, clause: str) -> None:
    assert prolog_rule(parse_rule(IN + rule)) == f"% rule a\n{clause}"


def test_prolog_variables_never_meet() -> None:
    body = "(exists T in object: p(t, T)) & (exists t1 in object: next(p(t, t1))) & (exists _x in object: p(t, _x))"
    assert prolog_rule(parse_rule(f"rule A [0.1]: forall t in step: {body} -> good(t)")) == (
        "% rule A, weight 0.1\ngood(T) :- step(T), (object(T1), p(T, T1)), "
        "(object(T11), (window(T, 1, 1, T2), p(T2, T11))), (object(V_x), p(T, V_x))."
    )


@given(rules(SIGNATURE))
@settings(max_examples=100)
def test_every_rule_is_told_with_balanced_brackets_on_one_line(rule: Rule) -> None:
    told = [english(rule), english(rule, SIGNATURE), latex_rule(rule), prolog_rule(rule).split("\n")[1]]
    for text in told:
        assert "\n" not in text
        assert text.count("(") == text.count(")")
        assert re.sub(r"\\[{}]", "", text).count("{") == text.count("}")
    for printed in told[2:]:
        assert printed.isascii()


def test_equivalences_inside_equivalences_do_not_grow() -> None:
    formula = "fact(t)"
    for _ in range(30):
        formula = f"(fact(t) <-> {formula})"
    rule = parse_rule(f"{IN}{formula} -> good(t)")
    for told in (prolog_rule(rule), latex_rule(rule), english(rule)):
        assert told.count("fact") == 31
