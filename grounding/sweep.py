"""The kernel for long batches: chunks that stay in the cache, nothing kept between forward and backward.

For rule j with weight w_j and firing f_j = Π p over its literals, the score is s = 1 − Π_j (1 − w_j f_j). Degrees are
read predicate-major, a chunk of rows at a time. The backward computes each chunk again and uses

    ∂s / ∂(w_j f_j) = Π_{i ≠ j} (1 − w_i f_i),   ∂ log f / ∂z = 1 − p for a literal sigmoid(z), −p for a negated one.

Memory over the inputs is the chunk's, some megabytes whatever the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nser.grounding.dense import Conjunctions
from nser.grounding.products import Products, TensorProducts, widest
from nser.grounding.reading import Reader
from nser.grounding.steps import Steps

CACHED = 14 * 2**20  # bytes of a chunk's matrices on a CPU: more fall out of the cache, fewer pay for calls
DEVICE = 64 * 2**20  # the same on an accelerator, which has no use for short rows
LONGEST = 98_304  # rows of a chunk at most, on a CPU: beyond, what is allocated and freed again costs page faults
SHORTEST = 2_048


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows [start, stop) of the batch, and the wider window [first, last) that temporal operators read for them."""

    start: int
    stop: int
    first: int
    last: int

    @property
    def core(self) -> slice:
        """The rows proper within the window."""
        return slice(self.start - self.first, self.stop - self.first)


def chunks(rows: int, size: int, past: int, future: int) -> Iterator[Chunk]:
    """Cut a batch into chunks of `size` rows."""
    for start in range(0, rows, size):
        stop = min(start + size, rows)
        yield Chunk(start, stop, max(start - past, 0), min(stop + future, rows))


