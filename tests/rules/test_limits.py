"""No input decides the stack or the time: what is too deep, too long or too much is one located error."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from nser.rules.errors import LengthError, NameLengthError, NestingError, RuleSyntaxError
from nser.rules.parse import parse_formula, parse_rule, parse_rules
from nser.rules.printer import print_rule
from nser.rules.reading import MAX_TOKENS
from nser.rules.syntax import MAX_DEPTH, MAX_LITERALS, Atom, Not, Rule, Variable
from nser.rules.walk import depth, horizon, literals

IN = "rule a: forall t in step: "


@contextmanager
def little_stack(frames: int) -> Iterator[None]:
    """Leave only so many frames to what is called."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + frames)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.parametrize("levels", [65, 500, 50_000])
@pytest.mark.parametrize(
    ("opening", "closing"),
    [("~", ""), ("~(", ")"), ("next(", ")"), ("q(t) & ~(", ")"), ("exists o in object: ", ""), ("(q(t) -> ", ")")],
)
def test_deep_nesting_is_one_clear_error(opening: str, closing: str, levels: int) -> None:
    text = f"{IN}{opening * levels}p(t){closing * levels} -> good(t)"
    with little_stack(200), pytest.raises((NestingError, LengthError)) as raised:
        parse_rule(text)
    assert raised.value.rule == "a"
    assert raised.value.position is not None
    assert len(IN) <= raised.value.position.offset <= len(IN) + 5000


@pytest.mark.parametrize("closing", [")", ""])
def test_fifty_thousand_parentheses_are_one_clear_error(closing: str) -> None:
    text = f"{IN}{'(' * 50_000}p(t){closing * 50_000} -> good(t)"
    with little_stack(200), pytest.raises(NestingError, match="at most 64 levels"):
        parse_rule(text)


def test_the_depth_allowed_is_exactly_64() -> None:
    deepest = f"{'~' * (MAX_DEPTH - 1)}p(t)"
    with little_stack(250):
        assert depth(parse_formula(deepest)) == MAX_DEPTH
    with pytest.raises(NestingError) as raised:
        parse_formula("~" + deepest)
    assert raised.value.position is not None
    assert raised.value.position.offset == MAX_DEPTH
    with pytest.raises(NestingError):
        parse_rule(f"{IN}p(t) -> {'next(' * MAX_DEPTH}p(t){')' * MAX_DEPTH}")


def test_parentheses_alone_are_no_depth() -> None:
    assert parse_formula("(" * 100 + "p(t)" + ")" * 100) == parse_formula("p(t)")


@pytest.mark.parametrize("sign", ["&", "|", "and", "∨"])
def test_64_literals_are_allowed_head_and_all(sign: str) -> None:
    body = f" {sign} ".join(["p(t)"] * (MAX_LITERALS - 2) + ["true"])
    assert len(literals(parse_rule(f"{IN}{body} -> good(t)").body)) == MAX_LITERALS - 1
    with pytest.raises(LengthError, match="literal number 65, expected at most 64") as raised:
        parse_rule(f"{IN}false {sign} {body} -> good(t)")
    assert raised.value.position is not None
    assert raised.value.position.column > len(IN) + len(body)


def test_a_list_of_arguments_without_end_is_refused() -> None:
    with pytest.raises(LengthError, match=str(MAX_TOKENS)):
        parse_rule(f"{IN}p(t{', a' * MAX_TOKENS}) -> good(t)")


@pytest.mark.parametrize(
    "text",
    [
        IN + "(" * 1_000_000,
        IN + "~" * 1_000_000,
        IN + "p(t) & " * 150_000,
        IN + "n" * 1_000_000,
        IN + "p(t) < " + "9" * 1_000_000,
        "rule " * 200_000,
        "x rule(\nrule(" * 80_000,
        "rule" + " " * 1_000_000,
        "rule x" + " " * 1_000_000 + ":",
        "-" * 1_000_000 + "rule",
        "rule a" + "[" * 1_000_000,
        "\x00" * 1_000_000,
    ],
    ids=lambda text: text[:40].strip() or "nul",
)
def test_a_million_characters_on_one_line_are_a_few_errors(text: str) -> None:
    parsed = parse_rules(text)
    assert parsed.rules == ()
    assert 1 <= len(parsed.problems) <= 2
    assert all(len(str(problem)) < 400 and len(problem.line) <= 160 for problem in parsed.problems)


def test_a_million_blanks_or_comments_are_none() -> None:
    rule = parse_rule(f"{IN}p(t) {' ' * 1_000_000}\n#{'x' * 1_000_000}\n -> good(t)")
    assert rule.name == "a"


@pytest.mark.parametrize("length", [33, 100_000])
def test_names_longer_than_32_are_refused_wherever_they_stand(length: int) -> None:
    name = "n" * length
    for text in (
        f"rule {name}: forall t in step: p(t) -> good(t)",
        f"rule a: forall {name} in step: p(t) -> good(t)",
        f"rule a: forall t in {name}: p(t) -> good(t)",
        f"{IN}{name}(t) -> good(t)",
        f"{IN}p(t, {name}) -> good(t)",
    ):
        with pytest.raises(NameLengthError) as raised:
            parse_rule(text)
        assert raised.value.position is not None
        assert raised.value.position.offset == text.index(name)
        assert parse_rule(text.replace(name, "n" * 32))


def test_printing_and_walking_need_no_stack() -> None:
    formula: Atom | Not = Atom("p", (Variable("t"),))
    for _ in range(5000):
        formula = Not(formula)
    rule = Rule("a", formula, Atom("good", (Variable("t"),)))
    with little_stack(100):
        assert depth(formula) == 5001
        assert horizon(formula) == (0, 0)
        assert len(literals(formula)) == 1
        text = print_rule(rule)
    with pytest.raises(RuleSyntaxError):
        parse_rule(text)
    while isinstance(formula, Not):  # take it apart, so that nothing is left to unwind at once
        formula = formula.operand  # type: ignore[assignment]
