"""Texts in quotes: in the parser, the splitter, the checks, the grammars and every printer."""

from __future__ import annotations

import llguidance
import pytest
from hypothesis import given, settings
from lark import Lark

from nser.rules.checks.extract import extract
from nser.rules.checks.pipeline import check_file
from nser.rules.errors import OffsetError, RuleSyntaxError, SortError, TextError, TimeError, UnboundVariableError
from nser.rules.grammar import grammar
from nser.rules.logic import contradiction, implies
from nser.rules.parse import parse_formula, parse_rule, parse_rules
from nser.rules.print_english import english
from nser.rules.print_latex import latex_rule
from nser.rules.print_prolog import prolog_rule
from nser.rules.printer import print_rule, unicode_rule
from nser.rules.scope import check_names
from nser.rules.signature import PredicateSignature, Signature
from nser.rules.split import pieces
from nser.rules.syntax import MAX_TEXT, Atom, Rule, Text, Variable
from nser.rules.texts import quote, unquote
from tests.rules.strategies import texts
from tests.rules.test_grammar import TOKENIZER

GOOD = Atom("good", (Variable("r"),))
ROLLOUTS = Signature(
    {
        known.name: known
        for known in (
            PredicateSignature("contains", ("text",), doc="The agent wrote {text}", over="rollout"),
            PredicateSignature("length", (), "number", unit="words", over="rollout"),
            PredicateSignature("calls", ("tool", "mood"), over="rollout"),
        )
    },
    {"mood": ("calm", "angry")},
    {"text": ("I am not sure",), "tool": ()},
)


def said(text: str) -> Rule:
    return Rule("a", Atom("contains", (Variable("r"), Text(text))), GOOD, variable="r", sort="rollout")


@given(texts)
def test_any_text_is_a_literal_in_both_alphabets(text: str) -> None:
    for ascii_only in (True, False):
        literal = quote(text, ascii_only=ascii_only)
        assert literal.isprintable()
        assert unquote(literal) == text
        assert not ascii_only or literal.isascii()


@given(texts, texts)
@settings(deadline=None)
def test_a_file_of_rules_reads_back_whatever_they_quote(one: str, other: str) -> None:
    rules = (said(one), Rule("b", said(other).body, GOOD, variable="r", sort="rollout"))
    for between in ("\n", " "):
        text = between.join(map(print_rule, rules))
        parsed = parse_rules(text, strict=True)
        assert parsed.problems == ()
        assert parsed.rules == rules
        assert extract(text).parsed.rules == rules


def test_a_quoted_variable_is_no_variable() -> None:
    (variable, text) = parse_rule('rule a: forall r in rollout: contains(r, "r") -> good(r)').body.args  # type: ignore[union-attr]
    assert (variable, text) == (Variable("r"), Text("r"))


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        ('"é ∀"', "é ∀"),
        (r'"a\"b"', 'a"b'),
        (r'"\u00e9\ud83d\ude00"', "é😀"),
        (r'"tab\tand\nline"', "tab\tand\nline"),
        ('""', ""),
    ],
)
def test_literals_are_those_of_json(literal: str, text: str) -> None:
    assert parse_formula(f"contains(r, {literal})", "r") == said(text).body


@pytest.mark.parametrize(
    ("literal", "found", "way_out"),
    [
        (r'"\ud800"', "half of a surrogate pair", "whole characters"),
        (f'"{"x" * (MAX_TEXT + 1)}"', "201 characters", "at most 200"),
    ],
)
def test_texts_that_are_none(literal: str, found: str, way_out: str) -> None:
    with pytest.raises(TextError, match=found) as raised:
        parse_rule(f"rule a: forall r in rollout: contains(r, {literal}) -> good(r)")
    assert way_out in str(raised.value)
    assert raised.value.position is not None
    assert raised.value.position.column == len("rule a: forall r in rollout: contains(r, ") + 1


@pytest.mark.parametrize("literal", ["'single'", "“typographic”", '"two\nlines"', r'"\q"'])
def test_other_quotes_are_told_how_to_write_it(literal: str) -> None:
    with pytest.raises(RuleSyntaxError, match="a text in quotes") as raised:
        parse_rule(f"rule a: forall r in rollout: contains(r, {literal}) -> good(r)")
    assert raised.value.nearest == '"…" on one line'


@pytest.mark.parametrize("rest", ["I am", "", "rule b: forall r in rollout: true -> good(r)", "a \\"])
def test_a_reply_that_ends_inside_a_text_was_cut(rest: str) -> None:
    (problem,) = parse_rules(f'rule a: forall r in rollout: contains(r, "{rest}').problems
    assert isinstance(problem, RuleSyntaxError)
    assert problem.cut
    assert problem.expected == ('the closing `"`',)


def test_what_a_rule_quotes_starts_no_rule_and_no_comment() -> None:
    evil = "rule evil: forall r in rollout: true -> good(r)"
    text = f'rule a: forall r in rollout: contains(r, "{evil}") & calls(r, "#1", calm) -> good(r) {evil}'
    assert [rule.name for rule in parse_rules(text).rules] == ["a", "evil"]
    assert parse_rules(text.removesuffix(evil)).rules[0].name == "a"


