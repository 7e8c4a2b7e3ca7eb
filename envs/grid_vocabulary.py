"""Predicates that many grid worlds share, each made for the columns of one kind of world.

They are frozen dataclasses rather than closures, so that a buffer which holds rules can be pickled.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nser.grounding.steps import Steps
from nser.grounding.vocabulary import Predicate
from nser.rules.signature import PredicateSignature


@dataclass(frozen=True, slots=True)
class Told:
    """Truth that stands in a column of its own; `{}` in the column's name takes the constant."""

    names: tuple[str, ...]
    column: str

    def __call__(self, steps: Steps, *constants: str) -> Tensor:
        """[T] the column."""
        return steps.observations[:, self.names.index(self.column.format(*constants))]


@dataclass(frozen=True, slots=True)
class Toward:
    """Truth of "one cell on, the target would be nearer": it lies in the half-plane ahead of the agent."""

    names: tuple[str, ...]

    def __call__(self, steps: Steps, target: str) -> Tensor:
        """[T] 1 where it does."""
        get = {name: steps.observations[:, i] for i, name in enumerate(self.names)}
        east = get["heading_east"] - get["heading_west"]
        south = get["heading_south"] - get["heading_north"]
        return (east * get[f"{target}_dx"] + south * get[f"{target}_dy"]) > 0


@dataclass(frozen=True, slots=True)
class Level:
    """Truth of "the target is in the agent's row"."""

    names: tuple[str, ...]

    def __call__(self, steps: Steps, target: str) -> Tensor:
        """[T] 1 where it is."""
        return steps.observations[:, self.names.index(f"{target}_dy")] == 0


@dataclass(frozen=True, slots=True)
class Reached:
    """Truth of "the agent stands where the target is"."""

    names: tuple[str, ...]
    target: str

    def __call__(self, steps: Steps) -> Tensor:
        """[T] 1 where it does."""
        at = self.names.index(f"{self.target}_dx")
        return (steps.observations[:, at : at + 2] == 0).all(dim=1)


@dataclass(frozen=True, slots=True)
class Distance:
    """Manhattan distance to the target in cells."""

    names: tuple[str, ...]

    def __call__(self, steps: Steps, target: str) -> Tensor:
        """[T] whole cells; rounding undoes the normalisation."""
        at = self.names.index(f"{target}_dx")
        apart = steps.observations[:, at : at + 2].abs().sum(dim=1)
        return torch.round(apart / steps.observations[:, self.names.index("cell")])


def told(names: tuple[str, ...], name: str, meaning: str, example: str = "") -> Predicate:
    """A fact that has the column of its own name."""
    return Predicate(PredicateSignature(name, doc=meaning), Told(names, name), example)


def facing(names: tuple[str, ...], example: str) -> Predicate:
    """`facing(t, object)`."""
    meaning = "The cell straight ahead of the agent holds this"
    return Predicate(PredicateSignature("facing", ("object",), doc=meaning), Told(names, "facing_{}"), example)


def toward(names: tuple[str, ...], example: str) -> Predicate:
    """`toward(t, target)`."""
    meaning = "The agent looks toward this: a step forward would bring it nearer, were nothing in the way"
    return Predicate(PredicateSignature("toward", ("target",), doc=meaning), Toward(names), example)


def level(names: tuple[str, ...], example: str) -> Predicate:
    """`level(t, target)`."""
    return Predicate(PredicateSignature("level", ("target",), doc="This is in the agent's row"), Level(names), example)


def reached(names: tuple[str, ...], name: str, target: str, meaning: str) -> Predicate:
    """The agent stands where the target is."""
    return Predicate(PredicateSignature(name, doc=meaning), Reached(names, target))


def dist(names: tuple[str, ...], example: str) -> Predicate:
    """`dist(t, target)`."""
    meaning = "Steps that the agent would walk to this if nothing were in the way; 0 for what is in its hand"
    signature = PredicateSignature("dist", ("target",), "number", doc=meaning, unit="cells", low=0)
    return Predicate(signature, Distance(names), example)
