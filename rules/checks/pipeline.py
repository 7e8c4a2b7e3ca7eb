"""Checks 1 to 6 in their order: what a text needs no data for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nser.rules.checks import conflict, logic, names, same
from nser.rules.checks.extract import extract
from nser.rules.logic import Budget
from nser.rules.parse import parse_rules
from nser.rules.signature import Signature
from nser.rules.source import Source
from nser.rules.syntax import Rule
from nser.rules.verdict import Verdict, from_error, refused_names

UNFINISHED = "R590"


@dataclass(frozen=True, slots=True)
class Checked:
    """What checks made of a text: the rules that stay, in order, and every refusal and note.

    `extracted` names what was done to find the rules, see `nser.rules.checks.extract`.
    """

    rules: tuple[Rule, ...]
    verdicts: tuple[Verdict, ...]
    extracted: tuple[str, ...] = ()

    @property
    def refused(self) -> tuple[Verdict, ...]:
        """The verdicts that refuse."""
        return tuple(verdict for verdict in self.verdicts if not verdict.kept)


def check_reply(reply: str, signature: Signature | None = None) -> Checked:
    """Judge what a language model wrote; whether special cases and opposites stay is left to data. Never raises."""
    found = extract(reply)
    source = Source(found.text)
    verdicts = [from_error(problem) for problem in found.parsed.problems]
    return _judged(found.parsed.rules, signature, source, verdicts, found.steps, alone=True)


def check_file(text: str, signature: Signature | None = None) -> Checked:
    """Judge a rule file, where every word must belong to a rule or a comment. Never raises."""
    parsed = parse_rules(text, strict=True)
    verdicts = [from_error(problem) for problem in parsed.problems]
    return _judged(parsed.rules, signature, Source(text), verdicts, (), alone=False)


def check_rules(rules: Sequence[Rule], signature: Signature | None = None) -> Checked:
    """Judge rules that were built or read elsewhere, as `check_file` does."""
    return _judged(tuple(rules), signature, None, [], (), alone=False)


def _judged(
    rules: tuple[Rule, ...],
    signature: Signature | None,
    source: Source | None,
    verdicts: list[Verdict],
    steps: tuple[str, ...],
    *,
    alone: bool,
) -> Checked:
    """Run the checks one after the other, each over what the ones before it left; `alone` leaves out check 6."""
    budget = Budget()
    found: list[Verdict] = []
    if signature is not None:
        for rule in rules:
            found += names.check(rule, signature, source)
    left = _left(rules, found)
    for rule in left:
        found += logic.check(rule, signature, budget)
    left = _left(left, found)
    found += same.check(left, signature, budget, subsumed=not alone)
    left = _left(left, found)
    if not alone:
        found += conflict.check(left, signature, budget)
        left = _left(left, found)
    if budget.over:
        sentence = "the rules are too many, or too tangled, to compare each with each other; some pairs are undecided"
        found.append(Verdict("", UNFINISHED, sentence, suggestion="check them in smaller files", kept=True))
    return Checked(left, (*verdicts, *(_placed(verdict, source) for verdict in found)), steps)


def _left(rules: Sequence[Rule], verdicts: Sequence[Verdict]) -> tuple[Rule, ...]:
    refused = refused_names(verdicts)
    return tuple(rule for rule in rules if rule.name not in refused)


def _placed(verdict: Verdict, source: Source | None) -> Verdict:
    """The verdict with the line that its position lies in."""
    if source is None or verdict.position is None or verdict.pointed():
        return verdict
    return replace(verdict, place=source.place(verdict.position.offset))