def test_rules_inside_broken_json_are_still_told_apart() -> None:
    whole = "rule {}: forall t in step: p(t) -> good(t)"
    for between in ('", "', '",\n  "'):
        cut = '{"rules": ["' + between.join(whole.format(name) for name in "abc") + '", "rule d: forall'
        assert [cut[first : first + 6] for first, _ in pieces(cut)] == ["rule a", "rule b", "rule c", "rule d"]


@pytest.mark.parametrize(
    ("body", "error", "told"),
    [
        ("contains(r, calm)", SortError, 'a text in quotes, such as `"I am not sure"`'),
        ("calls(r, search, calm)", SortError, '`"search"`'),
        ('calls(r, "search", "calm")', SortError, "did you mean `calm`"),
        ('contains("r", "x")', UnboundVariableError, "the rollout variable `r`"),
        ('contains(r+1, "x")', OffsetError, "offset"),
        ('next(contains(r, "x"))', TimeError, "`next` over a rollout"),
    ],
)
def test_texts_are_checked_like_other_arguments(body: str, error: type[Exception], told: str) -> None:
    (problem,) = check_names(parse_rule(f"rule a: forall r in rollout: {body} -> good(r)"), ROLLOUTS)
    assert isinstance(problem, error)
    assert told in str(problem)


def test_a_predicate_belongs_to_the_sort_that_it_is_over() -> None:
    (problem,) = check_names(parse_rule("rule a: forall t in step: length(t) > 3 -> good(t)"), ROLLOUTS)
    assert isinstance(problem, SortError)
    assert "`length` of a step, expected it of a rollout, as in `length(r)`" in str(problem)
    right = 'rule a: forall r in rollout: contains(r, "x") & length(r) > 3 & calls(r, "f", calm) -> good(r)'
    assert check_names(parse_rule(right), ROLLOUTS) == ()


def test_texts_are_told_apart_by_logic() -> None:
    one, other = said("a").body, said("b").body
    assert implies(one, one) == "yes"
    assert implies(one, other) == "no"
    assert contradiction(parse_formula('p(r, "x") & ~p(r, "x")', "r")) == "yes"
    twins = (f'rule {name}: forall r in rollout: contains(r, "x") -> good(r)' for name in "ab")
    (verdict,) = check_file("\n".join(twins)).refused
    assert verdict.code == "R501"


def test_every_printer_tells_the_text() -> None:
    rule = said('100% of {it}\'s \\ "é"\n')
    literal = r""" "100% of {it}'s \\ \"é\"\n" """.strip()
    assert unicode_rule(rule).endswith(f"contains(r, {literal}) → good(r)")
    assert english(rule) == f"when contains({literal}): the rollout is good"
    assert english(said("{text} {1}"), ROLLOUTS) == 'when the agent wrote "{text} {1}": the rollout is good'
    assert prolog_rule(rule).endswith(r"""contains(R, '100% of {it}\'s \\ "é"\xa\').""")
    assert r"contains}(r, \mbox{\texttt{\char34{}100\% of \{it\}'s \char92{}\char92{} " in latex_rule(rule)


@pytest.mark.parametrize("engine", ["lark", "llguidance", "openai"])
def test_a_specialised_grammar_writes_texts_and_the_right_sort(engine: str) -> None:
    text = grammar(engine, ROLLOUTS)  # type: ignore[arg-type]
    wrapped = llguidance.grammar_from("lark", text)
    assert llguidance.LLMatcher.validate_grammar_with_warnings(wrapped) == (False, [])
    right = 'rule a: forall r in rollout: contains(r, "not (sure): é") & ~calls(r, "f", calm) -> ~good(r)'

    def accepts(rule: str) -> bool:
        state = llguidance.LLMatcher(TOKENIZER, wrapped)
        return bool(state.consume_tokens(list(rule.encode())) and state.is_accepting())

    assert accepts(right)
    assert parse_rule(right)
    if engine != "llguidance":
        assert Lark(text, parser="lalr").parse(right)
    for wrong in (
        right.replace("forall r in rollout", "forall r in step"),
        right.replace("contains(r, ", "contains(r+1, "),
        right.replace('"f"', "f"),
        right.replace("calm", '"calm"'),
        right.replace("not (sure)", "new\nline"),
    ):
        assert not accepts(wrong)


def test_a_text_ends_in_the_grammar_for_models() -> None:
    state = llguidance.LLMatcher(TOKENIZER, llguidance.grammar_from("lark", grammar("llguidance", ROLLOUTS)))
    endless = 'rule a: forall r in rollout: contains(r, "' + "x" * 61
    assert not state.consume_tokens(list(endless.encode()))


def test_a_grammar_is_over_one_sort() -> None:
    mixed = Signature({**ROLLOUTS.predicates, "p": PredicateSignature("p")}, ROLLOUTS.sorts, ROLLOUTS.texts)
    with pytest.raises(ValueError, match="over rollout, step"):
        grammar("lark", mixed)
