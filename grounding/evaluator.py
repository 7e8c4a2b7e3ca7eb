"""The differentiable evaluator: degrees of bodies and heads, and the score that replay reads.

For rule j with weight w_j, body truth B_ij and head truth H_ij at step i, the firing is

    f_ij = B_ij · H_ij  (`support`),   B_ij  (`relevance`)   or   B_ij · (1 − H_ij)  (`violation`)

and the score of the step is s_i = 1 − Π_j (1 − w_j f_ij), in [0, 1]. It is never the truth of the implication,
which is near 1 wherever a body is false; who asks for that (`implication`) is warned. Heads `good(t)` and `~good(t)`
are claims that data judges elsewhere; here they count as true, and rules that blame take no part in the score:
relevance never lowers a priority.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from nser.grounding.columns import Columns, compile_rules, map_comparisons
from nser.grounding.comparison import Ranges
from nser.grounding.dense import Conjunctions, conjoin, logarithms, mask
from nser.grounding.errors import ImplicationWarning
from nser.grounding.lower import reach
from nser.grounding.operators import PRODUCT, Logic
from nser.grounding.reading import Reader
from nser.grounding.steps import Steps
from nser.grounding.sweep import Sweep, chunks
from nser.grounding.vocabulary import Vocabulary
from nser.rules.syntax import Comparison, Rule, Threshold, blames, praises

Mode = Literal["support", "relevance", "violation", "implication"]

DENSE_ROWS = 2_000  # longer batches are swept: from there on its exponentials and their memory cost more than calls
CHUNK_ROWS = 10_000  # of what is given for each rule


class Evaluator(nn.Module):
    """A rule set over a vocabulary, compiled once and evaluated on batches of steps.

    Parameters of the module: `weights` [R], kept in [0, 1] by `project`, and `thresholds` [K], one for each `?` in
    reading order, kept within the features' ranges. What is computed lives on the device of the steps. Up to
    `DENSE_ROWS` rows go through one product of matrices (`nser.grounding.dense`), more in chunks of bounded memory
    (`nser.grounding.sweep`); both have the same values and gradients.

    logic: t-norm, t-conorm and implication; `dataclasses.replace(PRODUCT, implies=goguen)` changes one of them
    mode: what a firing is, see above
    sharpness: k of the soft comparison sigmoid(k (x − θ) / range), with the feature's range taken from the vocabulary
        or `ranges` (1 unit where neither knows it); `None` compares crisply, without a gradient to thresholds
    ranges: (lowest, highest) observed value of numeric features; they go before what the vocabulary declares

    Raises `UngroundedError` for rules that the vocabulary can't ground. Warns with `ImplicationWarning`.
    """

    thresholds: nn.Parameter
    weights: nn.Parameter

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
        if mode == "implication":
            warnings.warn(ImplicationWarning(), stacklevel=2)
        self.rules = tuple(rules)
        self.vocabulary = vocabulary
        self.logic = logic
        self.mode: Mode = mode
        self.ranges = dict(ranges or {})
        self.columns: Columns = compile_rules(self.rules, vocabulary.signature)
        self.thresholds = nn.Parameter(torch.tensor([item.start for item in self.columns.learnable]))
        self.weights = nn.Parameter(torch.tensor([rule.weight for rule in self.rules]))
        self.past, self.future = _horizon(self.rules)
        self._reader = Reader(self.columns, vocabulary, logic, sharpness, self.ranges)
        self._compile()

    def _compile(self) -> None:
        """Masks for the dense kernel, and the other kernel where it can do these rules."""
        columns, count = self.columns, len(self.columns.formulas)
        product = self.logic.all_of is PRODUCT.all_of
        self._firing = _firing(columns, self.mode) if product else None
        scored = [not blames(rule) for rule in self.rules]
        self._masks: dict[str, Tensor] = {
            "body": mask(columns.bodies, count),
            "head": mask(columns.heads, count),
            "scored": torch.tensor(scored, dtype=torch.float32),
        }
        if self._firing is not None:
            self._masks["firing"] = mask(self._firing, count)
        self._sweep: Sweep | None = None  # made when a long batch comes
        self._judged = not any(columns.heads)  # then every head is 1
        self._on: dict[torch.device, dict[str, Tensor]] = {torch.device("cpu"): self._masks}

    @property
    def sharpness(self) -> float | None:
        """k of the soft comparison; `None` where comparisons are crisp. Training anneals it."""
        return self._reader.sharpness

    @sharpness.setter
    def sharpness(self, value: float | None) -> None:
        self._reader = Reader(self.columns, self.vocabulary, self.logic, value, self.ranges)
        self._compile()

    def forward(self, steps: Steps) -> Tensor:
        """[T] scores in [0, 1]."""
        if len(steps) > DENSE_ROWS:
            return self._swept(steps, None)
        return self._combined(self._fired(steps), 0)

    def combine(self, firings: Tensor) -> Tensor:
        """[T] scores of [T, R] firings: the probabilistic sum of what each rule contributes."""
        return self._combined(firings.T, 0)

    def contributions(self, firings: Tensor) -> Tensor:
        """[T, R] weight times firing, 0 for rules that blame."""
        return firings * self._strengths(firings.device)

    def firings(self, steps: Steps) -> Tensor:
        """[T, R] firings in [0, 1] by the mode, the weight not yet applied."""
        return self._in_chunks(self._fired, steps, None)[0].T

    def truths(self, steps: Steps) -> tuple[Tensor, Tensor]:
        """Body and head truth, each [T, R].

        Raises `DegreeError` naming predicate and row for a degree outside [0, 1] or a value that is not finite.
        """
        body, head = self._in_chunks(self._both, steps, None)
        return body.T, head.T

    @torch.no_grad()
    def score(self, steps: Steps, chunk: int | None = None) -> Tensor:
        """[T] scores without gradients; in chunks of that many rows, or of as many as are fastest."""
        return self(steps) if chunk is None else self._swept(steps, chunk)

    @torch.no_grad()
    def project(self) -> None:
        """Put weights back into [0, 1] and thresholds into their feature's range, after an optimiser's step."""
        self.weights.clamp_(0, 1)
        for item in self.columns.learnable:
            known = self._reader.bounds(item.comparison.feature)
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

    def _fired(self, steps: Steps) -> Tensor:
        """[R, T] firings by the dense kernel."""
        held = self._tables(steps.device).get("firing")
        if held is not None:
            return conjoin(logarithms(self._reader, steps, self.thresholds), held)
        body, head = self._both(steps)
        match self.mode:
            case "support":
                return self.logic.all_of(torch.stack([body, head]), 0)
            case "relevance":
                return body
            case "violation":
                return self.logic.all_of(torch.stack([body, 1 - head]), 0)
            case "implication":
                return self.logic.implies(body, head)

    def _both(self, steps: Steps) -> tuple[Tensor, Tensor]:
        """Body and head truth, each [R, T], by the dense kernel."""
        tables = self._tables(steps.device)
        if self.logic.all_of is PRODUCT.all_of:
            logs = logarithms(self._reader, steps, self.thresholds)
            body = conjoin(logs, tables["body"])
            return body, torch.ones_like(body) if self._judged else conjoin(logs, tables["head"])
        margins = self._reader.margins(steps, self.thresholds)
        degrees = [*self._reader.atoms(steps), *self._reader.hold(margins, steps.device)]
        degrees += self._reader.other_rows(steps, self.thresholds)
        return self._conjoin(self.columns.bodies, degrees, steps), self._conjoin(self.columns.heads, degrees, steps)

    def _conjoin(self, conjunctions: Conjunctions, degrees: Sequence[Tensor], steps: Steps) -> Tensor:
        truth = []
        for parts in conjunctions:
            signed = [degrees[c] if positive else 1 - degrees[c] for c, positive in parts]
            whole = torch.ones(len(steps), device=steps.device)
            truth.append(self.logic.all_of(torch.stack(signed), 0) if signed else whole)
        return torch.stack(truth) if truth else torch.ones(0, len(steps), device=steps.device)

    def _combined(self, firings: Tensor, dim: int) -> Tensor:
        return 1 - (1 - firings * self._strengths(firings.device)[:, None]).prod(dim)

    def _swept(self, steps: Steps, chunk: int | None) -> Tensor:
        """[T] scores in chunks of bounded memory."""
        learns = steps.observations.requires_grad or self._reader.learns_numbers(steps)
        if self._firing is not None and not learns:
            if self._sweep is None:
                scored = [j for j, rule in enumerate(self.rules) if not blames(rule)]
                parts = [self._firing[j] for j in scored]
                self._sweep = Sweep(self._reader, parts, scored, self.past, self.future)
            return self._sweep.scores(steps, self.weights, self.thresholds, chunk)
        return self._in_chunks(lambda window: self._combined(self._fired(window), 0), steps, chunk)[0]

    def _in_chunks(
        self, evaluate: Callable[[Steps], Tensor | tuple[Tensor, ...]], steps: Steps, size: int | None
    ) -> tuple[Tensor, ...]:
        """What `evaluate` gives, its last dimension being the rows; long batches chunk by chunk.

        The backward computes each chunk again instead of keeping what is between: memory over what goes in and comes
        out is one chunk's.
        """
        size = size or CHUNK_ROWS
        if len(steps) <= size:
            whole = evaluate(steps)
            return whole if isinstance(whole, tuple) else (whole,)
        parts: list[tuple[Tensor, ...]] = []
        for chunk in chunks(len(steps), max(size, self.past + self.future), self.past, self.future):
            window = steps[chunk.first : chunk.last]
            given = checkpoint(evaluate, window, use_reentrant=False) if torch.is_grad_enabled() else evaluate(window)
            found = given if isinstance(given, tuple) else (given,)
            parts.append(tuple(part[..., chunk.core] for part in found))
        return tuple(torch.cat(column, -1) for column in zip(*parts, strict=True))

    def _strengths(self, device: torch.device) -> Tensor:
        """[R] weights, 0 for rules that blame."""
        return self.weights.to(device) * self._tables(device)["scored"]

    def _tables(self, device: torch.device) -> dict[str, Tensor]:
        if device not in self._on:
            self._on[device] = {name: table.to(device) for name, table in self._masks.items()}
        return self._on[device]


def _firing(columns: Columns, mode: Mode) -> Conjunctions | None:
    """The conjunction that each rule's firing is in this mode; none if it is a conjunction of something else."""
    if mode == "support":
        return [body + head for body, head in zip(columns.bodies, columns.heads, strict=True)]
    if mode == "relevance":
        return columns.bodies
    if mode == "violation" and all(len(head) == 1 for head in columns.heads):
        against = [((column, not positive),) for ((column, positive),) in columns.heads]
        return [body + head for body, head in zip(columns.bodies, against, strict=True)]
    return None


def _horizon(rules: Sequence[Rule]) -> tuple[int, int]:
    spans = [reach(formula) for rule in rules for formula in (rule.body, rule.head)]
    return max((p for p, _ in spans), default=0), max((f for _, f in spans), default=0)
