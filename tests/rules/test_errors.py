"""Every error says where, what was found, what was expected, and the way out."""

from __future__ import annotations

import inspect
import json
import pickle

import pytest

from nser.errors import NserError
from nser.rules import errors
from nser.rules.errors import (
    HeadError,
    NameLengthError,
    NumberError,
    RuleError,
    RuleSyntaxError,
    WindowError,
)
from nser.rules.parse import parse_formula, parse_rule, parse_rules
from nser.rules.syntax import KEYWORDS, Position

IN = "rule a: forall t in step: "

# What is written, the text at which the error must point, what was found, one of the words expected.
MALFORMED = [
    ("rule : forall t in step: p(t) -> good(t)", ": forall", "`:`", "a rule name"),
    ("rule a forall t in step: p(t) -> good(t)", "forall", "the keyword `forall`", "`:`"),
    ("rule a: p(t) -> good(t)", "p(t)", "`p`", "`forall`"),
    ("rule a: forall in step: p(t) -> good(t)", "in step", "the keyword `in`", "a variable"),
    ("rule a: forall t in : p(t) -> good(t)", ": p", "`:`", "a sort"),
    (IN + "-> good(t)", "->", "`->`", "a predicate name"),
    (IN + "p(t) & -> good(t)", "-> g", "`->`", "`(`"),
    (IN + "p() -> good(t)", ") ->", "`)`", "a variable or a constant"),
    (IN + "p(t -> good(t)", "-> g", "`->`", "`)`"),
    (IN + "p(t) q(t) -> good(t)", "q(t)", "`q`", "`&`"),
    (IN + "(p(t) -> good(t)", "", errors.END, "`)`"),
    (IN + "p(t)", "", errors.END, "`->`"),
    (IN + "p(t) ->", "", errors.END, "a predicate name"),
    (IN + "p(t) -> good(t) extra", "extra", "`extra`", "the end of the rule"),
    (IN + "p(t) -> good(t) & q(t)", "& q", "`&`", "the end of the rule"),
    (IN + "p(t) -> true", "true", "the keyword `true`", "a predicate name"),
    (IN + "p(t+) -> good(t)", ") ->", "`)`", "a whole number"),
    (IN + "p(t+1.5) -> good(t)", ".5", "`.5`", "`)`"),
    (IN + "eventually(p(t)) -> good(t)", "(p(t))", "`(`", "`[`"),
    (IN + "eventually[1](p(t)) -> good(t)", "](p", "`]`", "`..`"),
    (IN + "next p(t) -> good(t)", "p(t)", "`p`", "`(`"),
    (IN + "d(t) < -> good(t)", "-> g", "`->`", "a number"),
    (IN + "d(t) < nan -> good(t)", "nan", "`nan`", "a number"),
    (IN + "d(t) < inf -> good(t)", "inf", "`inf`", "a number"),
    (IN + "exists o: p(t) -> good(t)", ": p", "`:`", "`in`"),
    (IN + "p(t) -> good(t)\nrule b: forall t in step: p(t) -> good(t)", "rule b", "the keyword `rule`", "`;`"),
    ("p(t) -> good(t)", "p(t)", "`p`", "`rule`"),
    ("rulea: forall t in step: p(t) -> good(t)", "rulea", "`rulea`", "`rule`"),
    ("rule a: forallt in step: p(t) -> good(t)", "forallt", "`forallt`", "`forall`"),
    ("rule a: forall t instep: p(t) -> good(t)", "instep", "`instep`", "`in`"),
    (IN + "p(t) andq(t) -> good(t)", "andq", "`andq`", "`and`"),
    (IN + "p(t) implies_good(t)", "implies_", "`implies_good`", "`implies`"),
    ("", "", errors.END, "`rule`"),
    (IN + "p(t) \x07 -> good(t)", "\x07", r"the character `\x07`", "`&`"),
]


