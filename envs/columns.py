"""Groundings that read one component of a stored observation or action, whatever the environment.

Two layouts are read and told apart by their width:

- *raw*: one column for each number, category and bit, in the order of the space. Stable-Baselines3 stores
  `Discrete` observations so, as `[T, 1]` whole numbers (its networks see them one-hot, its buffers don't);
- *flat*: what `gymnasium.spaces.flatten` gives, with one column for each value of a category (one-hot).

All are frozen dataclasses rather than closures, so that a buffer which holds rules can be pickled.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

import torch
from torch import Tensor

from nser.envs.known import Factor
from nser.grounding.errors import VocabularyError
from nser.grounding.steps import Steps

Source = Literal["observations", "actions"]


@dataclass(frozen=True, slots=True)
class Column:
    """Where one component stands in either layout.

    raw, flat:             its first column
    raw_width, flat_width: columns of the whole observation (or action), to tell the layouts apart
    """

    source: Source
    raw: int
    flat: int
    raw_width: int
    flat_width: int

    def table(self, steps: Steps) -> Tensor:
        """[T, W] the observations or actions, `[T]` seen as one column; raises `VocabularyError`."""
        values: Tensor = getattr(steps, self.source)
        table = values.reshape(len(steps), prod(values.shape[1:]))
        if table.shape[1] not in (self.raw_width, self.flat_width):
            raise VocabularyError(
                f"found {self.source} of {table.shape[1]} columns, expected {self.raw_width} (one for each "
                f"component) or {self.flat_width} (categories one-hot, as gymnasium.spaces.flatten gives them)"
            )
        return table

    def value(self, steps: Steps) -> Tensor:
        """[T] the component as one number."""
        table = self.table(steps)
        return table[:, self.raw if table.shape[1] == self.raw_width else self.flat]

    def category(self, steps: Steps, count: int, start: int) -> Tensor:
        """[T] int64, which of the `count` values the component has."""
        table = self.table(steps)
        if table.shape[1] == self.raw_width:
            return table[:, self.raw].round().long() - start
        return table[:, self.flat : self.flat + count].argmax(dim=1)


@dataclass(frozen=True, slots=True)
class NumberOf:
    """A number of the space as it is stored."""

    column: Column

    def __call__(self, steps: Steps) -> Tensor:
        """[T] the value."""
        return self.column.value(steps)


@dataclass(frozen=True, slots=True)
class BitOf:
    """Truth of one bit of a `MultiBinary`."""

    column: Column

    def __call__(self, steps: Steps) -> Tensor:
        """[T] 1 where the bit is set."""
        return _truth(self.column.value(steps) != 0, steps)


@dataclass(frozen=True, slots=True)
class CategoryIs:
    """Truth of "the component has this value" for a `Discrete` or a part of a `MultiDiscrete`."""

    column: Column
    values: tuple[str, ...]
    start: int = 0

    def __call__(self, steps: Steps, value: str) -> Tensor:
        """[T] 1 where the component has this value."""
        found = self.column.category(steps, len(self.values), self.start)
        return _truth(found == self.values.index(value), steps)


@dataclass(frozen=True, slots=True)
class FactorNumber:
    """One digit of a discrete state, as a number."""

    column: Column
    states: int
    factor: Factor

    def __call__(self, steps: Steps) -> Tensor:
        """[T] the digit."""
        return self.digit(steps).to(steps.observations.dtype)

    def digit(self, steps: Steps) -> Tensor:
        """[T] int64 the digit."""
        state = self.column.category(steps, self.states, 0)
        return torch.div(state, self.factor.divisor, rounding_mode="floor") % self.factor.count


@dataclass(frozen=True, slots=True)
class FactorIs:
    """Truth of "the digit has this value"."""

    number: FactorNumber
    values: tuple[str, ...]

    def __call__(self, steps: Steps, value: str) -> Tensor:
        """[T] 1 where the digit has this value."""
        return _truth(self.number.digit(steps) == self.values.index(value), steps)


def _truth(values: Tensor, steps: Steps) -> Tensor:
    return values.to(steps.observations.dtype if steps.observations.is_floating_point() else torch.float32)
