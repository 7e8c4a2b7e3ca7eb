"""Vocabularies: the named, typed and documented functions that rules are made of."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TypeVar

import torch
from torch import Tensor

from nser.grounding.errors import DegreeError, VocabularyError
from nser.grounding.steps import Steps
from nser.rules.signature import Kind, PredicateSignature, Scope, Signature
from nser.rules.syntax import GOOD, KEYWORDS, MAX_NAME, Atom, Constant, Variable

ACTION_SORT = "action"
ACTION_IS = "action_is"

Grounding = Callable[..., Tensor]
"""`function(steps, *constants) -> [T]`: truth degrees in [0, 1], or numbers in the feature's unit."""

AnyGrounding = TypeVar("AnyGrounding", bound=Grounding)


@dataclass(frozen=True, slots=True)
class Predicate:
    """A signature and the function that grounds it."""

    signature: PredicateSignature
    function: Grounding

    @property
    def name(self) -> str:
        """The name that rules use."""
        return self.signature.name


def predicate(*sorts: str, scope: Scope = "state", name: str | None = None) -> Callable[[AnyGrounding], AnyGrounding]:
    """Declare a truth predicate; its docstring's first line is its meaning.

    `sorts` are the sorts of the arguments after the steps. The function stays an ordinary function, so that
    whatever holds it can be pickled.

    >>> @predicate("object")
    ... def facing(steps: Steps, thing: str) -> Tensor:
    ...     "The cell in front of the agent holds this object."
    ...     return steps.observations[:, 0]
    """
    return _declare(sorts, "truth", scope, name, "", None, None)


def number(
    *sorts: str,
    unit: str,
    low: float | None = None,
    high: float | None = None,
    scope: Scope = "state",
    name: str | None = None,
) -> Callable[[AnyGrounding], AnyGrounding]:
    """Declare a numeric feature in `unit`, within [low, high] where they are known."""
    return _declare(sorts, "number", scope, name, unit, low, high)


def _declare(
    sorts: tuple[str, ...],
    kind: Kind,
    scope: Scope,
    name: str | None,
    unit: str,
    low: float | None,
    high: float | None,
) -> Callable[[AnyGrounding], AnyGrounding]:
    def declare(function: AnyGrounding) -> AnyGrounding:
        lines = inspect.getdoc(function) or ""
        own = name or function.__name__
        if not lines:
            raise VocabularyError(
                f"predicate {own} has no docstring; its first line is the meaning that people and language "
                "models read, so write one"
            )
        doc = lines.splitlines()[0].rstrip(".")
        signature = PredicateSignature(own, sorts, kind, scope, doc, unit, low, high)
        function.declared = signature  # type: ignore[attr-defined]
        return function

    return declare


@dataclass(frozen=True, slots=True)
class ActionIs:
    """Truth of `action_is(t, name)` for a discrete action space."""

    actions: tuple[str, ...]

    def __call__(self, steps: Steps, action: str) -> Tensor:
        """[T] ones where this action was taken."""
        return (steps.actions.reshape(len(steps)) == self.actions.index(action)).to(steps.observations.dtype)


