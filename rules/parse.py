"""Reading rules: text in, frozen syntax and located errors out; nothing is ever evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from nser.rules.errors import (
    DuplicateNameError,
    NoRuleError,
    RuleError,
    RuleSyntaxError,
    StrayTextError,
    TooManyRulesError,
)
from nser.rules.reading import Reading
from nser.rules.source import Source, shown
from nser.rules.split import first_word, pieces
from nser.rules.syntax import MAX_RULES, Formula, Rule


@dataclass(frozen=True, slots=True)
class ParsedRules:
    """What a text holds: the good rules in order, and what is wrong with the others."""

    rules: tuple[Rule, ...]
    problems: tuple[RuleError, ...]


def parse_rule(text: str) -> Rule:
    """Read exactly one rule; comments, a `;` and blanks around it are allowed.

    Raises RuleSyntaxError, located in `text`, for everything else.

    >>> rule = parse_rule("rule pick [0.8]: forall t in step: facing(t, key) & ~carrying(t) -> good(t)")
    >>> rule.name, rule.weight
    ('pick', 0.8)
    """
    return cast(Rule, Reading(Source(text), 0, len(text), "rule").read())


def parse_formula(text: str, variable: str = "t") -> Formula:
    """Read one formula in which `variable` is the step variable. Raises RuleSyntaxError, located in `text`."""
    return cast(Formula, Reading(Source(text), 0, len(text), "formula", variable).read())


def parse_rules(text: str, *, strict: bool = False) -> ParsedRules:
    """Read every rule of a text; a bad one becomes a problem and never loses the others. Never raises.

    Text between the rules is skipped, as a language model's prose is; `strict`, for files, reports it. A
    text with words but without a rule is a problem either way, an empty text is none. Of two rules with one
    name the first is kept; reading stops after MAX_RULES rules, good or bad.
    """
    source = Source(text)
    rules: dict[str, Rule] = {}
    problems: list[RuleError] = []
    end = 0
    for count, (first, last) in enumerate(pieces(text)):
        if strict:
            problems += _stray(source, end, first)
        if count == MAX_RULES:
            found = f"rule number {MAX_RULES + 1}"
            problems.append(TooManyRulesError(found, ("no more rules",), place=source.place(first)))
            break
        reading = Reading(source, first, last, "rule", prose=True)
        end = last
        try:
            rule = cast(Rule, reading.read())
        except RuleSyntaxError as problem:
            problems.append(problem)
            continue
        end = reading.end
        if rule.name in rules:
            place = source.place(text.index(rule.name, first + len("rule")))
            found = f"a second rule `{rule.name}`"
            problems.append(DuplicateNameError(found, ("a new name",), place=place, rule=rule.name))
        else:
            rules[rule.name] = rule
    else:
        if strict:
            problems += _stray(source, end, len(text))
        elif end == 0:
            problems += _no_rule(source)
    return ParsedRules(tuple(rules.values()), tuple(problems))


def _stray(source: Source, start: int, end: int) -> Iterator[RuleError]:
    if word := first_word(source.text, start, end):
        yield StrayTextError(shown(word[1]), ("a rule or a comment",), place=source.place(word[0]))


def _no_rule(source: Source) -> Iterator[RuleError]:
    if word := first_word(source.text, 0, len(source.text)):
        expected = ("`rule NAME: forall t in step: BODY -> HEAD`",)
        yield NoRuleError("no rule", expected, place=source.place(word[0]))
