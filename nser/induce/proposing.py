"""What the loop asks of whoever proposes rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from nser.induce.evidence import Evidence
from nser.rules.ruleset import RuleSet
from nser.rules.verdict import Verdict


class Proposer(Protocol):
    """Whoever reads episodes and writes rules: the symbolic learner, a language model, a file, two of them.

    `name` stands in the provenance of what it proposes; `rounds` is how often it wants to mend what was refused.
    `guesses` tells that its learnable thresholds are guesses: they are fitted on the shown episodes before data judge
    the rules. What it writes is text and nothing more: the loop parses it, and data have the last word.
    """

    name: str
    rounds: int
    guesses: bool

    def propose(self, evidence: Evidence, previous: RuleSet | None = None) -> str:
        """Text that holds rules; `previous` are those in force. Raises a `ModelError` where there is no answer."""

    def repair(self, evidence: Evidence, refused: Sequence[Verdict], kept: RuleSet | None = None) -> str:
        """Better rules in place of refused ones, or nothing."""


class NoProposer:
    """Proposes nothing: an induction with it only asks whether data refute the rules that are in force."""

    name = "nobody"
    rounds = 0
    guesses = False

    def propose(self, evidence: Evidence, previous: RuleSet | None = None) -> str:
        """Nothing."""
        return ""

    def repair(self, evidence: Evidence, refused: Sequence[Verdict], kept: RuleSet | None = None) -> str:
        """Nothing."""
        return ""