@dataclass(frozen=True)
class Vocabulary:
    """Everything that rules about one kind of environment may say.

    name:       identifies the vocabulary in files and messages
    predicates: declared functions (see `predicate` and `number`) or `Predicate` values
    sorts:      constants of each object sort, in order
    actions:    names of the discrete actions in order; they become the sort `action` and `action_is`
    features:   names of the observation's columns, for messages
    """

    name: str
    declared: Sequence[Grounding | Predicate]
    sorts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    actions: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    predicates: Mapping[str, Predicate] = field(init=False, repr=False)
    signature: Signature = field(init=False, repr=False)

    def __post_init__(self) -> None:
        sorts = dict(self.sorts)
        collected = [_as_predicate(item) for item in self.declared]
        if self.actions:
            sorts[ACTION_SORT] = tuple(self.actions)
            doc = "the agent took this action"
            taken = PredicateSignature(ACTION_IS, (ACTION_SORT,), "truth", "action", doc)
            collected.append(Predicate(taken, ActionIs(tuple(self.actions))))
        predicates: dict[str, Predicate] = {}
        for item in collected:
            _check_declaration(item.signature, predicates, sorts)
            predicates[item.name] = item
        for sort, constants in sorts.items():
            for constant in constants:
                _check_name(constant, f"constant of sort {sort}")
            if len(set(constants)) != len(constants):
                raise VocabularyError(f"sort {sort} names a constant twice: {', '.join(constants)}")
        signature = Signature({n: p.signature for n, p in predicates.items()}, sorts)
        object.__setattr__(self, "sorts", sorts)
        object.__setattr__(self, "predicates", predicates)
        object.__setattr__(self, "signature", signature)

    def ground_atoms(self, kinds: Iterable[Kind] = ("truth",), scopes: Iterable[Scope] = ("state",)) -> list[Atom]:
        """Every predicate applied to every combination of its constants, in the order of declaration."""
        atoms = []
        for item in self.predicates.values():
            if item.signature.kind in kinds and item.signature.scope in scopes:
                for constants in product(*(self.sorts[s] for s in item.signature.sorts)):
                    atoms.append(Atom(item.name, (Variable("t"), *map(Constant, constants))))
        return atoms

    def degrees(self, atom: Atom, steps: Steps) -> Tensor:
        """[T] truth degrees of a ground atom, checked here once: finite and within [0, 1].

        Raises `DegreeError` naming predicate, row and value.
        """
        values = self._call(atom, steps)
        inside = (values >= 0) & (values <= 1)  # false for NaN too
        if not inside.all():
            self._refuse(atom, values, inside, "a truth degree in [0, 1]")
        return values

    def numbers(self, atom: Atom, steps: Steps) -> Tensor:
        """[T] values of a numeric feature in its unit; raises `DegreeError` where one is not finite."""
        values = self._call(atom, steps)
        finite = torch.isfinite(values)
        if not finite.all():
            self._refuse(atom, values, finite, "a finite number")
        return values

    def _call(self, atom: Atom, steps: Steps) -> Tensor:
        constants = [term.name for term in atom.args[1:]]
        values = self.predicates[atom.predicate].function(steps, *constants)
        if values.shape != (len(steps),):
            raise VocabularyError(
                f"{written(atom)} gave a tensor of shape {tuple(values.shape)}, expected ({len(steps)},): "
                "one degree for each step"
            )
        dtype = steps.observations.dtype if steps.observations.is_floating_point() else torch.float32
        return values.to(dtype)

    @staticmethod
    def _refuse(atom: Atom, values: Tensor, right: Tensor, expected: str) -> None:
        row = int((~right).nonzero()[0])
        raise DegreeError(written(atom), row, float(values[row]), expected)


def written(atom: Atom) -> str:
    """An atom as text, for messages."""
    terms = [term.name for term in atom.args]
    return f"{atom.predicate}({', '.join(terms)})"


def _as_predicate(item: Grounding | Predicate) -> Predicate:
    if isinstance(item, Predicate):
        return item
    signature = getattr(item, "declared", None)
    if signature is None:
        raise VocabularyError(
            f"{getattr(item, '__name__', item)!r} is no declared predicate; put @predicate(…) or @number(…) "
            "above the function"
        )
    return Predicate(signature, item)


def _check_name(name: str, what: str) -> None:
    fits = name.isascii() and name.isidentifier() and not name.startswith("__")
    if not fits or len(name) > MAX_NAME or name in KEYWORDS:
        raise VocabularyError(
            f"{what} {name!r}: expected letters, digits and underscores, at most {MAX_NAME} of them, and "
            f"none of the language's own words ({', '.join(sorted(KEYWORDS))})"
        )


def _check_declaration(
    signature: PredicateSignature, known: Mapping[str, Predicate], sorts: Mapping[str, tuple[str, ...]]
) -> None:
    _check_name(signature.name, "predicate")
    if signature.name == GOOD:
        raise VocabularyError("predicate 'good' is what data judges; give this one another name")
    if signature.name in known:
        raise VocabularyError(f"predicate {signature.name} is declared twice; rename one of them")
    for sort in signature.sorts:
        if sort not in sorts:
            raise VocabularyError(
                f"predicate {signature.name} takes a {sort}, which is no sort of this vocabulary; "
                f"known: {', '.join(sorts) or 'none'}"
            )
