"""A vocabulary for any environment, made from its spaces alone.

The vocabulary reads observations with one column for each number, category and bit, as Stable-Baselines3's
buffers hold them, and those that `gymnasium.spaces.flatten` gives, with categories one-hot.

>>> from gymnasium.spaces import Box, Discrete
>>> vocabulary = automatic_vocabulary(Discrete(16), Discrete(4), actions=("left", "down", "right", "up"))
>>> list(vocabulary.predicates)
['state_is', 'action_is']
>>> list(automatic_vocabulary(Box(-1, 1, (2,)), Box(-1, 1, (1,)), names=["height", "speed"]).predicates)
['height', 'speed', 'action0']
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from nser.envs.columns import BitOf, CategoryIs, Column, FactorIs, FactorNumber, NumberOf, Source
from nser.envs.errors import NoVocabularyError
from nser.envs.known import Factor, Feature
from nser.grounding.errors import VocabularyError
from nser.grounding.vocabulary import Predicate, Vocabulary
from nser.rules.signature import PredicateSignature, Scope

MAX_COLUMNS = 1024
MAX_VALUES = 4096
MAX_STATES_BESIDE_FACTORS = 64  # more would drown the factors in every prompt and every search
UNBOUNDED = 1e30  # some spaces write the largest float for "no bound"


def automatic_vocabulary(
    observation_space: spaces.Space[Any],
    action_space: spaces.Space[Any],
    names: Sequence[str | Feature] | None = None,
    name: str = "automatic",
    *,
    actions: Sequence[str] | None = None,
    factors: Sequence[Factor] = (),
) -> Vocabulary:
    """Name everything that the two spaces hold.

    | Space           | As an observation                          | As an action                       |
    |-----------------|--------------------------------------------|------------------------------------|
    | `Box`           | numbers `x0(t)`, `x1(t)`, … with its bounds | numbers `action0(t)`, …           |
    | `Discrete`      | `state_is(t, s5)`                          | `action_is(t, a0)`                 |
    | `MultiDiscrete` | `x0_is(t, v3)`, …                          | `action0_is(t, v3)`, …             |
    | `MultiBinary`   | `x0(t)`, …                                 | `action0(t)`, …                    |
    | `Dict`, `Tuple` | their parts, named by their keys           | refused                            |

    Arguments:
        names:   one for each number, category and bit of the observation in order; a `Feature` adds unit and
                 meaning. A category called `mode` becomes `mode_is(t, v3)`
        name:    the vocabulary's name
        actions: names of the discrete actions, instead of `a0`, `a1`, …
        factors: numbers and categories that a `Discrete` observation packs into its state; of more than 64
                 states, only the factors are named

    Numbers of a `Box` action are those that were stored: Stable-Baselines3 stores them rescaled to [−1, 1].

    Raises `NoVocabularyError` for images, texts, graphs and very large spaces, and `VocabularyError` for names
    that don't fit.
    """
    sorts: dict[str, tuple[str, ...]] = {}
    root = "state" if isinstance(observation_space, spaces.Discrete) else "x"
    parts = _renamed(list(_parts(observation_space, "", root)), names)
    declared = _declare(parts, "observations", "state", sorts)
    if factors:
        states = _states(factors, observation_space)
        if states > MAX_STATES_BESIDE_FACTORS:
            declared, sorts = [], {}
        declared += _declare_factors(factors, states, sorts)
    if isinstance(action_space, spaces.Discrete):
        action_names = _action_names(action_space, actions)
    else:
        if actions is not None:
            raise VocabularyError(f"found names of actions for {action_space}, expected a Discrete action space")
        if isinstance(action_space, spaces.Dict | spaces.Tuple):
            raise NoVocabularyError(_short(action_space), "actions made of several spaces are not supported")
        action_names = ()
        declared += _declare(list(_parts(action_space, "", "action")), "actions", "action", sorts)
    columns = tuple(part.name for part in parts)
    return Vocabulary(name, tuple(declared), sorts=sorts, actions=action_names, features=columns)


@dataclass(frozen=True, slots=True)
class _Part:
    """One number, category or bit of a space."""

    name: str
    kind: Literal["number", "category", "bit"]
    count: int = 1  # values of a category
    start: int = 0
    letter: str = "v"
    low: float | None = None
    high: float | None = None
    unit: str = ""
    meaning: str = ""

    @property
    def flat_width(self) -> int:
        return self.count if self.kind == "category" else 1


def _parts(space: spaces.Space[Any], prefix: str, root: str) -> Iterator[_Part]:
    """Every part of a space in the order in which gymnasium flattens it; `root` names what has no key."""
    name = prefix or root
    if isinstance(space, spaces.Box):
        _refuse_image(space)
        for i, (low, high) in enumerate(zip(space.low.flat, space.high.flat, strict=True)):
            yield _Part(_indexed(name, i), "number", low=_bound(low), high=_bound(high))
    elif isinstance(space, spaces.Discrete):
        yield _category(space, name, int(space.n), int(space.start))
    elif isinstance(space, spaces.MultiDiscrete):
        starts = np.broadcast_to(space.start, space.nvec.shape)
        for i, (count, start) in enumerate(zip(space.nvec.flat, starts.flat, strict=True)):
            yield _category(space, _indexed(name, i), int(count), int(start))
    elif isinstance(space, spaces.MultiBinary):
        for i in range(prod(space.shape)):
            yield _Part(_indexed(name, i), "bit")
    elif isinstance(space, spaces.Dict):
        for key, inner in space.spaces.items():
            own = re.sub(r"\W", "_", str(key))
            yield from _parts(inner, f"{prefix}_{own}" if prefix else own, root)
    elif isinstance(space, spaces.Tuple):
        for i, inner in enumerate(space.spaces):
            yield from _parts(inner, _indexed(name, i), root)
    else:
        raise NoVocabularyError(
            _short(space),
            f"a {type(space).__name__} space holds no fixed row of numbers; write predicates of your own",
        )


def _category(space: spaces.Space[Any], name: str, count: int, start: int) -> _Part:
    if count > MAX_VALUES:
        raise NoVocabularyError(
            _short(space),
            f"it has {count} values, and at most {MAX_VALUES} can be named; split the state into numbers or "
            "write predicates of your own",
        )
    return _Part(name, "category", count, start, letter="s" if name == "state" else "v")


def _indexed(name: str, i: int) -> str:
    return f"{name}_{i}" if name[-1].isdigit() else f"{name}{i}"


def _bound(value: float) -> float | None:
    return float(value) + 0.0 if abs(value) < UNBOUNDED else None  # + 0.0, as some spaces begin at -0.0


def _refuse_image(space: spaces.Box) -> None:
    if space.dtype == np.uint8 and len(space.shape) == 3:
        raise NoVocabularyError(
            _short(space),
            "it is an image, and a pixel says nothing that a rule could use; write predicates of your own "
            "over the image, or use an environment that tells symbols",
        )
    if prod(space.shape) > MAX_COLUMNS:
        raise NoVocabularyError(
            _short(space),
            f"it holds {prod(space.shape)} numbers, and at most {MAX_COLUMNS} can be named; write predicates "
            "of your own over the columns that matter",
        )


def _renamed(parts: list[_Part], names: Sequence[str | Feature] | None) -> list[_Part]:
    if names is None:
        return parts
    if len(names) != len(parts):
        raise VocabularyError(
            f"found {len(names)} names, expected {len(parts)}: one for each number, category and bit of the "
            f"observation ({', '.join(part.name for part in parts[:8])}{', …' if len(parts) > 8 else ''})"
        )
    features = [given if isinstance(given, Feature) else Feature(given) for given in names]
    return [
        replace(part, name=feature.name, unit=feature.unit, meaning=feature.meaning)
        for part, feature in zip(parts, features, strict=True)
    ]


def _declare(
    parts: list[_Part],
    source: Source,
    scope: Scope,
    sorts: dict[str, tuple[str, ...]],
) -> list[Predicate]:
    raw_width, flat_width = len(parts), sum(part.flat_width for part in parts)
    what = "observation" if source == "observations" else "action"
    declared, flat = [], 0
    for raw, part in enumerate(parts):
        column = Column(source, raw, flat, raw_width, flat_width)
        flat += part.flat_width
        doc = part.meaning or f"{part.kind} {raw} of the {what}"
        if part.kind == "number":
            signature = PredicateSignature(part.name, (), "number", scope, doc, part.unit, part.low, part.high)
            declared.append(Predicate(signature, NumberOf(column)))
        elif part.kind == "bit":
            declared.append(Predicate(PredicateSignature(part.name, (), "truth", scope, doc), BitOf(column)))
        else:
            values = tuple(_constant(part.letter, part.start + i) for i in range(part.count))
            sorts[part.name] = values
            doc = part.meaning or f"the {what}'s {part.name} is this"
            signature = PredicateSignature(f"{part.name}_is", (part.name,), "truth", scope, doc)
            declared.append(Predicate(signature, CategoryIs(column, values, part.start)))
    return declared


def _constant(letter: str, value: int) -> str:
    return f"{letter}{value}" if value >= 0 else f"{letter}_minus{-value}"


def _states(factors: Sequence[Factor], space: spaces.Space[Any]) -> int:
    states = prod(factor.count for factor in factors)
    if not isinstance(space, spaces.Discrete) or space.n != states or space.start != 0:
        raise VocabularyError(f"found factors of {states} states for {space}, expected Discrete({states})")
    return states


def _declare_factors(factors: Sequence[Factor], states: int, sorts: dict[str, tuple[str, ...]]) -> list[Predicate]:
    column = Column("observations", 0, 0, 1, states)
    declared = []
    for factor in factors:
        digit = FactorNumber(column, states, factor)
        if isinstance(factor.values, int):
            bounds = (0.0, float(factor.values - 1))
            signature = PredicateSignature(factor.name, (), "number", "state", factor.meaning, factor.unit, *bounds)
            declared.append(Predicate(signature, digit))
        else:
            sorts[factor.name] = factor.values
            signature = PredicateSignature(f"{factor.name}_is", (factor.name,), "truth", "state", factor.meaning)
            declared.append(Predicate(signature, FactorIs(digit, factor.values)))
    return declared


def _action_names(space: spaces.Discrete, names: Sequence[str] | None) -> tuple[str, ...]:
    count = int(space.n)
    if space.start != 0:
        raise NoVocabularyError(
            str(space), "its actions don't start at 0; wrap it with gymnasium.wrappers.TransformAction"
        )
    if count > MAX_VALUES:
        raise NoVocabularyError(str(space), f"it has {count} actions, and at most {MAX_VALUES} can be named")
    if names is None:
        return tuple(f"a{i}" for i in range(count))
    if len(names) != count:
        raise VocabularyError(f"found {len(names)} names of actions, expected {count}")
    return tuple(names)


def _short(space: spaces.Space[Any]) -> str:
    text = " ".join(str(space).split())
    return text if len(text) <= 80 else f"{text[:77]}…"
