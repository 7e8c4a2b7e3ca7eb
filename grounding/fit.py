"""Learning from outcomes: thresholds and weights of rules, with a report of what was before and after.

No rule is trained to be *true*: every loss that asks for satisfied implications learns to make bodies false.
Thresholds follow the correlation of firing and outcome, weights a sparse logistic regression of the outcome on all
firings together. A rule that fires too seldom, or adds nothing beside the others, is retired with a reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from nser.grounding.comparison import observed_ranges
from nser.grounding.errors import FitError
from nser.grounding.evaluator import Evaluator
from nser.grounding.fit_settings import FitSettings
from nser.grounding.fit_thresholds import learn_thresholds
from nser.grounding.fit_weights import learn_coefficients
from nser.grounding.steps import Steps
from nser.grounding.vocabulary import Vocabulary, written
from nser.rules.syntax import Rule, blames


@dataclass(frozen=True)
class ThresholdChange:
    """One `?`: the comparison it stands in, its value before and after, and the observed range, all in `unit`."""

    feature: str
    operator: str
    unit: str
    before: float
    after: float
    low: float
    high: float


@dataclass(frozen=True)
class RuleFit:
    """What became of one rule.

    support:     share of all steps on which the rule fires crisply, before and after
    correlation: of the crisp firing with the outcome, before and after; 0 where either never changes
    weight:      before and after, in [0, 1];  coefficient: of the regression, in logits; None where weights stayed
    retired:     why the rule is not among the fitted ones, or None
    """

    rule: str
    thresholds: tuple[ThresholdChange, ...]
    support: tuple[float, float]
    correlation: tuple[float, float]
    weight: tuple[float, float]
    coefficient: float | None = None
    retired: str | None = None


@dataclass(frozen=True)
class Fit:
    """The rules that stay, fitted, in their order; and a report on each that was given."""

    rules: tuple[Rule, ...]
    report: tuple[RuleFit, ...]


def fit(
    rules: Sequence[Rule],
    vocabulary: Vocabulary,
    steps: Steps,
    outcomes: Tensor,
    settings: FitSettings | None = None,
) -> Fit:
    """Thresholds first, then the weights of the rules that still fire.

    outcomes: [T] what each step was worth, in any unit; weights ask whether it is above 0

    Raises `FitError` where there is nothing to learn from, `UngroundedError` for rules of another vocabulary.
    """
    thresholds = fit_thresholds(rules, vocabulary, steps, outcomes, settings)
    weights = fit_weights(thresholds.rules, vocabulary, steps, outcomes, settings)
    weighed = {item.rule: item for item in weights.report}
    report = [
        item
        if item.rule not in weighed
        else replace(
            item,
            weight=weighed[item.rule].weight,
            coefficient=weighed[item.rule].coefficient,
            retired=weighed[item.rule].retired,
        )
        for item in thresholds.report
    ]
    return Fit(weights.rules, tuple(report))


def fit_thresholds(
    rules: Sequence[Rule],
    vocabulary: Vocabulary,
    steps: Steps,
    outcomes: Tensor,
    settings: FitSettings | None = None,
) -> Fit:
    """Move every learnable threshold to where firing and outcome agree best, within the observed range.

    A rule is never left worse than it was: where learning found nothing better, its thresholds stay. Raises as `fit`.
    """
    settings = settings or FitSettings()
    rules = tuple(rules)
    target = _checked(rules, steps, outcomes)
    ranges = observed_ranges(vocabulary, steps)
    start = _crisp(rules, vocabulary, steps)
    fitted = learn_thresholds(rules, vocabulary, steps, target, ranges, settings)
    after = _crisp(fitted, vocabulary, steps)
    keep = _better(start, after, target, rules, settings)
    fitted = tuple(new if better else old for old, new, better in zip(rules, fitted, keep, strict=True))
    after = _crisp(fitted, vocabulary, steps)
    known, moved = (Evaluator(group, vocabulary, ranges=ranges) for group in (rules, fitted))
    values = iter(moved.thresholds.tolist())
    changes: dict[str, list[ThresholdChange]] = {rule.name: [] for rule in rules}
    for item in known.columns.learnable:
        feature = item.comparison.feature
        unit = vocabulary.signature.predicates[feature.predicate].unit
        low, high = ranges.get(feature, (float("-inf"), float("inf")))
        changes[item.rule].append(
            ThresholdChange(written(feature), item.comparison.operator, unit, item.start, next(values), low, high)
        )
    report, kept = [], []
    for j, (old, new) in enumerate(zip(rules, fitted, strict=True)):
        count = int(after[:, j].sum())
        idle = None
        if count < settings.least_firings:
            idle = f"it fired on {count} of {len(steps)} steps, expected at least {settings.least_firings}"
        else:
            kept.append(new)
        report.append(
            RuleFit(
                rule=old.name,
                thresholds=tuple(changes[old.name]),
                support=(float(start[:, j].mean()), float(after[:, j].mean())),
                correlation=(correlation(start[:, j], target), correlation(after[:, j], target)),
                weight=(old.weight, new.weight),
                retired=idle,
            )
        )
    return Fit(tuple(kept), tuple(report))


def fit_weights(
    rules: Sequence[Rule],
    vocabulary: Vocabulary,
    steps: Steps,
    outcomes: Tensor,
    settings: FitSettings | None = None,
) -> Fit:
    """Weigh all rules together: how much each firing raises the odds of an outcome above 0 when the others are known.

    The regression's coefficients are kept at or above 0 for rules that praise (at or below for those that blame), and
    drawn to 0 by an L1 penalty; the weight is the coefficient relative to the largest. Raises as `fit`.
    """
    settings = settings or FitSettings()
    rules = tuple(rules)
    target = _checked(rules, steps, outcomes)
    fires = _crisp(rules, vocabulary, steps)
    good = (target > 0).double()
    if rules and not 0 < float(good.mean()) < 1:
        raise FitError(
            f"found {int(good.sum())} of {len(good)} outcomes above 0, expected some on either side: weights tell them "
            "apart; subtract the mean outcome first"
        )
    signs = torch.tensor([-1.0 if blames(rule) else 1.0 for rule in rules], dtype=torch.float64)
    coefficients = learn_coefficients(fires.double() * signs, good, settings)
    top = max(coefficients, default=0.0)
    report, kept = [], []
    for j, (rule, coefficient) in enumerate(zip(rules, coefficients, strict=True)):
        weight = round(coefficient / top, 3) if top > 0 else 0.0
        if weight > 0:
            kept.append(replace(rule, weight=weight))
        support, agrees = float(fires[:, j].mean()), correlation(fires[:, j], target)
        report.append(
            RuleFit(
                rule=rule.name,
                thresholds=(),
                support=(support, support),
                correlation=(agrees, agrees),
                weight=(rule.weight, weight),
                coefficient=float(signs[j]) * coefficient,
                retired=None
                if weight > 0
                else "its firing says nothing of the outcome that the other rules do not say",
            )
        )
    return Fit(tuple(kept), tuple(report))


def correlation(firing: Tensor, outcomes: Tensor) -> float:
    """Pearson's, of [T] and [T]; 0 where either never changes."""
    a, b = firing.double() - firing.double().mean(), outcomes.double() - outcomes.double().mean()
    size = float(a.norm() * b.norm())
    return float(a @ b) / size if size > 0 else 0.0


