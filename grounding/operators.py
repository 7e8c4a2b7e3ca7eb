"""Fuzzy connectives on truth degrees in [0, 1]: four families, each a few lines.

Sources: van Krieken, Acar and van Harmelen, "Analyzing Differentiable Fuzzy Logic Operators" (2022), whose names
are used here. Every operator reduces one dimension of a tensor or joins two tensors of equal shape, without a copy
to the host. Implications are for display and logic only: a transition is never scored by the truth of one,
because that truth is near 1 wherever the body is false.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Reduction = Callable[[Tensor, int], Tensor]
Binary = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Logic:
    """A t-norm, its t-conorm and a default implication; negation is 1 − x in each.

    all_of, any_of: reduce one dimension of degrees;  implies: two tensors of equal shape.
    """

    name: str
    all_of: Reduction
    any_of: Reduction
    implies: Binary


def _product_any(degrees: Tensor, dim: int) -> Tensor:
    return 1 - (1 - degrees).prod(dim)


def _lukasiewicz_all(degrees: Tensor, dim: int) -> Tensor:
    return (1 - (1 - degrees).sum(dim)).clamp_min(0)


def _lukasiewicz_any(degrees: Tensor, dim: int) -> Tensor:
    return degrees.sum(dim).clamp_max(1)


def reichenbach(a: Tensor, b: Tensor) -> Tensor:
    """1 − a + a·b."""
    return 1 - a + a * b


def lukasiewicz_implies(a: Tensor, b: Tensor) -> Tensor:
    """min(1, 1 − a + b)."""
    return (1 - a + b).clamp_max(1)


def goguen(a: Tensor, b: Tensor) -> Tensor:
    """1 where a ≤ b, else b / a."""
    return torch.where(a <= b, torch.ones_like(a), b / a.clamp_min(torch.finfo(a.dtype).tiny))


def godel_implies(a: Tensor, b: Tensor) -> Tensor:
    """1 where a ≤ b, else b."""
    return torch.where(a <= b, torch.ones_like(a), b)


def kleene_dienes(a: Tensor, b: Tensor) -> Tensor:
    """max(1 − a, b)."""
    return torch.maximum(1 - a, b)


PRODUCT = Logic("product", torch.prod, _product_any, reichenbach)
GODEL = Logic("godel", torch.amin, torch.amax, godel_implies)
LUKASIEWICZ = Logic("lukasiewicz", _lukasiewicz_all, _lukasiewicz_any, lukasiewicz_implies)


def yager(p: float) -> Logic:
    """The Yager family: max(0, 1 − ‖1 − x‖_p) and min(1, ‖x‖_p), for p ≥ 1."""
    if not p >= 1:
        raise ValueError(f"found p = {p}, expected p >= 1: below it Yager's operators are no norms")

    def norm(degrees: Tensor, dim: int) -> Tensor:
        # The p-th root has an infinite slope at 0; a floor far below float32's resolution keeps it finite.
        return degrees.pow(p).sum(dim).clamp_min(1e-30).pow(1 / p)

    return Logic(
        f"yager({p:g})",
        lambda degrees, dim: (1 - norm(1 - degrees, dim)).clamp_min(0),
        lambda degrees, dim: norm(degrees, dim).clamp_max(1),
        kleene_dienes,
    )
