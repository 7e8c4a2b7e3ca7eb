"""Declaring predicates: a decorated function, its sorts, a docstring and an example."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from torch import Tensor

from nser.grounding.errors import VocabularyError
from nser.rules.signature import PredicateSignature, Scope

Grounding = Callable[..., Tensor]
"""`function(steps, *constants) -> [T]`: truth degrees in [0, 1] (or booleans), or numbers in the feature's unit."""

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Predicate:
    """A signature, the function that grounds it, and a formula that shows its use ("" for one made up)."""

    signature: PredicateSignature
    function: Grounding
    example: str = ""

    @property
    def name(self) -> str:
        """The name that rules use."""
        return self.signature.name


def predicate(*sorts: str, example: str = "", scope: Scope = "state", name: str | None = None) -> Declares:
    """Declare a truth predicate; its docstring's first line is its meaning.

    `sorts` are the sorts of the arguments after the steps, `example` is a formula that uses it, as a rule's body
    would; `t` is the step. The function stays an ordinary function, so that whatever holds it can be pickled.

    Raises `VocabularyError` for a function without a docstring or with another number of arguments.

    >>> @predicate("object", example="facing(t, key)")
    ... def facing(steps, thing: str):
    ...     "The cell in front of the agent holds this object."
    ...     return steps.observations[:, 0]
    """
    return declaration(PredicateSignature(name or "", sorts, "truth", scope), example)


def number(
    *sorts: str,
    unit: str,
    example: str = "",
    low: float | None = None,
    high: float | None = None,
    scope: Scope = "state",
    name: str | None = None,
) -> Declares:
    """Declare a numeric feature in `unit` ("" where it has none), within [low, high] where they are known."""
    return declaration(PredicateSignature(name or "", sorts, "number", scope, "", unit, low, high), example)


class Declares(Protocol):
    """A decorator that leaves the function as it is."""

    def __call__(self, function: AnyFunction, /) -> AnyFunction:
        """The function, declared."""


def declaration(
    known: PredicateSignature,
    example: str,
    ground: Callable[[Callable[..., Any]], Grounding] = lambda function: function,
) -> Declares:
    """The decorator that fills in name and meaning; `ground` makes of the function one that reads steps."""
    if known.low is not None and known.high is not None and not known.low < known.high:
        raise VocabularyError(f"found bounds {known.low:g} to {known.high:g} of a number, expected the lower one first")
    sorts: tuple[Any, ...] = known.sorts  # `@predicate` without parentheses puts the function here
    for sort in sorts:
        if not isinstance(sort, str):
            given = getattr(sort, "__name__", repr(sort))
            raise VocabularyError(
                f"found {given} as a sort, expected names of sorts or nothing, as in @predicate('object') and "
                "@predicate(); the parentheses are needed"
            )

    def declare(function: AnyFunction) -> AnyFunction:
        lines = inspect.getdoc(function) or ""
        own = known.name or function.__name__
        if hasattr(function, "declared"):
            raise VocabularyError(
                f"function {_named(function)} is declared already as {function.declared.name}; for a second "
                "declaration give the vocabulary a Predicate(signature, function)"
            )
        if not lines:
            raise VocabularyError(
                f"predicate {own} has no docstring; its first line is the meaning that people and language "
                "models read, so write one"
            )
        signature = replace(known, name=own, doc=lines.splitlines()[0].rstrip("."))
        check_arguments(signature, function)
        function.declared = Predicate(signature, ground(function), example)  # type: ignore[attr-defined]
        return function

    return declare


def as_predicate(item: Callable[..., Any] | Predicate) -> Predicate:
    """What was declared of a function; a `Predicate` is checked and returned as it is."""
    if isinstance(item, Predicate):
        check_arguments(item.signature, item.function)
        return item
    found = getattr(item, "declared", None)
    if not isinstance(found, Predicate):
        raise VocabularyError(
            f"{getattr(item, '__name__', item)!r} is no declared predicate; put @predicate(…) or @number(…) "
            "above the function"
        )
    return found


def check_arguments(signature: PredicateSignature, function: Callable[..., Any]) -> None:
    """Whether `function(steps, *constants)` can be called; raises `VocabularyError`."""
    try:
        parameters = inspect.signature(function)
    except (TypeError, ValueError):
        return  # some functions written in C tell nothing; the first call will
    try:
        parameters.bind("steps", *signature.sorts)
    except TypeError as error:
        expected = ", ".join(("steps", *signature.sorts))
        raise VocabularyError(
            f"predicate {signature.name} is the function {_named(function)}{parameters}, expected ({expected}): the "
            "steps, then one argument for each declared sort"
        ) from error


def _named(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
