"""What becomes of a rule: one value that the command line, the training loop and a repair prompt all read.

The hundreds of a code are the number of the check: R1 the text, R2 the names, R4 the logic, R5 other rules that
say the same, R6 rules that contradict each other; D6 to D9 are what data say: of conflicts, of the rule, of its
gain beside better rules, of its thresholds. `kept` is the code of a rule with which nothing is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from nser.rules.errors import RuleError
from nser.rules.printer import print_rule
from nser.rules.source import Place
from nser.rules.syntax import Position, Rule

KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Witness:
    """A transition that a verdict rests on, in plain values.

    row counts in the data that were read, episode and step (within it) from 0; facts are names of literals or
    features with their values; outcome is what the transition was worth, `None` where nothing was labelled.
    """

    row: int
    episode: int
    step: int
    outcome: float | None
    facts: tuple[tuple[str, float], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """JSON values."""
        told = {"row": self.row, "episode": self.episode, "step": self.step, "outcome": self.outcome}
        return {**told, "facts": dict(self.facts)}

    def __str__(self) -> str:
        facts = ", ".join(f"{name} = {value:g}" for name, value in self.facts)
        worth = "" if self.outcome is None else f" (worth {self.outcome:+.3f})"
        return f"episode {self.episode}, step {self.step}{worth}: {facts or 'no facts'}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one check says of one rule.

    rule:       the rule's name; empty where none could be read
    code:       a stable code for programs
    sentence:   one sentence for people and prompts: what was found, what was expected
    text:       the rule as text, as far as it could be read
    place:      where in the text the fault stands
    suggestion: what to do about it, or what was probably meant
    witnesses:  transitions that show the fault, two or three
    kept:       whether the rule may stay; a verdict other than `kept` on a rule that stays is a note
    """

    rule: str
    code: str
    sentence: str
    text: str = ""
    place: Place | None = None
    suggestion: str | None = None
    witnesses: tuple[Witness, ...] = ()
    kept: bool = False

    @property
    def position(self) -> Position | None:
        """Line, column and offset of the fault, if the rule stands in a text."""
        return self.place.position if self.place else None

    @property
    def note(self) -> bool:
        """Whether it only says something of a rule that stays."""
        return self.kept and self.code != KEPT

    def pointed(self) -> str:
        """The source line with a caret below it; empty without a text."""
        return self.place.pointed() if self.place and self.place.line else ""

    def as_dict(self) -> dict[str, Any]:
        """JSON values; line and column count from 1, offset from 0."""
        at = self.position
        return {
            "rule": self.rule,
            "code": self.code,
            "sentence": self.sentence,
            "kept": self.kept,
            "text": self.text,
            "line": at.line if at else None,
            "column": at.column if at else None,
            "offset": at.offset if at else None,
            "suggestion": self.suggestion,
            "witnesses": [witness.as_dict() for witness in self.witnesses],
        }

    def __str__(self) -> str:
        where = f"line {self.position.line}, column {self.position.column}: " if self.position else ""
        advice = f"; {self.suggestion}" if self.suggestion else ""
        return f"{self.code} {where}{f'rule `{self.rule}`: ' if self.rule else ''}{self.sentence}{advice}"


def from_error(problem: RuleError, text: str = "") -> Verdict:
    """The verdict of a parser's or a name check's error."""
    found = f"found {problem.found}"
    expected = f", expected {', '.join(problem.expected[:-1])}" if len(problem.expected) > 1 else ""
    if problem.expected:
        expected = f"{expected} or {problem.expected[-1]}" if expected else f", expected {problem.expected[0]}"
    suggestion = f"did you mean `{problem.nearest}`?" if problem.nearest else problem.way_out or None
    return Verdict(problem.rule or "", problem.code, found + expected, text, problem.place, suggestion)


def refusal(rule: Rule, code: str, sentence: str, suggestion: str | None = None, place: Place | None = None) -> Verdict:
    """A rule refused; without a place the rule's own position, if it stands in a text, is the fault's."""
    if place is None and rule.position is not None:
        place = Place(rule.position, "", 0)
    return Verdict(rule.name, code, sentence, print_rule(rule), place, suggestion)


def note(rule: Rule, code: str, sentence: str, suggestion: str | None = None) -> Verdict:
    """Something to know of a rule that stays."""
    return replace(refusal(rule, code, sentence, suggestion), kept=True)


def acceptance(rule: Rule, sentence: str) -> Verdict:
    """A rule with which nothing is wrong."""
    return replace(refusal(rule, KEPT, sentence), kept=True)


def refused_names(verdicts: Iterable[Verdict]) -> frozenset[str]:
    """The rules that some verdict refuses."""
    return frozenset(verdict.rule for verdict in verdicts if not verdict.kept)
