"""Thresholds that a proposer guessed, moved to where the shown episodes have them before anything is judged.

A model that writes `dist(t, door) < ?3` knows that near is good, not how near. Held-out episodes take no part, so
that what they say of the fitted rule is still evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from nser.grounding.fit import RuleFit, fit_thresholds
from nser.grounding.fit_settings import FitSettings
from nser.induce.checks.firing import is_judged
from nser.induce.evidence import Evidence
from nser.percent import percent
from nser.rules.syntax import Comparison, Rule
from nser.rules.verdict import Verdict, note
from nser.rules.walk import nodes

FITTED = "D902"
ROWS = 20_000  # newest shown transitions that are read at the most; thresholds want no more, and fitting takes longer


@dataclass(frozen=True)
class Fitted:
    """The rules in their order, fitted where they hold a `?`; a report and a note for each that was."""

    rules: tuple[Rule, ...]
    reports: tuple[RuleFit, ...] = ()
    notes: tuple[Verdict, ...] = ()


def fit_guesses(rules: Sequence[Rule], evidence: Evidence) -> Fitted:
    """Fit the learnable thresholds of rules that outcomes can judge, within the range that was seen.

    A rule whose firing agrees no better with the outcomes afterwards, or that still fires too seldom, stays as it was
    written, and the checks by data say what is wrong with it.
    """
    guessed = [rule for rule in rules if is_judged(rule) and has_guess(rule)]
    shown = _newest_shown(evidence)
    outcomes = evidence.outcomes[shown]
    if not guessed or not len(outcomes) or outcomes.min() == outcomes.max():
        return Fitted(tuple(rules))
    found = fit_thresholds(
        guessed,
        evidence.vocabulary,
        evidence.trajectories[shown].steps(),
        torch.from_numpy(outcomes),
        FitSettings(least_firings=evidence.settings.min_firings),
    )
    moved = {rule.name: rule for rule in found.rules}
    notes = [_note(moved[report.rule], report) for report in found.report if report.rule in moved]
    return Fitted(tuple(moved.get(rule.name, rule) for rule in rules), found.report, tuple(notes))


def has_guess(rule: Rule) -> bool:
    """Whether the body holds a learnable threshold."""
    return any(isinstance(node, Comparison) and node.threshold.learnable for node in nodes(rule.body))


def _newest_shown(evidence: Evidence) -> np.ndarray:
    """Places of the rows of the newest shown episodes, whole ones but for the oldest: temporal rules read on."""
    return np.flatnonzero(~evidence.held)[-ROWS:]


def _note(rule: Rule, report: RuleFit) -> Verdict:
    moves = ", ".join(
        f"`{change.feature} {change.operator} ?{change.before:g}` became {change.after:g}"
        f"{f' {change.unit}' if change.unit else ''} (seen {change.low:g} to {change.high:g})"
        for change in report.thresholds
    )
    (before, after), (was, now) = report.correlation, report.support
    sentence = (
        f"fitted on the shown episodes: {moves}; correlation with the outcome {before:.3f}, now {after:.3f}, "
        f"support {percent(was)}, now {percent(now)}"
    )
    return note(rule, FITTED, sentence)
