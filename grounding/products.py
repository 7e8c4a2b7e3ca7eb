"""What a sweep does with a chunk of degrees: firings of all rules, the score, and the way back, in tensor calls.

Degrees are rows of a small matrix [2C + 1, n]: columns, complements, and ones that pad short rules, so that the k-th
literals of all rules are one gather and one product. Runs on any device; `nser.grounding.products_numba` does the
same on CPUs in one pass over the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from nser.grounding.dense import DEGREE_FLOOR, Conjunctions, mask

MISSING = 1e-12  # stands for a factor 1 − w f of exactly 0, so that all can be divided out; 1e-12 is 0 to float32


class Products(Protocol):
    """Products of literals for chunks of up to n rows; its buffers serve one chunk after the other."""

    def degrees(self, n: int) -> Tensor:
        """[C, n] where the degrees of a chunk go."""

    def scores(self, n: int) -> Tensor:
        """[n] scores 1 − Π (1 − w f) of the degrees."""

    def back(self, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """From ∂L/∂score [n] to ∂L/∂w [R], float64, and to the columns [C, n].

        For soft comparisons the gradient is that to the margin z, of which the degree p is the sigmoid, for all other
        columns that to p. With A and B the gradients to log p and log (1 − p) these are A (1 − p) − B p and
        A / p − B / (1 − p).
        """


class TensorProducts:
    """The kernel in PyTorch.

    conjunctions: [R] literals of each rule;  weights: [R];  soft: [C] which columns are soft comparisons;
    n: rows of a chunk at most
    """

    def __init__(
        self, conjunctions: Conjunctions, weights: Tensor, soft: Sequence[bool], n: int, dtype: torch.dtype
    ) -> None:
        columns = len(soft)
        # The longest first: then the rules with a k-th literal are the first rows.
        order = sorted(range(len(conjunctions)), key=lambda j: -len(conjunctions[j]))
        ordered = [conjunctions[j] for j in order]
        device = weights.device
        self.columns = columns
        self._soft = torch.tensor(soft, dtype=torch.bool, device=device)[:, None]
        self._literals = [
            torch.tensor([_row(parts[k], columns) for parts in ordered if len(parts) > k], device=device)
            for k in range(max((len(parts) for parts in ordered), default=0))
        ]
        self._places = torch.tensor(order, dtype=torch.int64, device=device)
        own = weights[self._places][:, None]  # [R, 1]
        self._negative = -own
        # [2C, R] from ∂L/∂ log f to the literals that f is made of
        self._spread = (mask(ordered, columns).to(device, dtype) * own).T.contiguous()
        self._matrix = torch.empty(2 * columns, n, dtype=dtype, device=device)
        self._fired = torch.empty(len(ordered), n, dtype=dtype, device=device)
        self._spare = torch.empty_like(self._fired)

    def degrees(self, n: int) -> Tensor:
        """[C, n] where the degrees of a chunk go."""
        return self._matrix[: self.columns, :n]

    def scores(self, n: int) -> Tensor:
        """[n] scores."""
        return 1 - self._fire(n).mul_(self._negative).add_(1).prod(0)

    def back(self, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """∂L/∂w [R] and the gradients to the columns [C, n]."""
        n = len(gradient)
        fired, others = self._fire(n), self._spare[:, :n]
        torch.mul(fired, self._negative, out=others).add_(1).clamp_min_(MISSING)  # 1 − w f
        torch.div(gradient * others.prod(0), others, out=others)  # [R, n] ∂L / ∂(w f)
        flow = others.mul_(fired)
        to_weights = torch.zeros(len(fired), dtype=torch.float64, device=fired.device)
        to_weights[self._places] = flow.sum(1, dtype=torch.float64)
        spread = self._spread @ flow  # sliced, not split: a rule set may have no column at all
        plain, negated = spread[: self.columns], spread[self.columns :]
        p, q = self._matrix[: self.columns, :n], self._matrix[self.columns :, :n]
        # Where a degree is 0 the firing is too, and so is what is divided.
        other = plain / p.clamp_min(DEGREE_FLOOR) - negated / q.clamp_min(DEGREE_FLOOR)
        return to_weights, torch.where(self._soft, plain * q - negated * p, other)

    def _fire(self, n: int) -> Tensor:
        """[R, n] firings."""
        matrix, fired = self._matrix[:, :n], self._fired[:, :n]
        torch.sub(1, matrix[: self.columns], out=matrix[self.columns :])
        if not self._literals or len(self._literals[0]) < len(fired):
            fired.fill_(1)  # a body that is `true` has no literal
        for k, rows in enumerate(self._literals):
            into = (self._spare[:, :n] if k else fired)[: len(rows)]
            torch.index_select(matrix, 0, rows, out=into)
            if k:
                fired[: len(rows)].mul_(into)
        return fired


def _row(literal: tuple[int, bool], columns: int) -> int:
    column, positive = literal
    return column if positive else columns + column


def flat(conjunctions: Conjunctions) -> tuple[list[int], list[int], list[bool]]:
    """Literals one after the other: where each rule's begin (R + 1 of them), their columns, and their signs."""
    starts, columns, signs = [0], [], []
    for parts in conjunctions:
        columns += [column for column, _ in parts]
        signs += [positive for _, positive in parts]
        starts.append(len(columns))
    return starts, columns, signs


def widest(conjunctions: Sequence[object], columns: int) -> int:
    """Numbers that `TensorProducts` keeps for each row of a chunk."""
    return 4 * columns + 3 * len(conjunctions)
