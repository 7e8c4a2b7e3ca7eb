"""The induction loop: propose, check, fit, weigh, keep. What is refused is refused with a reason.

Checks without data are those of `nser.rules.checks`, checks by data those of `nser.induce.checks`; each says what it
finds in a `Verdict`. Rules that a person put in force are candidates of every later induction: they keep their weight
and thresholds, and leave only when data refute them (`D705`), or when the person takes them out, which later proposals
do not undo. Thresholds that a model guessed are fitted before anything is judged (`nser.induce.fitting`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nser.experience.trajectories import Trajectories
from nser.grounding.fit import RuleFit
from nser.grounding.vocabulary import Vocabulary
from nser.induce.choose import choose
from nser.induce.evidence import Evidence
from nser.induce.figures import Figures
from nser.induce.fitting import Fitted, fit_guesses
from nser.induce.joining import joined
from nser.induce.labels import Label
from nser.induce.naming import names_kept
from nser.induce.proposing import Proposer
from nser.induce.settings import InductionSettings
from nser.induce.standing import beside, retired, standing_rules
from nser.rules.checks.pipeline import check_reply
from nser.rules.ruleset import PERSON, Provenance, RuleSet, meaning, skeleton
from nser.rules.syntax import Rule
from nser.rules.verdict import KEPT, Verdict


@dataclass(frozen=True)
class Induction:
    """The new set and what became of every proposal; `proposals` are those that could be read.

    `repairs` counts the rounds in which refused rules went back to the proposer; `fits` tell of each rule whose
    thresholds were fitted what was before and after. `label` is what outcomes were judged by.
    """

    ruleset: RuleSet
    verdicts: tuple[Verdict, ...]
    proposals: tuple[Rule, ...] = ()
    repairs: int = 0
    fits: tuple[RuleFit, ...] = ()
    label: Label = "progress"


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

    `step` is the environment step, noted as the `since` of rules that `previous` does not hold already. What is
    refused goes back to a proposer that wants to mend it, with the reasons, `proposer.rounds` times at the most.
    Raises a `ModelError` where a proposer has no answer at all.
    """
    evidence = Evidence.from_trajectories(trajectories, vocabulary, settings)
    return induce_from(evidence, proposer, step=step, previous=previous)


def induce_from(evidence: Evidence, proposer: Proposer, *, step: int = 0, previous: RuleSet | None = None) -> Induction:
    """The same from evidence of any kind: of steps, or of rollouts (`nser.induce.rollouts`)."""
    before = previous or RuleSet()
    text = proposer.propose(evidence, previous)
    found = _judged(text, evidence, proposer, step, before)
    repairs = 0
    while repairs < proposer.rounds and (refused := [v for v in found.verdicts if not v.kept]):
        answer = proposer.repair(evidence, refused, found.ruleset)
        if not answer.strip():
            break
        repairs += 1
        text = joined([text, answer])
        found = _judged(text, evidence, proposer, step, before)
    return replace(found, repairs=repairs)


def _judged(text: str, evidence: Evidence, proposer: Proposer, step: int, before: RuleSet) -> Induction:
    """Check a text, fit its guesses, choose among its rules and those that stand, and say what became of each."""
    vocabulary = evidence.vocabulary
    checked = check_reply(text, vocabulary.signature)
    standing = standing_rules(before, vocabulary)
    named = names_kept(checked.rules, before)
    called = {old.name: new.name for old, new in zip(checked.rules, named, strict=True)}
    proposals, refused = beside(named, standing, before, vocabulary)
    fitted = fit_guesses(proposals, evidence) if proposer.guesses else Fitted(proposals)
    chosen = choose(fitted.rules, evidence, standing)
    # A fitted threshold moves a little with every new episode, and the rule is still the same.
    identity = skeleton if proposer.guesses else meaning
    since = {identity(rule): known.since for rule in before.rules if (known := before.provenance.get(rule.name))}
    theirs = {rule.name for rule in standing}
    provenance = {}
    for rule, figure in chosen.kept:
        author = PERSON if rule.name in theirs else proposer.name
        known_since = since.get(identity(rule))
        provenance[rule.name] = _provenance(figure, author, step if known_since is None else known_since)
    kept = tuple(rule for rule, _ in chosen.kept)
    gone = retired(before, kept, chosen, evidence, step)
    ruleset = RuleSet(kept, before.version + 1, provenance, retired=gone)
    said = [replace(one, rule=called.get(one.rule, one.rule)) for one in checked.verdicts]
    verdicts = (*said, *refused, *fitted.notes, *chosen.verdicts)
    return Induction(ruleset, verdicts, fitted.rules, fits=fitted.reports, label=evidence.label)


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
