"""What a parser or a check needs to know of a vocabulary: names, sorts and meanings, but no tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Scope = Literal["state", "action", "transition"]
Kind = Literal["truth", "number"]


@dataclass(frozen=True, slots=True)
class PredicateSignature:
    """One predicate as the language sees it.

    `sorts` are the sorts of the arguments after the step variable: `facing(t, key)` has `("object",)`.
    `kind` is `truth` for a degree in [0, 1] and `number` for a feature that must stand in a comparison.
    `scope` says what it reads: the present state, the action taken, or the whole transition.
    """

    name: str
    sorts: tuple[str, ...] = ()
    kind: Kind = "truth"
    scope: Scope = "state"
    doc: str = ""
    unit: str = ""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Signature:
    """The names a rule may use: predicates by name, and the constants of each sort in order."""

    predicates: Mapping[str, PredicateSignature]
    sorts: Mapping[str, tuple[str, ...]]