class Sweep:
    """Scores by product logic, chunk by chunk, for rules whose firing is one conjunction of signed columns.

    conjunctions: [R] literals of each rule that takes part in the score;  rules: [R] its place among the weights
    past, future: how many neighbours the columns read
    """

    def __init__(
        self, reader: Reader, conjunctions: Conjunctions, rules: Sequence[int], past: int, future: int
    ) -> None:
        self.reader = reader
        self.conjunctions = conjunctions
        self.past, self.future = past, future
        self.columns = len(reader.columns.formulas)
        self.rules = torch.tensor(rules, dtype=torch.int64)
        first, last = reader.columns.atoms, reader.columns.atoms + reader.columns.comparisons
        soft = reader.sharpness is not None
        self.soft = tuple(soft and first <= column < last for column in range(self.columns))

    def size(self, steps: Steps) -> int:
        """Rows of a chunk."""
        number = steps.dtype.itemsize
        if _in_numba(steps):
            # degrees, the gradients to them, and what the vocabulary makes them from
            fits = min(CACHED // (3 * number * max(self.columns, 1)), LONGEST)
        else:
            fits = DEVICE // (number * (widest(self.conjunctions, self.columns) + 1))
        return max(fits, SHORTEST, 4 * (self.past + self.future))

    def scores(self, steps: Steps, weights: Tensor, thresholds: Tensor, size: int | None = None) -> Tensor:
        """[T] scores; differentiable with respect to weights, thresholds and what the vocabulary learns."""
        if not len(self.rules) or not len(steps):
            return steps.observations.new_zeros(len(steps), dtype=steps.dtype)
        learnt = self._learnt(steps, weights, thresholds) if torch.is_grad_enabled() else []
        size = size or self.size(steps)
        scores: Tensor = _Scores.apply(self, steps, size, weights, thresholds, *learnt)  # type: ignore[no-untyped-call]
        return scores

    def _learnt(self, steps: Steps, weights: Tensor, thresholds: Tensor) -> list[Tensor]:
        """Tensors that the degrees depend on through functions of the vocabulary, found by asking for one row."""
        rows = [*self.reader.atom_rows(steps[:1]), *self.reader.other_rows(steps[:1], thresholds)]
        found: dict[int, Tensor] = {}
        waiting = [row.grad_fn for row in rows if row.grad_fn is not None]
        seen = set(waiting)
        while waiting:
            node = waiting.pop()
            leaf = getattr(node, "variable", None)
            if leaf is not None:
                found[id(leaf)] = leaf
            following = {after for after, _ in node.next_functions if after is not None} - seen
            seen |= following
            waiting.extend(following)
        return [leaf for leaf in found.values() if leaf is not weights and leaf is not thresholds]

    def products(self, steps: Steps, weights: Tensor, size: int) -> Products:
        """The kernel for these steps: by device and type."""
        rows = min(size + self.past + self.future, len(steps))
        own = weights.detach().to(steps.device)[self.rules.to(steps.device)]
        if _in_numba(steps):
            from nser.grounding.products_numba import NumbaProducts  # slow to import, and short batches do without

            return NumbaProducts(self.conjunctions, own, self.soft, rows, steps.dtype)
        return TensorProducts(self.conjunctions, own, self.soft, rows, steps.dtype)

    def fill(self, degrees: Tensor, steps: Steps, thresholds: Tensor, checked: bool = False) -> list[Tensor]:
        """Put the degrees of all columns into [C, n]; gives the rows of atoms and others as they were computed.

        `checked` says that the same steps went through before.
        """
        atoms, comparisons = self.reader.columns.atoms, self.reader.columns.comparisons
        rows = self.reader.atom_rows(steps)
        if rows:
            torch.stack([row.detach() for row in rows], out=degrees[:atoms])
            if not checked:
                self.reader.check_degrees(degrees[:atoms], steps)
        if comparisons:
            block = degrees[atoms : atoms + comparisons]
            margins = self.reader.margins(steps, thresholds.detach(), out=block)
            if self.reader.sharpness is not None:
                torch.sigmoid(margins, out=block)
            else:
                block.copy_(self.reader.hold(margins, steps.device))
        others = self.reader.other_rows(steps, thresholds) if self.reader.others else []
        for place, row in enumerate(others, atoms + comparisons):
            degrees[place] = row.detach()
        return rows + others


def _in_numba(steps: Steps) -> bool:
    """Whether the kernel is `NumbaProducts`."""
    return steps.device.type == "cpu" and steps.dtype in (torch.float32, torch.float64)


class _Scores(torch.autograd.Function):
    """Forward keeps the inputs alone; backward computes every chunk again."""

    @staticmethod
    def forward(
        ctx: Any, sweep: Sweep, steps: Steps, size: int, weights: Tensor, thresholds: Tensor, *learnt: Tensor
    ) -> Tensor:
        """[T] scores."""
        ctx.sweep, ctx.steps, ctx.size = sweep, steps, size
        ctx.save_for_backward(weights, thresholds, *learnt)
        scores = torch.empty(len(steps), dtype=steps.dtype, device=steps.device)
        products = sweep.products(steps, weights, size)
        for chunk in chunks(len(steps), size, sweep.past, sweep.future):
            n = chunk.last - chunk.first
            sweep.fill(products.degrees(n), steps[chunk.first : chunk.last], thresholds)
            scores[chunk.start : chunk.stop] = products.scores(n)[chunk.core]
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients to weights [R], thresholds [K] and every learnt tensor."""
        sweep, steps = ctx.sweep, ctx.steps
        weights, thresholds, *learnt = ctx.saved_tensors
        products = sweep.products(steps, weights, ctx.size)
        sums = _Gradients(sweep, steps, weights, thresholds, learnt)
        for chunk in chunks(len(steps), ctx.size, sweep.past, sweep.future):
            sums.add(chunk, gradient, products)
        return None, None, None, *sums.gradients()


class _Gradients:
    """Sums over chunks, in float64: a million small terms meet one large sum."""

    def __init__(self, sweep: Sweep, steps: Steps, weights: Tensor, thresholds: Tensor, learnt: list[Tensor]) -> None:
        self.sweep, self.steps = sweep, steps
        self.weights, self.thresholds = weights, thresholds
        self.free = thresholds.detach().requires_grad_()  # stands for them inside formulas that autograd walks
        self.learnt = learnt
        comparisons = sweep.reader.columns.comparisons
        self.to_weights = torch.zeros(len(sweep.rules), dtype=torch.float64, device=steps.device)
        self.to_margins = torch.zeros(comparisons, dtype=torch.float64, device=steps.device)
        self.to_learnt = [torch.zeros_like(leaf) for leaf in (self.free, *learnt)]

    def add(self, chunk: Chunk, gradient: Tensor, products: Products) -> None:
        """One chunk."""
        sweep, window = self.sweep, self.steps[chunk.first : chunk.last]
        degrees = products.degrees(len(window))
        with torch.enable_grad():
            rows = sweep.fill(degrees, window, self.free, checked=True)
        ahead = torch.zeros(len(window), dtype=degrees.dtype, device=degrees.device)
        ahead[chunk.core] = gradient[chunk.start : chunk.stop]  # nothing for rows read for their neighbours' sake
        to_weights, slopes = products.back(ahead)
        self.to_weights += to_weights
        columns, atoms = sweep.columns, sweep.reader.columns.atoms
        after = atoms + sweep.reader.columns.comparisons
        if self.thresholds.numel() and any(sweep.soft):
            self.to_margins += slopes[atoms:after].sum(1)
        at = [*slopes[:atoms], *slopes[after:columns]]
        self._through_autograd([(row, slope) for row, slope in zip(rows, at, strict=True) if row.requires_grad])

    def _through_autograd(self, tracked: list[tuple[Tensor, Tensor]]) -> None:
        """Pass the gradients to rows of degrees on to what these were computed from."""
        if not tracked:
            return
        found = torch.autograd.grad(
            [row for row, _ in tracked],
            (self.free, *self.learnt),
            [slope for _, slope in tracked],
            retain_graph=True,  # a vocabulary may share a part of it between chunks
            allow_unused=True,
        )
        for total, part in zip(self.to_learnt, found, strict=True):
            if part is not None:
                total.add_(part)

    def gradients(self) -> tuple[Tensor, ...]:
        """To weights, thresholds and learnt tensors, each like the tensor itself."""
        device = self.steps.device
        to_weights = torch.zeros(len(self.weights), dtype=torch.float64, device=device)
        to_weights.index_add_(0, self.sweep.rules.to(device), self.to_weights)
        constants = self.sweep.reader.constants(device)
        to_thresholds = self.to_learnt[0].to(device, torch.float64)
        learns = constants.learns
        moved = -(self.to_margins * constants.slopes[:, 0])[learns]
        to_thresholds = to_thresholds.index_add(0, constants.source[learns], moved)
        return to_weights.to(self.weights), to_thresholds.to(self.thresholds), *self.to_learnt[1:]
