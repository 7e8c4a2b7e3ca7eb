"""The plain interpreter: one node of a formula at a time. The reference that every faster kernel must agree with."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from nser.grounding.errors import UngroundedError
from nser.grounding.operators import Logic
from nser.grounding.temporal import InTime, windowed
from nser.rules.syntax import (
    And,
    Atom,
    Comparison,
    Formula,
    Iff,
    Implies,
    Not,
    Or,
    Temporal,
    Truth,
    Window,
)

Leaf = Callable[[Atom | Comparison], Tensor]
"""Degrees [T] of an atom or a comparison."""

STEP_AHEAD = Window(1, 1)


def interpret(formula: Formula, leaf: Leaf, episodes: Tensor, logic: Logic, in_time: InTime = windowed) -> Tensor:
    """[T] truth degrees of a lowered formula (see `nser.grounding.lower`).

    `leaf` gives the degrees of atoms and comparisons, `episodes` [T] the episode numbers that temporal
    operators must not cross, `in_time` evaluates those.
    """

    def of(part: Formula) -> Tensor:
        return interpret(part, leaf, episodes, logic, in_time)

    match formula:
        case Truth(value):
            return torch.full(episodes.shape, float(value), device=episodes.device)
        case Atom() | Comparison():
            return leaf(formula)
        case Not(operand):
            return 1 - of(operand)
        case And(operands):
            return logic.all_of(torch.stack([of(o) for o in operands]), 0)
        case Or(operands):
            return logic.any_of(torch.stack([of(o) for o in operands]), 0)
        case Implies(left, right):
            return logic.implies(of(left), of(right))
        case Iff(left, right):
            a = of(left)
            b = of(right)
            return logic.all_of(torch.stack([logic.implies(a, b), logic.implies(b, a)]), 0)
        case Temporal(operator, operand, window):
            inner = of(operand)
            return in_time(operator, inner, window or STEP_AHEAD, episodes, logic)
    raise UngroundedError(f"{type(formula).__name__} must be lowered before it is interpreted")
