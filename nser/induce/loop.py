"""The induction loop: propose, check, weigh, keep. What is refused is refused with a reason.

Checks without data are those of `nser.rules.checks`, checks by data those of `nser.induce.checks`; each says what it
finds in a `Verdict`. Rules that a person put in force are candidates of every later induction: they keep their weight
and leave only when data refute them (`D705`), or when the person takes them out, which later proposals do not undo.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from nser.experience.trajectories import Trajectories
from nser.grounding.vocabulary import Vocabulary
from nser.induce.choose import choose
from nser.induce.evidence import Evidence
from nser.induce.figures import Figures
from nser.induce.settings import InductionSettings
from nser.induce.standing import beside, retired, standing_rules
from nser.rules.checks.pipeline import check_reply
from nser.rules.ruleset import PERSON, Provenance, RuleSet, meaning
from nser.rules.syntax import Rule
from nser.rules.verdict import KEPT, Verdict


class Proposer(Protocol):
    """Whoever reads episodes and writes rules."""

    name: str

    def propose(self, evidence: Evidence) -> str:
        """Text that holds rules in the surface language; nothing else of it is trusted or run."""


@dataclass(frozen=True)
class Induction:
    """The new set and what became of every proposal; `proposals` are those that could be read."""

    ruleset: RuleSet
    verdicts: tuple[Verdict, ...]
    proposals: tuple[Rule, ...] = ()


def induce(
    trajectories: Trajectories,
    vocabulary: Vocabulary,
    proposer: Proposer,
    settings: InductionSettings,
    *,
    step: int = 0,
    previous: RuleSet | None = None,
) -> Induction:
    """Propose rules from complete episodes and keep those that held-out episodes support.

    `step` is the environment step, noted as the `since` of rules that `previous` does not hold already.
    """
    evidence = Evidence.from_trajectories(trajectories, vocabulary, settings)
    checked = check_reply(proposer.propose(evidence), vocabulary.signature)
    before = previous or RuleSet()
    standing = standing_rules(before, vocabulary)
    proposals, refused = beside(checked.rules, standing, before, vocabulary)
    chosen = choose(proposals, evidence, standing)
    since = {meaning(rule): known.since for rule in before.rules if (known := before.provenance.get(rule.name))}
    theirs = {rule.name for rule in standing}
    provenance = {}
    for rule, figure in chosen.kept:
        proposed_by = PERSON if rule.name in theirs else proposer.name
        known_since = since.get(meaning(rule))
        provenance[rule.name] = _provenance(figure, proposed_by, step if known_since is None else known_since)
    kept = tuple(rule for rule, _ in chosen.kept)
    gone = retired(before, kept, chosen, evidence, step)
    ruleset = RuleSet(kept, before.version + 1, provenance, retired=gone)
    return Induction(ruleset, (*checked.verdicts, *refused, *chosen.verdicts), proposals)


def select(rules: Sequence[Rule], evidence: Evidence) -> tuple[list[tuple[Rule, Figures]], list[Verdict]]:
    """The rules that data support, weighed, with their figures on held-out episodes, and a verdict on each."""
    chosen = choose(rules, evidence)
    return chosen.kept, chosen.verdicts


def _provenance(figure: Figures, proposer: str, since: int) -> Provenance:
    return Provenance(
        proposer=proposer,
        since=since,
        support=figure.support,
        coverage=figure.coverage,
        precision=figure.precision,
        lift=figure.lift,
        lift_low=figure.lift_low,
        lift_high=figure.lift_high,
        firings=figure.firings,
        verdict=KEPT,
        recall=figure.recall,
        precision_low=figure.precision_low,
        precision_high=figure.precision_high,
    )
