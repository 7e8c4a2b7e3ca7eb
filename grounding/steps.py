"""A batch of transitions as the evaluator reads them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nser.grounding.errors import DegreeError


@dataclass(frozen=True, slots=True)
class Steps:
    """`T` transitions in time order; rows of one episode stand together.

    observations: [T, D] float, what the agent saw before acting
    actions:      [T] int64 for a discrete action space, [T, A] float for a Box
    episodes:     [T] int64, equal exactly for neighbouring rows of one episode; temporal operators never
                  look past a change. The numbers themselves mean nothing.
    """

    observations: Tensor
    actions: Tensor
    episodes: Tensor

    def __post_init__(self) -> None:
        rows = len(self.observations)
        if len(self.actions) != rows or len(self.episodes) != rows:
            raise ValueError(
                f"found {rows} observations, {len(self.actions)} actions and {len(self.episodes)} episode "
                "numbers, expected as many of each"
            )

    def __len__(self) -> int:
        return len(self.observations)

    def __getitem__(self, rows: slice) -> Steps:
        return Steps(self.observations[rows], self.actions[rows], self.episodes[rows])

    @property
    def device(self) -> torch.device:
        """Where the tensors live; scores are computed there."""
        return self.observations.device

    @property
    def dtype(self) -> torch.dtype:
        """What degrees are computed in: the observations' own type, float32 where they are whole numbers."""
        return self.observations.dtype if self.observations.is_floating_point() else torch.float32

    def require_finite(self, names: tuple[str, ...] = ()) -> None:
        """Raise `DegreeError` naming feature and row where an observation is NaN or infinite."""
        finite = torch.isfinite(self.observations)
        if not finite.all():
            row, column = (int(i) for i in (~finite).nonzero()[0])
            name = names[column] if column < len(names) else f"x{column}"
            value = float(self.observations[row, column])
            raise DegreeError(f"feature {name}", row, value, "a finite number")


def single_steps(observations: Tensor, actions: Tensor) -> Steps:
    """Rows that have no neighbours: every row is an episode of its own."""
    return Steps(observations, actions, torch.arange(len(observations), device=observations.device))
