"""What a parser or a check needs to know of a vocabulary: names, sorts and meanings, but no tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Scope = Literal["state", "action", "transition"]
Kind = Literal["truth", "number"]


@dataclass(frozen=True, slots=True)
class PredicateSignature:
    """One predicate as the language sees it.

    `sorts` are the sorts of the arguments after the step variable: `facing(t, key)` has `("object",)`.
    `kind` is `truth` for a degree in [0, 1] and `number` for a feature that must stand in a comparison.
    `scope` says what it reads: the present state, the action taken, or the whole transition.
    `over` is the sort of the first argument: what rules over that sort may say.
    """

    name: str
    sorts: tuple[str, ...] = ()
    kind: Kind = "truth"
    scope: Scope = "state"
    doc: str = ""
    unit: str = ""
    low: float | None = None
    high: float | None = None
    over: str = "step"


@dataclass(frozen=True, slots=True)
class Signature:
    """The names a rule may use: predicates by name, and the constants of each sort in order.

    `texts` are the sorts whose members are any texts in quotes, each with some that are known to occur.
    """

    predicates: Mapping[str, PredicateSignature]
    sorts: Mapping[str, tuple[str, ...]]
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