def _better(start: Tensor, after: Tensor, target: Tensor, rules: Sequence[Rule], settings: FitSettings) -> list[bool]:
    """[R] whether the fitted rule fires often enough and agrees with the outcome no worse than before."""
    found = []
    for j, rule in enumerate(rules):
        sign = -1 if blames(rule) else 1
        gains = sign * (correlation(after[:, j], target) - correlation(start[:, j], target)) >= 0
        fires = int(after[:, j].sum()) >= settings.least_firings
        floor = settings.support_floor * float(start[:, j].mean()) if settings.objective == "bce" else 0.0
        found.append(gains and fires and float(after[:, j].mean()) >= floor)
    return found


@torch.no_grad()
def _crisp(rules: Sequence[Rule], vocabulary: Vocabulary, steps: Steps) -> Tensor:
    """[T, R] 1 where a rule fires, thresholds as they read."""
    return (Evaluator(rules, vocabulary, sharpness=None).firings(steps) > 0.5).to(torch.float32)


def _checked(rules: Sequence[Rule], steps: Steps, outcomes: Tensor) -> Tensor:
    names = [rule.name for rule in rules]
    if len(set(names)) != len(names):
        raise FitError(f"found two rules of one name among {', '.join(names)}, expected a name for each")
    if outcomes.shape != (len(steps),):
        raise FitError(f"found outcomes of shape {tuple(outcomes.shape)}, expected ({len(steps)},): one for each step")
    if not torch.isfinite(outcomes).all():
        raise FitError("found an outcome that is no finite number; drop its step")
    if rules and (not len(steps) or float(outcomes.min()) == float(outcomes.max())):
        raise FitError(f"found {len(steps)} steps whose outcomes are all alike, expected some better than others")
    return outcomes.to(torch.float32)