@pytest.mark.parametrize(("text", "at", "found", "expected"), MALFORMED)
def test_malformed_rules(text: str, at: str, found: str, expected: str) -> None:
    with pytest.raises(RuleSyntaxError) as raised:
        parse_rule(text)
    error = raised.value
    assert error.code == "R101"
    assert error.found == found
    assert expected in error.expected
    assert error.position is not None
    assert error.position.offset == (text.rindex(at) if at else len(text))
    assert error.cut == (not at)
    message = str(error)
    assert "\n" not in message
    assert f"line {error.position.line}, column {error.position.column}" in message
    assert found in message
    assert expected in message


@pytest.mark.parametrize(
    ("text", "kind", "code", "at", "found"),
    [
        ("rule a [1.5]: forall t in step: p(t) -> good(t)", NumberError, "R105", "1.5", "`1.5`"),
        ("rule a [-0.5]: forall t in step: p(t) -> good(t)", NumberError, "R105", "-0.5", "`-0.5`"),
        ("rule a [1e999]: forall t in step: p(t) -> good(t)", NumberError, "R105", "1e999", "`1e999`"),
        (IN + "d(t) < 1e999 -> good(t)", NumberError, "R105", "1e999", "`1e999`"),
        (IN + "d(t) < ?-1e999 -> good(t)", NumberError, "R105", "-1e999", "`-1e999`"),
        (IN + "once[5..2](p(t)) -> good(t)", WindowError, "R106", "2](p", "`2`"),
        (IN + "once[0..1001](p(t)) -> good(t)", WindowError, "R106", "1001", "`1001`"),
        (IN + "p(t+1001) -> good(t)", WindowError, "R106", "1001", "`1001`"),
        (IN + "p(t) -> ~(~good(t))", HeadError, "R109", "good", "a `~` of a `~`"),
        (f"rule {'n' * 33}: forall t", NameLengthError, "R104", "n" * 33, "a name of 33 characters"),
        (IN + f"{'n' * 33}(t) -> good(t)", NameLengthError, "R104", "n" * 33, "a name of 33 characters"),
        (IN + f"p(t, {'n' * 33}) -> good(t)", NameLengthError, "R104", "n" * 33, "a name of 33 characters"),
    ],
)
def test_what_the_limits_refuse(text: str, kind: type[RuleError], code: str, at: str, found: str) -> None:
    with pytest.raises(RuleSyntaxError) as raised:
        parse_rule(text)
    error = raised.value
    assert type(error) is kind
    assert error.code == code
    assert error.found == found
    assert error.position is not None
    assert error.position.offset == text.index(at)
    assert len(error.expected) == 1


@pytest.mark.parametrize("number", ["9" * 5000, "0" * 5000 + "7" * 7])
def test_digits_without_end_are_an_error_and_no_crash(number: str) -> None:
    with pytest.raises(WindowError, match="at most 1000 steps"):
        parse_rule(f"{IN}p(t+{number}) -> good(t)")
    with pytest.raises(NumberError, match="a finite number"):
        parse_rule(f"{IN}d(t) < {'9' * 5000} -> good(t)")


@pytest.mark.parametrize(
    ("formula", "found", "nearest"),
    [
        ("p(t) && q(t)", "`&&`", "&"),
        ("p(t) || q(t)", "`||`", "|"),
        ("p(t) => q(t)", "`=>`", "->"),
        ("p(t) AND q(t)", "`AND`", "&"),
        ("!p(t)", "the character `!`", "~"),
        ("exist o in object: p(t, o)", "`o`", None),
        ("exists o on object: p(t, o)", "`on`", None),
        ("exists o ni object: p(t, o)", "`ni`", None),
    ],
)
def test_the_way_out_of_a_habit(formula: str, found: str, nearest: str | None) -> None:
    with pytest.raises(RuleSyntaxError) as raised:
        parse_rule(f"{IN}({formula}) -> good(t)")
    assert raised.value.found == found
    assert raised.value.nearest == nearest
    if nearest:
        assert f"did you mean `{nearest}`?" in str(raised.value)


def test_the_way_out_of_other_dialects() -> None:
    with pytest.raises(RuleSyntaxError, match=r"did you mean `in step:`\?"):
        parse_rule("rule a: forall t. p(t) -> good(t)")
    with pytest.raises(RuleSyntaxError, match=r"did you mean `rule NAME \[WEIGHT\]: …`\?"):
        parse_rule(f"{IN}p(t) -> good(t) [0.9]")
    with pytest.raises(RuleSyntaxError, match=r"found `then`.* did you mean `->`\?"):
        parse_rule(f"{IN}p(t) then good(t)")


