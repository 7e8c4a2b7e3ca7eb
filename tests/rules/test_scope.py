"""Names against a vocabulary: each mistake has its class, its place and its way out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from nser.rules.errors import (
    ArityError,
    GoodInBodyError,
    HeadInBodyError,
    NumberAsTruthError,
    OffsetError,
    PredicateNameError,
    RuleNameError,
    ShadowedVariableError,
    SortError,
    TruthComparedError,
    UnboundVariableError,
    UnknownConstantError,
    UnknownPredicateError,
    UnknownSortError,
)
from nser.rules.parse import parse_rule
from nser.rules.scope import check_name, check_names
from nser.rules.signature import PredicateSignature, Signature
from nser.rules.source import Source
from nser.rules.syntax import KEYWORDS, Atom, Constant, Not, Rule, Variable
from tests.rules.strategies import SIGNATURE, rules

T = Variable("t")
GOOD = Atom("good", (T,))


@given(rules(SIGNATURE, judged=True))
@settings(max_examples=150)
def test_rules_made_from_a_vocabulary_have_nothing_wrong(rule: Rule) -> None:
    assert check_names(rule, SIGNATURE) == ()


CASES: list[tuple[str, type[RuleNameError], str, str, str | None]] = [
    # body, class, what the caret stands at, a word of the expectation, the nearest name
    ("facign(t, key)", UnknownPredicateError, "facign", "a predicate of the vocabulary", "facing"),
    ("Carrying(t)", UnknownPredicateError, "Carrying", "a predicate of the vocabulary", "carrying"),
    ("zzz(t)", UnknownPredicateError, "zzz", "a predicate of the vocabulary", None),
    ("true & ~zzz(t)", UnknownPredicateError, "zzz", "a predicate of the vocabulary", None),
    ("facing(t)", ArityError, "facing(t)", "2, as in `facing(t, object)`", None),
    ("facing(key)", ArityError, "facing(key)", "2, as in `facing(t, object)`", None),
    ("carrying(t, key)", ArityError, "carrying", "1, as in `carrying(t)`", None),
    ("dist(t) < 3", ArityError, "dist", "2, as in `dist(t, object)`", None),
    ("facing(t, left)", SortError, "facing", "an object such as `key`, `door`, `goal`", None),
    ("facing(key, key)", SortError, "facing", "the step variable `t`", None),
    ("facing(t, t)", SortError, "facing", "an object such as `key`, `door`, `goal`", None),
    ("exists x in action: facing(t, x)", SortError, "facing", "an object such as", None),
    ("exists x in object: carrying(x)", SortError, "carrying", "the step variable `t`", None),
    ("facing(t, kye)", UnknownConstantError, "facing", "an object such as", "key"),
    ("action_is(t, fly)", UnknownConstantError, "action_is", "an action such as `left`", None),
    ("carrying(s)", UnboundVariableError, "carrying", "the step variable `t`", None),
    ("carrying(s+1)", UnboundVariableError, "carrying", "the step variable `t`", None),
    ("facing(t, s-1)", UnboundVariableError, "facing", "an object such as", None),
    ("facing(t, key+1)", OffsetError, "facing", "`key`", None),
    ("exists x in object: facing(t, x-2)", OffsetError, "facing", "`x`", None),
    ("dist_goal(t)", NumberAsTruthError, "dist_goal", "a comparison such as `dist_goal(t) < 3`", None),
    ("dist(t, key) & carrying(t)", NumberAsTruthError, "dist", "`dist(t, object) < 3`", None),
    ("carrying(t) >= 0.5", TruthComparedError, "carrying", "`carrying(t)` alone", None),
    ("~good(t) & carrying(t)", GoodInBodyError, "good(t) &", "a predicate of the vocabulary", None),
    ("prev(good(t))", GoodInBodyError, "good(t))", "a predicate of the vocabulary", None),
    ("exists x in objekt: facing(t, x)", UnknownSortError, "facing", "`object`", "object"),
    ("exists x in step: carrying(t)", UnknownSortError, "carrying", "`action`", None),
    ("exists t in object: facing(t, key)", ShadowedVariableError, "facing", "a new name", None),
    ("exists key in object: facing(t, key)", ShadowedVariableError, "facing", "a new name", None),
    ("exists x in object: exists x in object: beside(t, x, x)", ShadowedVariableError, "beside", "a new", None),
]


@pytest.mark.parametrize(("body", "kind", "at", "expected", "nearest"), CASES)
def test_mistakes(body: str, kind: type[RuleNameError], at: str, expected: str, nearest: str | None) -> None:
    text = f"# a note\nrule a: forall t in step: {body} -> good(t)"
    problem, *_ = check_names(parse_rule(text), SIGNATURE, Source(text))
    assert type(problem) is kind
    assert problem.rule == "a"
    assert expected in str(problem)
    assert problem.nearest == nearest
    assert problem.position is not None
    assert problem.position.offset == text.index(at, text.index(body))
    line, caret = problem.pointed().split("\n")
    assert line[caret.index("^") :].startswith(at)


def test_all_mistakes_are_told_in_reading_order() -> None:
    text = "rule a: forall t in step: zzz(t) & facing(t, left) & dist_goal(t) | beside(t, kye, t) -> ~good(t+1)"
    problems = check_names(parse_rule(text), SIGNATURE)
    assert [type(problem) for problem in problems] == [
        UnknownPredicateError,
        SortError,
        NumberAsTruthError,
        UnknownConstantError,
        SortError,
        GoodInBodyError,
    ]
    assert all(problem.position and problem.position.line == 1 for problem in problems)
    assert all(problem.pointed() == "" for problem in problems)


@pytest.mark.parametrize("head", ["good(t+1)", "good(s)", "good(t, key)", "next(good(t))", "good(t) > 0.5"])
def test_good_is_a_head_only_of_the_rules_own_step(head: str) -> None:
    rule = parse_rule(f"rule a: forall t in step: carrying(t) -> {head}")
    (problem,) = check_names(rule, SIGNATURE)
    assert isinstance(problem, GoodInBodyError)


@pytest.mark.parametrize(
    ("body", "head", "repeats"),
    [
        ("facing(t, key)", "facing(t, key)", True),
        ("carrying(t) & ~facing(t, key)", "facing(t, key)", True),
        ("facing(t, key)", "~facing(t, key)", True),
        ("next(carrying(t))", "carrying(t+1)", True),
        ("dist_goal(t) < 3", "dist_goal(t) < 3", True),
        ("facing(t, key)", "facing(t, door)", False),
        ("carrying(t)", "next(carrying(t))", False),
        ("prev(carrying(t))", "carrying(t)", False),
        ("dist_goal(t) < 3", "dist_goal(t) < 2", False),
    ],
)
def test_a_head_is_no_evidence_for_itself(body: str, head: str, repeats: bool) -> None:
    problems = check_names(parse_rule(f"rule a: forall t in step: {body} -> {head}"), SIGNATURE)
    assert [type(problem) for problem in problems] == [HeadInBodyError] * repeats


def test_the_rules_own_sort_and_variable() -> None:
    def problem(binder: str, body: str) -> RuleNameError:
        name = binder.split(maxsplit=1)[0]
        (found,) = check_names(parse_rule(f"rule a: forall {binder}: {body} -> good({name})"), SIGNATURE)
        return found

    assert isinstance(problem("t in stepp", "carrying(t)"), UnknownSortError)
    assert problem("t in stepp", "carrying(t)").nearest == "step"
    assert isinstance(problem("key in step", "carrying(key)"), ShadowedVariableError)
    assert isinstance(problem("c in clip", "carrying(c+1)"), OffsetError)
    assert check_names(parse_rule("rule a: forall c in clip: carrying(c) -> good(c)"), SIGNATURE) == ()


def test_rules_that_no_text_holds_are_checked_as_well() -> None:
    rule = Rule("a", Atom("zzz", (T, Constant("key"))), Not(GOOD))
    (problem,) = check_names(rule, SIGNATURE)
    assert problem.position is None
    assert str(problem).startswith("R201 in rule `a`: found `zzz`, expected")
    assert check_names(Rule("a", Atom("carrying", ()), GOOD), SIGNATURE)[0].code == "R202"


def test_a_sort_without_constants() -> None:
    signature = Signature({"at": PredicateSignature("at", ("room",))}, {})
    (problem,) = check_names(parse_rule("rule a: forall t in step: at(t, hall) -> good(t)"), signature)
    assert isinstance(problem, UnknownConstantError)
    assert "the vocabulary has none" in str(problem)
    body = "exists r in room: at(t, r)"
    (problem,) = check_names(parse_rule(f"rule a: forall t in step: {body} -> good(t)"), signature)
    assert isinstance(problem, UnknownSortError)


@pytest.mark.parametrize("name", [*sorted(KEYWORDS), "good", "", "2fast", "a-b", "a b", "né", "x" * 33, "p\n"])
def test_names_that_a_vocabulary_may_not_register(name: str) -> None:
    with pytest.raises(PredicateNameError) as raised:
        check_name(name)
    assert raised.value.code == "R210"
    assert raised.value.expected


@pytest.mark.parametrize("name", ["p", "near_key", "_x", "Key2", "nexto", "x" * 32])
def test_names_that_a_vocabulary_may_register(name: str) -> None:
    check_name(name)
    check_name("good", "constant")
