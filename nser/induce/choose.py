"""Judging candidates by data: which rules stay, how much each weighs, and what is said of every one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nser.induce.checks import conflict, gain, support, thresholds
from nser.induce.checks.firing import Mask, claimed, crisp_firings, is_judged
from nser.induce.checks.repair import with_witnesses
from nser.induce.evidence import Evidence
from nser.induce.figures import Figures, figures, lower_bound
from nser.rules.checks.conflict import claim_of
from nser.rules.syntax import Rule
from nser.rules.verdict import Verdict, acceptance, refusal


@dataclass
class Chosen:
    """Rules kept so far with their figures, what was said of each candidate, and the rows still unclaimed."""

    kept: list[tuple[Rule, Figures]] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    firings: list[tuple[Rule, Mask]] = field(default_factory=list)
    free: dict[bool, Mask] = field(default_factory=dict)


def choose(rules: Sequence[Rule], evidence: Evidence, standing: Sequence[Rule] = ()) -> Chosen:
    """Judge rules by data, the best-founded first, and weigh those that stay.

    A rule stays if it fires often enough, if its lift on held-out episodes is above 0, if the lower bound of
    its mean outcome over all rows is, and if the rows on which no better rule fires still say so. Its weight is the
    square root of that bound relative to the best one's: graded scores replay better than equal ones. `standing`
    rules were put in force by a person; they come first, keep their weights, and claim no rows for themselves, so that
    a vague one keeps no better rule out.
    """
    every = [*standing, *rules]
    fires = crisp_firings(every, evidence)
    bounds = [lower_bound(claimed(rule, evidence.outcomes)[mask]) for rule, mask in zip(every, fires, strict=True)]
    seen = thresholds.seen_ranges(every, evidence)
    chosen = Chosen(
        free={True: np.ones(len(evidence.outcomes), np.bool_), False: np.ones(len(evidence.outcomes), bool)}
    )
    for rule, mask in zip(standing, fires, strict=False):
        _judge_standing(rule, mask, evidence, chosen)
    strengths = [1.0] * len(chosen.kept)
    given = len(chosen.kept)
    places = range(len(standing), len(every))
    worth = [-bounds[i] * np.sqrt(fires[i].sum()) if bounds[i] > 0 else np.inf for i in range(len(every))]
    for i in sorted(places, key=lambda i: worth[i]):
        figure = _held_figures(every[i], fires[i], evidence)
        if _judge(every[i], fires[i], figure, bounds[i], seen, evidence, chosen):
            chosen.kept.append((every[i], figure))
            chosen.firings.append((every[i], fires[i]))
            chosen.free[claim_of(every[i])[1]] &= ~fires[i]
            strengths.append(bounds[i])
    top = max(strengths[given:], default=1.0)
    for place in range(given, len(chosen.kept)):
        rule, figure = chosen.kept[place]
        chosen.kept[place] = replace(rule, weight=round(float(np.sqrt(strengths[place] / top)), 3)), figure
    return chosen


def farewell(rule: Rule, evidence: Evidence, chosen: Chosen) -> Verdict:
    """Why a rule that was in force is not among those chosen, though nobody proposed it again."""
    (fires,) = crisp_firings([rule], evidence)
    count, least = int(fires.sum()), evidence.settings.min_firings
    outcomes = claimed(rule, evidence.outcomes)
    found = support.check(rule, count, _held_figures(rule, fires, evidence), lower_bound(outcomes[fires]), least)
    if found is None:
        found = gain.check(rule, count, outcomes[fires & chosen.free[claim_of(rule)[1]]], least)
    return found or refusal(rule, gain.NOT_PROPOSED, "nobody proposed it again")


def _judge_standing(rule: Rule, fires: Mask, evidence: Evidence, chosen: Chosen) -> None:
    figure = _held_figures(rule, fires, evidence)
    count = int(fires.sum())
    refuted = None if evidence.curious else _refuted(rule, fires, evidence)
    if refuted is not None:
        chosen.verdicts.append(with_witnesses(refuted, rule, fires, evidence))
        return
    sentence = f"a person put it in force, and data do not refute it: {count:,} firings in all"
    chosen.verdicts.append(acceptance(rule, sentence))
    chosen.kept.append((rule, figure))


def _refuted(rule: Rule, fires: Mask, evidence: Evidence) -> Verdict | None:
    # Nobody chose it by these episodes, so that all of them may speak against it, not only those held out.
    everywhere = figures(fires, claimed(rule, evidence.outcomes), evidence.trajectories.episodes)
    return support.check_standing(rule, everywhere, evidence.settings.min_firings)


def _judge(
    rule: Rule,
    fires: Mask,
    figure: Figures,
    bound: float,
    seen: thresholds.Seen,
    evidence: Evidence,
    chosen: Chosen,
) -> bool:
    """Run the checks by data in their order, write down what they say, and tell whether the rule stays."""
    settings, count = evidence.settings, int(fires.sum())
    new = claimed(rule, evidence.outcomes)[fires & chosen.free[claim_of(rule)[1]]] if is_judged(rule) else np.zeros(0)
    outside = thresholds.check(rule, seen)
    notes: list[Verdict] = []
    found = support.check(rule, count, figure, bound, settings.min_firings)
    if found is not None and outside is not None:
        found = replace(found, suggestion=outside.sentence)
    if found is None:
        against = conflict.check(rule, fires, chosen.firings, evidence)
        notes += [against] if against and against.kept else []
        found = against if against and not against.kept else None
    found = found or gain.check(rule, count, new, settings.min_firings) or outside
    found = found or gain.check_room(rule, len(chosen.kept), settings.max_rules)
    if found is None:
        found = acceptance(rule, f"lift {figure.lift:.4f} on held-out episodes, {count:,} firings in all")
    chosen.verdicts += [with_witnesses(found, rule, fires, evidence), *(notes if found.kept else [])]
    return found.kept


def _held_figures(rule: Rule, fires: Mask, evidence: Evidence) -> Figures:
    held = evidence.held
    outcomes = claimed(rule, evidence.outcomes)
    return figures(fires[held], outcomes[held], evidence.trajectories.episodes[held])
