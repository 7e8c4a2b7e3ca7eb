"""The slow twin of the evaluator: every rule by itself, node by node, nothing shared and no logarithm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from nser.grounding.comparison import Ranges, bounds, hold, margin
from nser.grounding.interpret import interpret
from nser.grounding.lower import lower
from nser.grounding.operators import PRODUCT, Logic
from nser.grounding.steps import Steps
from nser.grounding.temporal import shift
from nser.grounding.vocabulary import Vocabulary
from nser.rules.syntax import Atom, Comparison, Formula, Rule, Window, blames, praises


def reference_truths(
    rules: Sequence[Rule],
    vocabulary: Vocabulary,
    steps: Steps,
    *,
    thresholds: Sequence[Tensor] = (),
    logic: Logic = PRODUCT,
    sharpness: float | None = 30.0,
    ranges: Ranges | None = None,
) -> tuple[Tensor, Tensor]:
    """Body and head truth, each [T, R], as `Evaluator.truths` gives them.

    `thresholds` stand in for the learnable ones in reading order; without them the values in the text count.
    """
    given = iter(thresholds)

    def truth(formula: Formula) -> Tensor:
        def leaf(item: Atom | Comparison) -> Tensor:
            if isinstance(item, Atom):
                return vocabulary.degrees(item, steps)
            return hold(_margin(item, vocabulary, steps, given, sharpness, ranges or {}), sharpness)

        return interpret(lower(formula, vocabulary.signature), leaf, steps.episodes, logic, stacked)

    bodies, heads = [], []
    for rule in rules:
        bodies.append(truth(rule.body))
        judged = praises(rule) or blames(rule)
        heads.append(torch.ones(len(steps)) if judged else truth(rule.head))
    return torch.stack(bodies, 1), torch.stack(heads, 1)


def stacked(operator: str, degrees: Tensor, window: Window, episodes: Tensor, logic: Logic) -> Tensor:
    """[T] the window as it is written: one shifted copy of the degrees for each of its steps, joined at once."""
    sign = -1 if operator in ("prev", "once") else 1
    outside = 1.0 if operator == "always" else 0.0
    steps = range(window.start, window.stop + 1)
    moved = torch.stack([shift(degrees, sign * k, episodes, outside) for k in steps])
    return logic.all_of(moved, 0) if operator == "always" else logic.any_of(moved, 0)


def _margin(
    item: Comparison,
    vocabulary: Vocabulary,
    steps: Steps,
    given: Iterator[Tensor],
    sharpness: float | None,
    ranges: Ranges,
) -> Tensor:
    threshold: Tensor | float = item.threshold.value
    if item.threshold.learnable:
        threshold = next(given, threshold)
    known = bounds(item.feature, vocabulary.signature.predicates[item.feature.predicate], ranges)
    values = vocabulary.numbers(item.feature, steps)
    return margin(values, item.operator, threshold, sharpness, known[1] - known[0] if known else 1.0)
