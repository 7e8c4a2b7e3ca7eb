"""Declaring predicates: a decorated function, its sorts, a docstring and an example."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from torch import Tensor

from nser.grounding.errors import VocabularyError
from nser.rules.signature import Kind, PredicateSignature, Scope

Grounding = Callable[..., Tensor]
"""`function(steps, *constants) -> [T]`: truth degrees in [0, 1] (or booleans), or numbers in the feature's unit."""

AnyGrounding = TypeVar("AnyGrounding", bound=Grounding)


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


def predicate(
    *sorts: str, example: str = "", scope: Scope = "state", name: str | None = None
) -> Callable[[AnyGrounding], AnyGrounding]:
    """Declare a truth predicate; its docstring's first line is its meaning.

    `sorts` are the sorts of the arguments after the steps, `example` is a formula that uses it, as a rule's body
    would; `t` is the step. The function stays an ordinary function, so that whatever holds it can be pickled.

    Raises `VocabularyError` for a function without a docstring or with another number of arguments.

    >>> @predicate("object", example="facing(t, key)")
    ... def facing(steps, thing: str):
    ...     "The cell in front of the agent holds this object."
    ...     return steps.observations[:, 0]
    """
    return _declare(sorts, "truth", scope, name, example)


def number(
    *sorts: str,
    unit: str,
    example: str = "",
    low: float | None = None,
    high: float | None = None,
    scope: Scope = "state",
    name: str | None = None,
) -> Callable[[AnyGrounding], AnyGrounding]:
    """Declare a numeric feature in `unit` ("" where it has none), within [low, high] where they are known."""
    if low is not None and high is not None and not low < high:
        raise VocabularyError(f"found bounds {low:g} to {high:g} of a number, expected the lower one first")
    return _declare(sorts, "number", scope, name, example, unit, low, high)


def _declare(
    sorts: tuple[Any, ...],
    kind: Kind,
    scope: Scope,
    name: str | None,
    example: str,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
) -> Callable[[AnyGrounding], AnyGrounding]:
    for sort in sorts:
        if not isinstance(sort, str):
            given = getattr(sort, "__name__", repr(sort))
            raise VocabularyError(
                f"found {given} as a sort, expected names of sorts or nothing, as in @predicate('object') and "
                "@predicate(); the parentheses are needed"
            )

    def declare(function: AnyGrounding) -> AnyGrounding:
        lines = inspect.getdoc(function) or ""
        own = name or function.__name__
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
        doc = lines.splitlines()[0].rstrip(".")
        signature = PredicateSignature(own, sorts, kind, scope, doc, unit, low, high)
        check_arguments(signature, function)
        function.declared = Predicate(signature, function, example)  # type: ignore[attr-defined]
        return function

    return declare


def as_predicate(item: Grounding | Predicate) -> Predicate:
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
