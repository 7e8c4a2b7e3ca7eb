"""The induction loop: propose, parse, check, weigh, keep. What is refused is refused with a reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nser.experience.trajectories import Trajectories
from nser.grounding.evaluator import Evaluator
from nser.grounding.vocabulary import Vocabulary
from nser.induce.evidence import Evidence
from nser.induce.figures import Figures, figures, lower_bound
from nser.induce.settings import InductionSettings
from nser.rules.parse import parse_rules
from nser.rules.printer import print_rule
from nser.rules.scope import check_names
from nser.rules.store import Provenance, RuleSet
from nser.rules.syntax import Rule, praises

HELD_FIRINGS = 3  # fewer held-out firings than these say nothing for or against


class Proposer(Protocol):
    """Whoever reads episodes and writes rules."""

    name: str

    def propose(self, evidence: Evidence) -> str:
        """Text that holds rules in the surface language; nothing else of it is trusted or run."""


@dataclass(frozen=True)
class Verdict:
    """What became of one proposal: `code` for programs, `reason` for people."""

    rule: str
    code: str
    reason: str

    @property
    def kept(self) -> bool:
        """Whether the rule is in the new set."""
        return self.code == "kept"


@dataclass(frozen=True)
class Induction:
    """The new set and what became of every proposal."""

    ruleset: RuleSet
    verdicts: tuple[Verdict, ...]


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
    parsed = parse_rules(proposer.propose(evidence))
    verdicts = [Verdict(problem.rule or "", problem.code, str(problem)) for problem in parsed.problems]
    grounded: list[Rule] = []
    for rule in parsed.rules:
        problems = check_names(rule, vocabulary.signature)
        if problems:
            verdicts.append(Verdict(rule.name, problems[0].code, str(problems[0])))
        else:
            grounded.append(rule)
    kept, judged = select(grounded, evidence)
    version = previous.version + 1 if previous else 1
    since = _known_since(previous)
    provenance = {
        rule.name: _provenance(rule, figure, proposer.name, since.get(_meaning(rule), step)) for rule, figure in kept
    }
    ruleset = RuleSet(tuple(rule for rule, _ in kept), version, provenance)
    return Induction(ruleset, (*verdicts, *judged))


def select(rules: Sequence[Rule], evidence: Evidence) -> tuple[list[tuple[Rule, Figures]], list[Verdict]]:
    """Judge rules by data, the best-founded first, and weigh those that stay.

    A rule stays if it fires often enough, if its lift on held-out episodes is above 0, if the lower bound of
    its mean outcome over all rows is, and if the rows on which no better rule fires still say so. Its weight is the
    square root of that bound relative to the best one's: graded scores replay better than equal ones.
    """
    fires = crisp_firings(rules, evidence)
    outcomes = evidence.outcomes
    bounds = [
        lower_bound(outcomes[mask]) if praises(rule) else -np.inf for rule, mask in zip(rules, fires, strict=True)
    ]
    order = sorted(range(len(rules)), key=lambda i: -bounds[i] * np.sqrt(fires[i].sum()) if bounds[i] > 0 else np.inf)
    free = np.ones(len(outcomes), np.bool_)
    kept: list[tuple[Rule, Figures]] = []
    strengths: list[float] = []
    verdicts: list[Verdict] = []
    held = evidence.held
    episodes = evidence.trajectories.episodes
    for i in order:
        figure = figures(fires[i][held], outcomes[held], episodes[held])
        verdict = _judge(rules[i], fires[i], figure, bounds[i], outcomes[fires[i] & free], evidence)
        verdicts.append(verdict)
        if verdict.kept and len(kept) < evidence.settings.max_rules:
            kept.append((rules[i], figure))
            strengths.append(bounds[i])
            free &= ~fires[i]
    top = max(strengths, default=1.0)
    weighted = [
        (replace(rule, weight=round(float(np.sqrt(bound / top)), 3)), figure)
        for (rule, figure), bound in zip(kept, strengths, strict=True)
    ]
    return weighted, verdicts


def crisp_firings(rules: Sequence[Rule], evidence: Evidence) -> list[NDArray[np.bool_]]:
    """For each rule the [N] rows on which body and head hold."""
    if not rules:
        return []
    evaluator = Evaluator(rules, evidence.vocabulary, sharpness=None)
    firing = evaluator.firings(evidence.trajectories.steps()).detach().numpy() > 0.5
    return list(firing.T)


def _judge(
    rule: Rule,
    fires: NDArray[np.bool_],
    figure: Figures,
    bound: float,
    new: NDArray[np.float64],
    evidence: Evidence,
) -> Verdict:
    least = evidence.settings.min_firings
    count = int(fires.sum())
    if not praises(rule):
        return Verdict(rule.name, "D700", "its head is not good(t), which is the only claim that outcomes can judge")
    if count < least:
        return Verdict(rule.name, "D701", f"it fired {count} times, expected at least {least}; wait for more episodes")
    if figure.firings < HELD_FIRINGS:
        return Verdict(
            rule.name, "D702", f"it fired {figure.firings} times in held-out episodes, expected {HELD_FIRINGS} or more"
        )
    if not figure.lift > 0:
        return Verdict(rule.name, "D703", f"its lift on held-out episodes is {figure.lift:.4f}, expected above 0")
    if not bound > 0:
        return Verdict(rule.name, "D704", f"the lower bound of its mean outcome is {bound:.4f}, expected above 0")
    if len(new) < least or not lower_bound(new) > 0:
        return Verdict(rule.name, "D801", f"better rules fire already on all but {len(new)} of its {count} firings")
    return Verdict(rule.name, "kept", f"lift {figure.lift:.4f} on held-out episodes, {count} firings")


def _provenance(rule: Rule, figure: Figures, proposer: str, since: int) -> Provenance:
    del rule
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
        verdict="kept",
    )


def _meaning(rule: Rule) -> str:
    """What makes two rules the same over time: all but the weight."""
    return print_rule(replace(rule, weight=1.0))


def _known_since(previous: RuleSet | None) -> Mapping[str, int]:
    if previous is None:
        return {}
    known = {_meaning(rule): previous.provenance.get(rule.name) for rule in previous.rules}
    return {text: found.since for text, found in known.items() if found and found.since is not None}
