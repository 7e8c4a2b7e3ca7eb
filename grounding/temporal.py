"""Temporal operators over whole batches of episodes, at a cost that grows with the logarithm of the window.

A window of L steps is put together from windows of 1, 2, 4, … steps: with W_m(i) the conjunction of the degrees at
i … i + m − 1, cut at the end of the episode, W_2m(i) = W_m(i) ∧ W_m(i + m). Every t-norm and t-conorm is
associative, so this is the window itself, in 2 log₂ L joins of two rows instead of one of L.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from nser.grounding.operators import Logic
from nser.rules.syntax import Window

InTime = Callable[[str, Tensor, Window, Tensor, Logic], Tensor]
"""`operator, degrees [T], window, episodes [T], logic` to degrees [T]."""


def windowed(operator: str, degrees: Tensor, window: Window, episodes: Tensor, logic: Logic) -> Tensor:
    """[T] degrees of `next`, `prev`, `eventually`, `always` or `once` over a window of steps.

    Steps past either end of the episode count as true for `always` and as false for the others.
    """
    reduce = logic.all_of if operator == "always" else logic.any_of
    outside = 1.0 if operator == "always" else 0.0
    sign = -1 if operator in ("prev", "once") else 1
    length = min(window.stop - window.start + 1, max(len(degrees), 1))  # all of a longer one lies outside
    found: Tensor | None = None
    covered, span, power = 0, degrees, 1
    while True:
        if length & power:
            part = shift(span, sign * covered, episodes, outside)
            found = part if found is None else reduce(torch.stack([found, part]), 0)
            covered += power
        if covered == length:
            break
        span = reduce(torch.stack([span, shift(span, sign * power, episodes, outside)]), 0)
        power *= 2
    assert found is not None
    return shift(found, sign * window.start, episodes, outside)


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
