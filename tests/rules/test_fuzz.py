"""Nothing that is not a rule crashes the reader, hangs it, or is run."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nser.rules.errors import RuleSyntaxError
from nser.rules.parse import ParsedRules, parse_formula, parse_rule, parse_rules
from nser.rules.printer import print_formula, print_rule
from nser.rules.syntax import KEYWORDS, Rule
from tests.rules.strategies import rules

TOKENS = st.sampled_from(
    [
        *sorted(KEYWORDS),
        *"~&|()[],:;?+-<>∀∃∧∨¬→↔≤≥∈#\n ",
        *["->", "<->", "..", "<=", ">=", "t", "p", "good", "step", "0", "5", "0.3", "1e9"],
        *["rule a: forall t in step:", "p(t)", "q(t, key)", "-> good(t)"],
    ]
)
TEXTS = st.one_of(
    st.text(max_size=200),
    st.binary(max_size=200).map(lambda raw: raw.decode("latin-1")),
    st.lists(TOKENS, max_size=40).map(" ".join),
    st.lists(TOKENS, max_size=40).map("".join),
)


def check(text: str, parsed: ParsedRules) -> None:
    for problem in parsed.problems:
        assert problem.position is not None
        assert 0 <= problem.position.offset <= len(text)
        before = text[: problem.position.offset]
        assert problem.position.line == before.count("\n") + 1
        assert problem.position.column == len(before) - before.rfind("\n")
        assert str(problem).isprintable()
        assert problem.pointed().count("\n") in {0, 1}
    for rule in parsed.rules:
        assert parse_rule(print_rule(rule)) == rule


@given(TEXTS, st.booleans())
@settings(max_examples=200)
def test_any_text_gives_rules_and_located_problems(text: str, strict: bool) -> None:
    check(text, parse_rules(text, strict=strict))


@given(TEXTS)
@settings(max_examples=100)
def test_any_text_is_one_formula_or_one_error(text: str) -> None:
    try:
        formula = parse_formula(text)
    except RuleSyntaxError as error:
        check(text, ParsedRules((), (error,)))
    else:
        assert parse_formula(print_formula(formula)) == formula


@given(rules(levels=2), st.data())
@settings(max_examples=100)
def test_a_rule_with_one_character_changed_is_a_rule_or_an_error(rule: Rule, data: st.DataObject) -> None:
    text = print_rule(rule)
    at = data.draw(st.integers(0, len(text)))
    changed = text[:at] + data.draw(st.sampled_from(["", *"~&|()<->.:# \n∧é\x00x9"])) + text[at + 1 :]
    check(changed, parse_rules(changed))


@given(rules(levels=2), st.integers(1, 100))
@settings(max_examples=100)
def test_a_rule_cut_short_between_words_is_told_as_cut(rule: Rule, keep: int) -> None:
    words = print_rule(rule).split(" ")
    cut = " ".join(words[: 1 + keep % (len(words) - 1)])
    parsed = parse_rules(cut)
    check(cut, parsed)
    if not parsed.rules:  # `-> dist(t)` is whole before its `< 3.0`
        (problem,) = parsed.problems
        assert isinstance(problem, RuleSyntaxError)
        assert problem.cut


@pytest.mark.parametrize(
    "evil",
    [
        "__import__('os').system('touch {path}')",
        "open('{path}', 'w')",
        "{{x.__class__}}",
        "%(name)s",
        "(lambda: open('{path}', 'w'))()",
        "rule a: forall t in step: exec(open('{path}', 'w')) -> good(t)",
        "rule a: forall t in step: p(t, '{path}') -> good(t)",
        "%import common.WORD",
        "!!python/object/apply:os.system ['touch {path}']",
    ],
)
def test_hostile_text_is_never_run(evil: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("evil") / "touched"
    text = evil.replace("{path}", str(path))
    for candidate in (text, f"rule a: forall t in step: {text} -> good(t)", f"rule a [{text}]: forall t in step"):
        parsed = parse_rules(candidate)
        assert parsed.rules == ()
        assert parsed.problems
        assert all(str(problem) and problem.as_dict() for problem in parsed.problems)
    assert not path.exists()
