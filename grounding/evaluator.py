"""The differentiable evaluator: degrees of bodies and heads, and the score that replay reads.

For rule j with weight w_j, body truth B_ij and head truth H_ij at step i, the firing is

    f_ij = B_ij · H_ij  (`support`),   B_ij  (`relevance`)   or   B_ij · (1 − H_ij)  (`violation`)

and the score of the step is s_i = 1 − Π_j (1 − w_j f_ij), in [0, 1]. It is never the truth of the implication,
which is near 1 wherever a body is false. Heads `good(t)` and `~good(t)` are claims that data judges elsewhere;
here they count as true, and rules that blame take no part in the score: relevance never lowers a priority.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from nser.grounding.columns import Columns, compile_rules, map_comparisons
from nser.grounding.comparison import Ranges, bounds, hold, margin
from nser.grounding.interpret import interpret
from nser.grounding.operators import PRODUCT, Logic
from nser.grounding.steps import Steps
from nser.grounding.vocabulary import Vocabulary
from nser.rules.syntax import Atom, Comparison, Formula, Rule, Threshold, blames, praises
from nser.rules.walk import horizon

Mode = Literal["support", "relevance", "violation"]

DEGREE_FLOOR = 1e-35  # stands for a degree of 0 under the logarithm; far below what float32 tells from 0


class Evaluator(nn.Module):
    """A rule set over a vocabulary, compiled once and evaluated on batches of steps.

    Parameters of the module: `weights` [R], kept in [0, 1] by `project`, and `thresholds` [K], one for each `?` in
    reading order, kept within the features' ranges.

    sharpness: k of the soft comparison sigmoid(k (x − θ) / range), with the feature's range taken from the vocabulary
        or `ranges` (1 unit where neither knows it); `None` compares crisply, without a gradient to thresholds
    ranges: (lowest, highest) observed value of numeric features; they go before what the vocabulary declares

    Raises `UngroundedError` for rules that the vocabulary can't ground.
    """

    thresholds: nn.Parameter
    weights: nn.Parameter
    _body_plain: Tensor
    _body_negated: Tensor
    _head_plain: Tensor
    _head_negated: Tensor
    _scored: Tensor

    def __init__(
        self,
        rules: Sequence[Rule],
        vocabulary: Vocabulary,
        *,
        logic: Logic = PRODUCT,
        mode: Mode = "support",
        sharpness: float | None = 30.0,
        ranges: Ranges | None = None,
    ) -> None:
        super().__init__()
        self.rules = tuple(rules)
        self.vocabulary = vocabulary
        self.logic = logic
        self.mode: Mode = mode
        self.sharpness = sharpness
        self.ranges = dict(ranges or {})
        self.columns: Columns = compile_rules(self.rules, vocabulary.signature)
        self.thresholds = nn.Parameter(torch.tensor([item.start for item in self.columns.learnable]))
        self.weights = nn.Parameter(torch.tensor([rule.weight for rule in self.rules]))
        self.past, self.future = _horizon(self.rules)
        for name, conjunctions in (("body", self.columns.bodies), ("head", self.columns.heads)):
            for positive in (True, False):
                counts = _counts(conjunctions, len(self.columns.formulas), positive)
                self.register_buffer(f"_{name}_{'plain' if positive else 'negated'}", counts, persistent=False)
        scored = torch.tensor([not blames(rule) for rule in self.rules], dtype=torch.bool)
        self.register_buffer("_scored", scored, persistent=False)

    def forward(self, steps: Steps) -> Tensor:
        """[T] scores in [0, 1]."""
        return self.combine(self.firings(steps))

    def combine(self, firings: Tensor) -> Tensor:
        """[T] scores of [T, R] firings: the probabilistic sum of what each rule contributes."""
        return 1 - (1 - self.contributions(firings)).prod(1)

    def contributions(self, firings: Tensor) -> Tensor:
        """[T, R] weight times firing, 0 for rules that blame."""
        return firings * (self.weights * self._scored)

    def firings(self, steps: Steps) -> Tensor:
        """[T, R] firings in [0, 1] by the mode, the weight not yet applied."""
        body, head = self.truths(steps)
        if self.mode == "relevance":
            return body
        return body * (head if self.mode == "support" else 1 - head)

    def truths(self, steps: Steps) -> tuple[Tensor, Tensor]:
        """Body and head truth, each [T, R].

        Raises `DegreeError` naming predicate and row for a degree outside [0, 1] or a value that is not finite.
        """
        if self.logic is PRODUCT:
            log_true, log_false = self._logarithms(steps)
            body = torch.exp(log_true @ self._body_plain + log_false @ self._body_negated)
            head = torch.exp(log_true @ self._head_plain + log_false @ self._head_negated)
            return body, head
        degrees = [self._degrees(formula, steps) for formula in self.columns.formulas]
        body = self._conjoin(self.columns.bodies, degrees, len(steps))
        return body, self._conjoin(self.columns.heads, degrees, len(steps))

    @torch.no_grad()
    def score(self, steps: Steps, chunk: int = 16_384) -> Tensor:
        """[T] scores without gradients, `chunk` rows at a time, with the neighbours that temporal rules read."""
        rows = len(steps)
        parts = []
        for start in range(0, rows, chunk):
            stop = min(start + chunk, rows)
            first = max(start - self.past, 0)
            window = steps[first : min(stop + self.future, rows)]
            parts.append(self(window)[start - first : stop - first])
        return torch.cat(parts) if parts else steps.observations.new_zeros(0)

    @torch.no_grad()
    def project(self) -> None:
        """Put weights back into [0, 1] and thresholds into their feature's range, after an optimiser's step."""
        self.weights.clamp_(0, 1)
        for item in self.columns.learnable:
            known = self._bounds(item.comparison.feature)
            if known is not None:
                self.thresholds[item.number].clamp_(*known)

    def fitted_rules(self) -> tuple[Rule, ...]:
        """The rules with the weights and thresholds that the module holds now."""
        values = iter(self.thresholds.tolist())

        def put(comparison: Comparison) -> Comparison:
            if not comparison.threshold.learnable:
                return comparison
            return Comparison(comparison.feature, comparison.operator, Threshold(next(values), True))

        fitted = []
        for rule, weight in zip(self.rules, self.weights.tolist(), strict=True):
            body = map_comparisons(rule.body, put)
            head = rule.head if praises(rule) or blames(rule) else map_comparisons(rule.head, put)
            fitted.append(replace(rule, body=body, head=head, weight=min(max(weight, 0.0), 1.0)))
        return tuple(fitted)

    def _logarithms(self, steps: Steps) -> tuple[Tensor, Tensor]:
        """log p and log (1 − p) of every column, each [T, C]."""
        if not self.columns.formulas:
            empty = steps.observations.new_zeros(len(steps), 0)
            return empty, empty
        true, false = [], []
        for formula in self.columns.formulas:
            if isinstance(formula, Comparison) and self.sharpness is not None:
                z = self._margin(formula, steps)
                true.append(logsigmoid(z))
                false.append(logsigmoid(-z))
            else:
                degree = self._degrees(formula, steps)
                true.append(degree.clamp_min(DEGREE_FLOOR).log())
                false.append((1 - degree).clamp_min(DEGREE_FLOOR).log())
        return torch.stack(true, 1), torch.stack(false, 1)

    def _degrees(self, formula: Formula, steps: Steps) -> Tensor:
        return interpret(formula, lambda leaf: self._leaf(leaf, steps), steps.episodes, self.logic)

    def _leaf(self, leaf: Atom | Comparison, steps: Steps) -> Tensor:
        if isinstance(leaf, Atom):
            return self.vocabulary.degrees(leaf, steps)
        return hold(self._margin(leaf, steps), self.sharpness)

    def _margin(self, comparison: Comparison, steps: Steps) -> Tensor:
        values = self.vocabulary.numbers(comparison.feature, steps)
        threshold: Tensor | float = comparison.threshold.value
        if comparison.threshold.learnable:
            threshold = self.thresholds[int(comparison.threshold.value)]
        known = self._bounds(comparison.feature)
        width = known[1] - known[0] if known else 1.0
        return margin(values, comparison.operator, threshold, self.sharpness, width)

    def _bounds(self, feature: Atom) -> tuple[float, float] | None:
        return bounds(feature, self.vocabulary.signature.predicates[feature.predicate], self.ranges)

    def _conjoin(
        self, conjunctions: Sequence[Sequence[tuple[int, bool]]], degrees: Sequence[Tensor], rows: int
    ) -> Tensor:
        truth = []
        for parts in conjunctions:
            signed = [degrees[c] if positive else 1 - degrees[c] for c, positive in parts]
            whole = torch.ones(rows, device=self.weights.device)
            truth.append(self.logic.all_of(torch.stack(signed), 0) if signed else whole)
        return torch.stack(truth, 1) if truth else torch.ones(rows, 0, device=self.weights.device)


def _counts(conjunctions: Sequence[Sequence[tuple[int, bool]]], columns: int, positive: bool) -> Tensor:
    """[C, R]: how often each conjunction holds each column with this sign."""
    counts = torch.zeros(columns, len(conjunctions))
    for rule, parts in enumerate(conjunctions):
        for column, sign in parts:
            if sign == positive:
                counts[column, rule] += 1
    return counts


def _horizon(rules: Sequence[Rule]) -> tuple[int, int]:
    spans = [horizon(formula) for rule in rules for formula in (rule.body, rule.head)]
    return max((p for p, _ in spans), default=0), max((f for _, f in spans), default=0)