@pytest.mark.parametrize("word", sorted(KEYWORDS))
def test_a_keyword_is_never_a_name(word: str) -> None:
    for text in (
        f"rule {word}: forall t in step: p(t) -> good(t)",
        f"rule a: forall {word} in step: p(t) -> good(t)",
        f"rule a: forall t in {word}: p(t) -> good(t)",
        f"{IN}p(t, {word}) -> good(t)",
        f"{IN}p(t) -> {word}(t)",
        f"{IN}{word}(t) -> good(t)",
    ):
        if word == "not" and text.endswith(("not(t)", "not(t) -> good(t)")):
            continue  # `not(t)` denies a formula `t`, which is refused at the `)`
        with pytest.raises(RuleSyntaxError) as raised:
            parse_rule(text)
        assert raised.value.position is not None
        assert raised.value.position.offset >= text.index(word)


def test_the_source_line_is_pointed_at() -> None:
    text = f"# two rules\n{IN}p(t) &\tq(t -> good(t)  # oops\r\n"
    with pytest.raises(RuleSyntaxError) as raised:
        parse_rule(text)
    error = raised.value
    assert error.line == f"{IN}p(t) &\tq(t -> good(t)  # oops"
    line, caret = error.pointed().split("\n")
    assert line == error.line.replace("\t", " ")
    assert line[caret.index("^") :].startswith("-> good")


def test_the_caret_stands_under_wide_characters() -> None:
    with pytest.raises(RuleSyntaxError) as raised:
        parse_formula("p(t) & 規則")
    assert raised.value.pointed() == "p(t) & 規則\n       ^"
    with pytest.raises(RuleSyntaxError) as raised:
        parse_formula("# 規則\n# 規則 p\n p(t) $")
    assert raised.value.position == Position(3, 7, 18)
    (problem,) = parse_rules("規則 e\u0301 rule a: forall t in step $").problems
    assert problem.pointed() == "規則 e\u0301 rule a: forall t in step $\n" + " " * 32 + "^"


def test_a_long_line_is_cut_around_the_place() -> None:
    with pytest.raises(RuleSyntaxError) as raised:
        parse_formula(f"{' ' * 100_000}p(t) $ {' ' * 100_000}")
    line, caret = raised.value.pointed().split("\n")
    assert len(line) <= 200
    assert line[caret.index("^")] == "$"
    assert raised.value.position == Position(1, 100_006, 100_005)


def test_nothing_of_a_hostile_text_reaches_the_terminal_raw() -> None:
    with pytest.raises(RuleSyntaxError) as raised:
        parse_rule(f"{IN}p(t) \x1b[2J -> good(t)")
    assert str(raised.value).isprintable()
    assert raised.value.pointed().replace("\n", "").isprintable()


def test_errors_serve_programs_as_well() -> None:
    with pytest.raises(NserError) as raised:
        parse_rule(f"{IN}p(t) => good(t)")
    error = raised.value
    assert isinstance(error, RuleError)
    told = json.loads(json.dumps(error.as_dict()))
    assert told["code"] == "R101"
    assert (told["line"], told["column"], told["offset"]) == (1, 32, 31)
    assert told["rule"] == "a"
    assert told["nearest"] == "->"
    assert told["message"] == str(error)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert again.as_dict() == error.as_dict()
    assert again.pointed() == error.pointed()


def test_an_error_without_a_text_says_so_by_silence() -> None:
    error = RuleError("this", ("that", "those", "these"))
    assert str(error) == "R000: found this, expected that, those or these"
    assert error.position is None
    assert error.line == error.pointed() == ""


def test_every_class_has_its_own_code() -> None:
    kinds = [
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, RuleError) and kind.__module__ == errors.__name__
    ]
    codes = [kind.code for kind in kinds]
    assert len(kinds) > 20
    assert len(set(codes)) == len(codes)
    assert all(len(code) == 4 and code[0] == "R" for code in codes)
