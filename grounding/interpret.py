"""The plain interpreter: one node of a formula at a time. The reference that every faster kernel must agree with."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from nser.grounding.errors import UngroundedError
from nser.grounding.operators import Logic
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


def interpret(formula: Formula, leaf: Leaf, episodes: Tensor, logic: Logic) -> Tensor:
    """[T] truth degrees of a lowered formula (see `nser.grounding.lower`).

    `leaf` gives the degrees of atoms and comparisons, `episodes` [T] the episode numbers that temporal
    operators must not cross.
    """
    match formula:
        case Truth(value):
            return torch.full(episodes.shape, float(value), device=episodes.device)
        case Atom() | Comparison():
            return leaf(formula)
        case Not(operand):
            return 1 - interpret(operand, leaf, episodes, logic)
        case And(operands):
            return logic.all_of(torch.stack([interpret(o, leaf, episodes, logic) for o in operands]), 0)
        case Or(operands):
            return logic.any_of(torch.stack([interpret(o, leaf, episodes, logic) for o in operands]), 0)
        case Implies(left, right):
            return logic.implies(interpret(left, leaf, episodes, logic), interpret(right, leaf, episodes, logic))
        case Iff(left, right):
            a = interpret(left, leaf, episodes, logic)
            b = interpret(right, leaf, episodes, logic)
            return logic.all_of(torch.stack([logic.implies(a, b), logic.implies(b, a)]), 0)
        case Temporal(operator, operand, window):
            inner = interpret(operand, leaf, episodes, logic)
            return _in_time(operator, inner, window or STEP_AHEAD, episodes, logic)
    raise UngroundedError(f"{type(formula).__name__} must be lowered before it is interpreted")


def _in_time(operator: str, degrees: Tensor, window: Window, episodes: Tensor, logic: Logic) -> Tensor:
    sign = -1 if operator in ("prev", "once") else 1
    outside = 1.0 if operator == "always" else 0.0
    steps = range(window.start, window.stop + 1)
    moved = torch.stack([shift(degrees, sign * k, episodes, outside) for k in steps])
    return logic.all_of(moved, 0) if operator == "always" else logic.any_of(moved, 0)


def shift(degrees: Tensor, steps: int, episodes: Tensor, outside: float) -> Tensor:
    """[T] where row i holds `degrees[i + steps]`, or `outside` where that row is of another episode."""
    if steps == 0:
        return degrees
    rows = len(degrees)
    distance = min(abs(steps), rows)
    blank = degrees.new_full((distance,), outside)
    apart = torch.ones(distance, dtype=torch.bool, device=episodes.device)
    differs = episodes[distance:] != episodes[: rows - distance]
    if steps > 0:
        moved, broken = torch.cat([degrees[distance:], blank]), torch.cat([differs, apart])
    else:
        moved, broken = torch.cat([blank, degrees[: rows - distance]]), torch.cat([apart, differs])
    return moved.masked_fill(broken, outside)
