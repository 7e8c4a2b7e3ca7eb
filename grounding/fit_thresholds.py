"""Thresholds by the correlation of firing and outcome: softly with annealed sharpness, then exactly on the data.

The soft part moves all thresholds of a rule at once and reaches those inside disjunctions and temporal operators.
The exact part takes the comparisons that are literals of the body one at a time: with the rows sorted by the feature
every cut's correlation is known from two running sums, so the best cut is found, not approached.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from nser.grounding.comparison import Ranges
from nser.grounding.evaluator import Evaluator
from nser.grounding.fit_settings import FitSettings
from nser.grounding.steps import Steps
from nser.grounding.vocabulary import Vocabulary
from nser.rules.syntax import Comparison, Rule, Threshold, blames
from nser.rules.walk import conjunction, conjuncts

PASSES = 4  # of the exact part over the literals of a rule; most rules stand still after two


def learn_thresholds(
    rules: Sequence[Rule],
    vocabulary: Vocabulary,
    steps: Steps,
    target: Tensor,
    ranges: Ranges,
    settings: FitSettings,
) -> tuple[Rule, ...]:
    """The rules with thresholds learnt from [T] outcomes; all lie within `ranges`."""
    evaluator = Evaluator(rules, vocabulary, sharpness=settings.sharpness[0], ranges=ranges)
    if not evaluator.columns.learnable:
        return tuple(rules)
    _ascend(evaluator, steps, target, ranges, settings)
    fitted = evaluator.fitted_rules()
    if settings.objective == "bce":
        return fitted
    return tuple(_exact(rule, vocabulary, steps, target, settings) for rule in fitted)


def _ascend(evaluator: Evaluator, steps: Steps, target: Tensor, ranges: Ranges, settings: FitSettings) -> None:
    """Adam on thresholds measured in shares of their feature's range, so that one rate fits all units."""
    learnable = evaluator.columns.learnable
    known = [ranges.get(item.comparison.feature, (item.start - 1, item.start + 1)) for item in learnable]
    low = torch.tensor([bounds[0] for bounds in known])
    width = torch.tensor([max(bounds[1] - bounds[0], 1e-12) for bounds in known])
    place = torch.nn.Parameter(((evaluator.thresholds.detach() - low) / width).clamp(0, 1))
    optimizer = torch.optim.Adam([place], settings.rate)
    signs = torch.tensor([-1.0 if blames(rule) else 1.0 for rule in evaluator.rules])
    first, last = settings.sharpness
    floor = settings.support_floor * evaluator.firings(steps).detach().mean(0)
    for step in range(settings.iterations):
        evaluator.sharpness = first + (last - first) * step / max(settings.iterations - 1, 1)
        fired = evaluator.firings(steps)  # [T, R]
        loss = _bce(fired, target, signs, floor) if settings.objective == "bce" else _against(fired, target, signs)
        evaluator.zero_grad()
        loss.backward()
        gradient = evaluator.thresholds.grad
        assert gradient is not None
        place.grad = gradient * width
        optimizer.step()
        with torch.no_grad():
            place.clamp_(0, 1)
            evaluator.thresholds.copy_(low + place * width)


def _against(fired: Tensor, target: Tensor, signs: Tensor) -> Tensor:
    """Minus the sum of the rules' correlations with the outcome."""
    a, b = fired - fired.mean(0), target - target.mean()
    spread = (a.square().sum(0) * b.square().sum()).clamp_min(1e-24).sqrt()
    together = (a * b[:, None]).sum(0) / spread
    return -(together * signs).sum()


def _bce(fired: Tensor, target: Tensor, signs: Tensor, floor: Tensor) -> Tensor:
    """Cross-entropy of the firings against outcomes above 0, and a wall where support falls below the floor."""
    good = (target > 0).to(fired.dtype)[:, None]
    right = torch.where(signs > 0, good, 1 - good)  # [T, R]
    short = (1 - fired.mean(0) / floor.clamp_min(1e-12)).clamp_min(0)
    inside = fired.clamp(1e-6, 1 - 1e-6)
    cross = -(right * inside.log() + (1 - right) * (1 - inside).log())
    return cross.mean(0).sum() + 10 * short.sum()


@torch.no_grad()
def _exact(rule: Rule, vocabulary: Vocabulary, steps: Steps, target: Tensor, settings: FitSettings) -> Rule:
    """The rule with its learnable literals cut where the crisp correlation is highest, the others held."""
    parts = list(conjuncts(rule.body))
    places = [i for i, part in enumerate(parts) if isinstance(part, Comparison) and part.threshold.learnable]
    if not places:
        return rule
    alone = [replace(rule, body=part) for part in parts]
    # Body literals one by one, each with the rule's head, which has to hold too.
    truth = Evaluator(alone, vocabulary, sharpness=None).firings(steps) > 0.5  # [T, L]
    values = {}
    for i in places:
        part = parts[i]
        assert isinstance(part, Comparison)
        values[i] = vocabulary.numbers(part.feature, steps)
    outcome = (target - target.mean()).double() * (-1 if blames(rule) else 1)
    for _ in range(PASSES):
        before = tuple(parts)
        for i in places:
            others = truth[:, [k for k in range(len(parts)) if k != i]].all(1)
            if len(parts) == 1:
                others &= _head_holds(rule, vocabulary, steps)
            part = parts[i]
            assert isinstance(part, Comparison)
            above = part.operator.startswith(">")
            cut = best_cut(values[i][others], outcome[others], above, len(steps), settings.least_firings)
            if cut is None:
                continue
            parts[i] = Comparison(part.feature, part.operator, Threshold(cut, True))
            truth[:, i] = (values[i] > cut) if above else (values[i] < cut)
        if tuple(parts) == before:
            break
    return replace(rule, body=conjunction(tuple(parts)))


def _head_holds(rule: Rule, vocabulary: Vocabulary, steps: Steps) -> Tensor:
    _, head = Evaluator([rule], vocabulary, sharpness=None).truths(steps)
    return head[:, 0] > 0.5


def best_cut(values: Tensor, outcome: Tensor, above: bool, rows: int, least: int) -> float | None:
    """The threshold whose side correlates best with the outcome, a round number about midway between two values.

    None where no threshold parts the rows.

    values, outcome: [n] of the rows on which everything else holds, the outcome centred over all `rows`;
    least: rows that must lie on the chosen side
    """
    order = torch.argsort(values, descending=above, stable=True)
    ranked = values[order].double()
    n = torch.arange(1, len(ranked) + 1, dtype=torch.float64)
    # Correlation of a mask with a centred outcome, but for the outcome's own spread: Σ outcome / √(n (rows − n))
    worth = outcome[order].cumsum(0) / (n * (rows - n).clamp_min(1)).sqrt()
    usable = n >= least
    usable[:-1] &= ranked[1:] != ranked[:-1]
    usable[-1:] = False  # all rows on one side: the literal would say nothing
    if not bool(usable.any()):
        return None
    best = int(torch.where(usable, worth, -math.inf).argmax())
    return round_between(float(ranked[best]), float(ranked[best + 1]))


def round_between(one: float, other: float) -> float:
    """The number of fewest digits in the middle half between two different ones.

    >>> round_between(1.0, 2.0), round_between(0.23456, 0.2399), round_between(-1034.0, -988.0)
    (1.5, 0.237, -1000.0)
    """
    middle, reach = (one + other) / 2, abs(one - other) / 4
    for digits in range(1, 17):
        found = float(f"{middle:.{digits}g}")
        if abs(found - middle) <= reach:
            return found
    return middle
