"""Predicates over the states of a small map: tables, filled once from the map of the very environment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from nser.envs.columns import Column
from nser.grounding.steps import Steps
from nser.grounding.vocabulary import Predicate
from nser.rules.signature import PredicateSignature

Place = tuple[int, int]  # row, column

WAYS: dict[str, Place] = {
    "up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1),
    "north": (-1, 0), "south": (1, 0), "west": (0, -1), "east": (0, 1),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StateTable:
    """A value for every state, or for every constant and state; a frozen dataclass, so that it can be pickled."""

    column: Column
    rows: tuple[tuple[float, ...], ...]  # [constants (or 1), states]
    constants: tuple[str, ...] = ()

    def __call__(self, steps: Steps, *constant: str) -> Tensor:
        """[T] the value of each step's state."""
        row = self.rows[self.constants.index(constant[0])] if constant else self.rows[0]
        return torch.tensor(row, device=steps.device)[self.column.category(steps, len(row), 0)]


@dataclass(frozen=True, slots=True)
class Tables:
    """Makes predicates for an observation that is the number of a state; `places` tells where the agent is in each."""

    places: tuple[Place, ...]

    @property
    def column(self) -> Column:
        """The only column of the observation."""
        return Column("observations", 0, 0, 1, len(self.places))

    def truth(self, name: str, meaning: str, holds: Iterable[bool], example: str = "") -> Predicate:
        """A fact of each state in order."""
        table = StateTable(self.column, (tuple(float(held) for held in holds),))
        return Predicate(PredicateSignature(name, doc=meaning), table, example)

    def cells(self, name: str, meaning: str, values: Iterable[int]) -> Predicate:
        """A number of cells for each state in order, from 0."""
        row = tuple(float(value) for value in values)
        signature = PredicateSignature(name, (), "number", "state", meaning, "cells", 0.0, max(row))
        return Predicate(signature, StateTable(self.column, (row,)))

    def each_way(
        self,
        name: str,
        meaning: str,
        ways: tuple[str, ...],
        holds: Callable[[int, Place], bool],
        *,
        sort: str = "action",
        example: str = "",
    ) -> Predicate:
        """A predicate of a direction: `holds` judges a state and the next cell that way, which may be off the map."""
        steps = [WAYS[way] for way in ways]
        rows = tuple(
            tuple(float(holds(state, (row + down, column + right))) for state, (row, column) in enumerate(self.places))
            for down, right in steps
        )
        return Predicate(PredicateSignature(name, (sort,), doc=meaning), StateTable(self.column, rows, ways), example)


def apart(one: Place, other: Place) -> int:
    """Steps between two cells if nothing were in the way."""
    return abs(one[0] - other[0]) + abs(one[1] - other[1])
