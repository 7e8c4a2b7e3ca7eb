"""Many rules in one text, as a person edits them or a language model sends them: no bad one loses another."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nser.rules.errors import RuleError, RuleSyntaxError
from nser.rules.parse import ParsedRules, parse_rules
from nser.rules.printer import print_rule
from nser.rules.syntax import MAX_RULES, Rule
from tests.rules.strategies import rules

IN = "forall t in step:"
A = f"rule a: {IN} p(t) -> good(t)"
B = f"rule b [0.5]: {IN} q(t) & ~r(t) -> ~good(t)"


def names(parsed: ParsedRules) -> list[str]:
    return [rule.name for rule in parsed.rules]


def told(problem: RuleError) -> tuple[str, int, int]:
    assert problem.position is not None
    return problem.code, problem.position.line, problem.position.column


REPLY = f"""Sure! Here are the rules you asked for. Each rule has a name: see below.

<think>
rule of thumb is what I would say, and `rule(t)` is nothing.
</think>

# The rules
```
- {A}
1. rule broken: {IN} p(t) &&& q(t) -> good(t)
# rule commented_out: {IN} p(t) -> good(t)
* {B}
   This rule says that q matters: it does.
rule c: {IN}
    exists o in object: near(t, o)
    -> good(t);   rule d: {IN} p(t) -> good(t)
```
I hope that these rules help! rule e: {IN} p(t)"""


def test_a_reply_full_of_prose_keeps_every_whole_rule() -> None:
    parsed = parse_rules(REPLY)
    assert names(parsed) == ["a", "b", "c", "d"]
    lines = REPLY.split("\n")
    assert [told(problem) for problem in parsed.problems] == [
        ("R101", 4, lines[3].index("thumb") + 1),
        ("R101", 10, lines[9].index("&&&") + 1),
        ("R101", len(lines), len(lines[-1]) + 1),
    ]
    assert [problem.rule for problem in parsed.problems] == ["of", "broken", "e"]
    assert isinstance(parsed.problems[-1], RuleSyntaxError)
    assert parsed.problems[-1].cut
    for rule in parsed.rules:
        assert rule.position is not None
        assert REPLY[rule.position.offset :].startswith(f"rule {rule.name}")


@pytest.mark.parametrize(
    "tail",
    [
        "\nThis is why.",
        "\n\n1. That",
        "\n</think>",
        "\n```",
        "\n** bold **",
        "\n`q(t)` is",
        "  # and so on",
        " ;",
        "\n…",
    ],
)
def test_what_follows_a_rule_on_a_later_line_is_prose(tail: str) -> None:
    for text in (A + tail, f"{A}{tail}\n{B}"):
        assert parse_rules(text).rules == parse_rules(text.replace(tail, "\n")).rules
        assert parse_rules(text).problems == ()


@pytest.mark.parametrize("tail", [" because", " & q(t)", "\n& q(t)", "\n-> good(t)", " [0.9]", "."])
def test_what_follows_a_rule_on_its_line_is_an_error(tail: str) -> None:
    parsed = parse_rules(f"{A}{tail}\n{B}")
    assert names(parsed) == ["b"]
    assert [problem.rule for problem in parsed.problems] == ["a"]


def test_in_a_file_stray_text_is_reported_and_no_rule_is_lost() -> None:
    text = f"rul z: {IN} p(t) -> good(t)\n# fine\n{A}\noops here\n{B}\n\n  # done\n trailing"
    parsed = parse_rules(text, strict=True)
    assert names(parsed) == ["a", "b"]
    assert [told(problem) for problem in parsed.problems] == [("R110", 1, 1), ("R110", 4, 1), ("R110", 8, 2)]
    assert [problem.found for problem in parsed.problems] == ["`rul`", "`oops`", "`trailing`"]


@pytest.mark.parametrize("text", ["", " \n\t", "# nothing\n#", "\ufeff"])
def test_a_text_of_nothing_has_nothing_wrong(text: str) -> None:
    for strict in (False, True):
        assert parse_rules(text, strict=strict) == ParsedRules((), ())


@pytest.mark.parametrize(
    "text", ["I cannot help with that.", "<html>", '{"rules": []}', "rules: a, b", "A rule of thumb.\nA rule, I say"]
)
def test_a_text_without_a_rule_says_so(text: str) -> None:
    (problem,) = parse_rules(text).problems
    assert problem.code == "R100"
    assert "`rule NAME: forall t in step: BODY -> HEAD`" in str(problem)
    assert told(problem) == ("R100", 1, 1)


def test_of_two_rules_with_one_name_the_first_is_kept() -> None:
    text = f"{A}\n{B}\nrule  a [0.1]: {IN} q(t) -> good(t)"
    parsed = parse_rules(text)
    assert parsed.rules == parse_rules(f"{A}\n{B}").rules
    (problem,) = parsed.problems
    assert told(problem) == ("R107", 3, 7)
    assert problem.rule == "a"


def test_a_text_holds_at_most_a_thousand_rules() -> None:
    text = "\n".join(f"rule r{number}: {IN} p(t) -> good(t)" for number in range(MAX_RULES + 5))
    parsed = parse_rules(text)
    assert len(parsed.rules) == MAX_RULES
    (problem,) = parsed.problems
    assert told(problem) == ("R108", MAX_RULES + 1, 1)
    assert problem.found == "rule number 1001"
    whole = parse_rules("\n".join(text.split("\n")[:MAX_RULES]))
    assert (len(whole.rules), whole.problems) == (MAX_RULES, ())


def test_bad_rules_count_as_well() -> None:
    parsed = parse_rules("rule\n" * (MAX_RULES + 100))
    assert len(parsed.problems) == MAX_RULES + 1
    assert parsed.problems[-1].code == "R108"


@given(
    st.lists(rules(levels=1), min_size=1, max_size=4, unique_by=lambda rule: rule.name),
    st.text(alphabet="()&|~->.,:;[]? abrule\n#∧", max_size=30),
    st.integers(0, 3),
)
@settings(max_examples=60)
def test_whatever_a_broken_rule_holds_the_others_are_kept(batch: list[Rule], junk: str, place: int) -> None:
    texts = [print_rule(rule) for rule in batch]
    texts.insert(place % (len(texts) + 1), f"rule 0{junk}")
    parsed = parse_rules("\n".join(texts))
    assert set(batch) <= set(parsed.rules)
    assert parsed.problems
