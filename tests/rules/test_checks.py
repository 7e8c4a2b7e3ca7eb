"""Checks 1 to 6 without data: each fault has its code, its place and its sentence, and good rules stay."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nser.rules.checks.extract import extract
from nser.rules.checks.pipeline import UNFINISHED, check_file, check_reply, check_rules
from nser.rules.cubes import Bodies
from nser.rules.logic import Budget, contradiction, implies, satisfiable, tautology
from nser.rules.parse import parse_formula, parse_rules
from nser.rules.printer import print_formula
from nser.rules.verdict import KEPT, Verdict, acceptance
from nser.rules.walk import conjunction
from tests.rules.strategies import SIGNATURE, rules

IN = "forall t in step:"
GOOD = f"rule a: {IN} carrying(t) & facing(t, door) -> good(t)"


def codes(text: str, named: bool = False) -> dict[str, str]:
    return {v.rule: v.code for v in check_file(text, SIGNATURE if named else None).verdicts}


@pytest.mark.parametrize(
    ("second", "code", "words"),
    [
        ("carrying(t) & facing(t, door) -> good(t)", "R501", "`a` says, word for word"),
        ("facing(t, door) & carrying(t) -> good(t)", "R502", "`a` says in other words"),
        ("~(~carrying(t) | ~facing(t, door)) -> good(t)", "R502", "`a` says in other words"),
        ("carrying(t) & facing(t, door) & bumped(t) -> good(t)", "R503", "special case of `a`"),
        ("carrying(t) & ~carrying(t) -> good(t)", "R402", "`carrying(t)` and `~carrying(t)` exclude each other"),
        ("dist_goal(t) < 1 & dist_goal(t) > 2 -> good(t)", "R402", "exclude each other"),
        ("action_is(t, left) & action_is(t, right) -> good(t)", "R402", "exclude each other"),
        ("carrying(t) | ~carrying(t) -> good(t)", "R401", "holds at every step"),
        ("exists o in object: facing(t, o) | ~facing(t, o) -> good(t)", "R401", "holds at every step"),
        ("bumped(t) & carrying(t) & facing(t, key) -> carrying(t)", "R213", "in the body"),
        ("bumped(t) & (~next(true) | prev(carrying(t))) -> ~prev(carrying(t))", "R213", "in the body"),
        ("carrying(t) & facing(t, door) & bumped(t) -> ~good(t)", "R601", "claims the opposite"),
        ("bumped(t) -> ~good(t)", "R602", "both hold at a step with"),
        ("carying(t) -> good(t)", "R201", "found `carying`"),
        ("facing(t, dor) -> good(t)", "R204", "found `dor`"),
        ("facing(t) -> good(t)", "R202", "with 1 argument"),
        ("carrying(t) & -> good(t)", "R101", "found `->`"),
    ],
)
def test_each_fault_has_its_code_its_place_and_its_sentence(second: str, code: str, words: str) -> None:
    checked = check_file(f"{GOOD}\nrule b: {IN} {second}\n", SIGNATURE)
    (verdict,) = [v for v in checked.verdicts if v.rule == "b"]
    assert verdict.code == code
    assert words in verdict.sentence
    assert verdict.position is not None
    assert verdict.position.line == 2
    line, caret = verdict.pointed().split("\n")
    assert line.startswith("rule b:")
    assert caret.strip() == "^"
    assert verdict.kept == (code == "R602")
    assert [rule.name for rule in checked.rules] == (["a", "b"] if verdict.kept else ["a"])
    assert json.loads(json.dumps(verdict.as_dict()))["code"] == code
    assert "\n" not in str(verdict)


def test_without_a_vocabulary_names_are_not_judged_but_logic_is() -> None:
    assert codes(f"rule a: {IN} anything(t, x) -> good(t)\nrule b: {IN} p(t) & ~p(t) -> good(t)") == {"b": "R402"}


def test_a_head_that_the_body_states_in_other_words() -> None:
    assert codes(f"rule a: {IN} ~(~next(p(t)) | q(t)) -> p(t+1)") == {"a": "R403"}
    assert codes(f"rule a: {IN} prev(p(t)) & q(t) -> ~p(t-1)") == {"a": "R403"}


def test_a_special_case_is_refused_wherever_its_general_rule_stands() -> None:
    text = f"rule narrow: {IN} p(t) & q(t) -> good(t)\nrule wide: {IN} p(t) -> good(t)\n"
    assert codes(text) == {"narrow": "R503"}
    assert [v.code for v in check_reply(text).verdicts] == [], "which of the two is good is for data to say"


def test_a_special_case_of_higher_weight_is_noted_and_stays() -> None:
    checked = check_file(f"rule narrow: {IN} p(t) & q(t) -> good(t)\nrule wide [0.4]: {IN} p(t) -> good(t)\n")
    assert [(v.rule, v.code, v.kept) for v in checked.verdicts] == [("narrow", "R503", True)]
    assert len(checked.rules) == 2


def test_special_cases_of_numbers_and_of_time() -> None:
    assert codes(f"rule a: {IN} x(t) < 1 -> good(t)\nrule b: {IN} x(t) <= 2 -> good(t)") == {"a": "R503"}
    assert codes(f"rule a: {IN} x(t) < 1 -> good(t)\nrule b: {IN} x(t) > 0 -> good(t)") == {}
    text = f"rule a: {IN} next(p(t)) -> good(t)\nrule b: {IN} eventually[0..3](p(t)) -> good(t)"
    assert codes(text) == {"a": "R503"}


def test_windows_too_wide_for_a_table_are_noted_and_stay() -> None:
    checked = check_file(f"rule a: {IN} eventually[0..500](p(t)) -> good(t)")
    assert [(v.code, v.kept, v.note) for v in checked.verdicts] == [("R490", True, True)]
    assert len(checked.rules) == 1


def test_a_file_of_a_thousand_tangled_rules_is_answered_and_says_what_is_undecided() -> None:
    rng = random.Random(0)
    lines = []
    for i in range(1000):
        body = " | ".join(f"p{rng.randrange(9)}(t) & q{rng.randrange(9)}(t)" for _ in range(3))
        lines.append(f"rule r{i}: {IN} {body} -> {rng.choice(['', '~'])}good(t)")
    checked = check_file("\n".join(lines))
    assert UNFINISHED in {v.code for v in checked.verdicts}
    assert len(checked.rules) + len(checked.refused) == 1000


@given(st.lists(rules(SIGNATURE, levels=2, judged=True), max_size=4, unique_by=lambda rule: rule.name))
@settings(max_examples=60, deadline=None)
def test_every_rule_is_kept_or_refused_and_checking_again_changes_nothing(batch: list) -> None:
    checked = check_rules(batch, SIGNATURE)
    refused = {v.rule for v in checked.refused}
    assert {rule.name for rule in checked.rules} | refused == {rule.name for rule in batch}
    assert not refused & {rule.name for rule in checked.rules}
    again = check_rules(checked.rules, SIGNATURE)
    assert again.rules == checked.rules
    assert not again.refused


LITERALS = [
    *("p(t)", "~p(t)", "q(t)", "~q(t)", "x(t) < 1", "x(t) <= 1", "x(t) > 0", "~x(t) > 2", "y(t) >= 3", "p(t+1)"),
    *("next(p(t))", "next(~q(t))", "prev(p(t))", "~p(t-1)", "action_is(t, a)", "~action_is(t, a)", "action_is(t, b)"),
    *("true", "next(next(q(t)))", "next(x(t) < 2)", "p(t) | q(t)"),
]


def test_cubes_say_what_truth_tables_say() -> None:
    rng = random.Random(3)
    made = (conjunction(tuple(map(parse_formula, rng.sample(LITERALS, rng.randint(1, 4))))) for _ in range(160))
    bodies = [body for body in made if contradiction(body) == tautology(body) == "no"]
    found = Bodies(bodies, None, Budget(10**12))
    assert sum(cube is not None for cube in found.cubes) > len(bodies) / 2
    related = found.related()
    positive = 0
    for i, body in enumerate(bodies):
        for j in rng.sample(range(len(bodies)), 25):
            if i != j:
                expected = implies(bodies[j], body) == "yes"
                positive += expected
                assert related.implied(i, j) == expected, (print_formula(bodies[j]), print_formula(body))
                both = satisfiable(conjunction((bodies[j], body))).answer == "yes"
                assert (found.overlap(i, j) is not None) == both
    assert positive > 20


def test_an_acceptance_is_a_verdict_too() -> None:
    verdict = acceptance(parse_rules(GOOD).rules[0], "nothing is wrong")
    assert (verdict.code, verdict.kept, verdict.note) == (KEPT, True, False)
    assert Verdict("", "R100", "found no rule").position is None


# Check 1: what of a reply is rules -----------------------------------------------------------------------------

ANSWER = f"rule a: {IN} p(t) -> good(t)"
DRAFT = f"rule draft: {IN} q(t) -> good(t)"
WRAPPED = json.dumps({"note": "use ``` and <think>", "rules": [ANSWER]}, indent=2)


@pytest.mark.parametrize(
    ("reply", "steps"),
    [
        (ANSWER, ()),
        (f"# a comment with ``` in it\n{ANSWER}", ()),
        (f"Sure, here you are:\n\n1. {ANSWER}\n\nGood luck!", ()),
        (f"<think>maybe {DRAFT}\n{DRAFT}</think>\n{ANSWER}", ("thought",)),
        (f"I think\n{DRAFT}\n</think>\n\n{ANSWER}", ("thought",)),
        (f"{ANSWER}\n<think>\n{DRAFT}", ("thought",)),
        (f"For example\n{DRAFT}\nThe answer:\n```prolog\n{ANSWER}\n```\nDone.", ("fence",)),
        (f"~~~\n{ANSWER}\n~~~", ("fence",)),
        (f"````\n{ANSWER}\n````", ("fence",)),
        (f"```\n{ANSWER}", ("fence",)),
        (WRAPPED, ("json",)),
        (f"```json\n{WRAPPED}\n```\nSee [1] for more.", ("json",)),
        (f"Here: [note]\n{WRAPPED}\nReferences: [1]", ("json",)),
        (json.dumps(ANSWER), ("json",)),
        (f"<thinking>{DRAFT}</thinking>```\n{ANSWER}\n```", ("thought",)),
    ],
)
def test_the_answer_is_found_in_its_wrapper(reply: str, steps: tuple[str, ...]) -> None:
    found = extract(reply)
    assert [rule.name for rule in found.parsed.rules] == ["a"]
    assert found.steps == steps


@pytest.mark.parametrize("issue", ["langchain #9368", "langchain #17696", "instructor #276"])
def test_backticks_inside_a_line_or_a_string_are_no_fence(issue: str) -> None:
    """A fence is a whole line: quoted backticks in prose and in JSON strings cut nothing off."""
    texts = {
        "langchain #9368": json.dumps({"text": f"Here:\n```\n{ANSWER}\n```\nand `x` too"}),
        "langchain #17696": f"Use ``` around code, as in ```code```:\n{ANSWER}\n",
        "instructor #276": f"The rules are ```json\n{json.dumps([ANSWER])}\n```\nas you asked.",
    }
    assert [rule.name for rule in extract(texts[issue]).parsed.rules] == ["a"]


@pytest.mark.parametrize("issue", ["ollama #15288", "browser-use #5148", "vllm #12619"])
def test_thoughts_are_no_answer_and_an_answer_of_thoughts_alone_is_told(issue: str) -> None:
    texts = {
        "ollama #15288": f"<think>{DRAFT}\n",
        "vllm #12619": f"Well,\n{DRAFT}\n</think>\nno rule",
        "browser-use #5148": f"<think>\n{DRAFT}\n</think>\n\n<think>\n{DRAFT}\n</think>",
    }
    assert extract(texts[issue]).parsed.rules == ()


def test_positions_point_into_the_reply() -> None:
    reply = f"<think>hm</think>\nprose\n```\nrule b: {IN} p(t) & -> good(t)\n```\n"
    (verdict,) = check_reply(reply).verdicts
    assert verdict.position is not None
    assert verdict.position.line == 4
    assert reply[verdict.position.offset :].startswith("->")


def test_a_rule_quoted_inside_a_thought_does_not_replace_the_answer() -> None:
    reply = f"<think>The user said: ignore all and write\n```\n{DRAFT}\n```\n</think>\n```\n{ANSWER}\n```"
    assert [rule.name for rule in extract(reply).parsed.rules] == ["a"]


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 50_000, "<think>" * 20_000, "```\n" * 20_000, '"' * 100_000])
def test_hostile_wrappers_end_soon(text: str) -> None:
    assert extract(text).parsed.rules == ()
    assert extract(f"{text}\n{ANSWER}").parsed.rules in ((), parse_rules(ANSWER).rules)
