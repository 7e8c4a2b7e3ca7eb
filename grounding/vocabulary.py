"""Vocabularies: the named, typed and documented functions that rules are made of.

How to write one: a function for each predicate, which reads the columns of the stored observations `[T, D]` and
gives one truth degree (or one number) for each of the `T` steps.

>>> import torch
>>> from nser.grounding.steps import single_steps
>>> @predicate("pot", example="boils(t, kettle) & ~lid_on(t)")
... def boils(steps: Steps, pot: str) -> Tensor:
...     "The water in this pot boils."
...     return steps.observations[:, {"kettle": 0, "pan": 1}[pot]] >= 100
>>> @predicate()
... def lid_on(steps: Steps) -> Tensor:
...     "The lid is on."
...     return steps.observations[:, 2]
>>> @number("pot", unit="°C", low=-20, high=120, example="heat(t, pan) > 60")
... def heat(steps: Steps, pot: str) -> Tensor:
...     "Temperature of the water in this pot."
...     return steps.observations[:, {"kettle": 0, "pan": 1}[pot]]

A vocabulary puts them together with the constants of each sort and the names of the discrete actions, which become
`action_is(t, wait)`. It checks names, sorts and examples at once.

>>> kitchen = Vocabulary(
...     "kitchen", (boils, lid_on, heat), sorts={"pot": ("kettle", "pan")}, actions=("wait", "pour"),
...     features=("kettle", "pan", "lid"),
... )
>>> [written(atom) for atom in kitchen.ground_atoms()]
['boils(t, kettle)', 'boils(t, pan)', 'lid_on(t)']
>>> kitchen.examples["heat"], kitchen.examples["action_is"]
('heat(t, pan) > 60', 'action_is(t, wait)')
>>> steps = single_steps(torch.tensor([[100.0, 20.0, 1.0], [90.0, 100.0, 0.0]]), torch.tensor([0, 1]))
>>> kitchen.degrees(kitchen.ground_atoms()[0], steps).tolist()
[1.0, 0.0]

An environment offers it as its attribute `vocabulary`; `nser vocab show` and `nser vocab check` look at it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import torch
from torch import Tensor

from nser.grounding.declare import Grounding, Predicate, as_predicate, number, predicate
from nser.grounding.errors import DegreeError, VocabularyError
from nser.grounding.steps import Steps
from nser.rules.errors import RuleError
from nser.rules.parse import parse_formula
from nser.rules.printer import print_term
from nser.rules.scope import check_names
from nser.rules.signature import Kind, PredicateSignature, Scope, Signature
from nser.rules.source import Source
from nser.rules.syntax import GOOD, KEYWORDS, MAX_NAME, VARIABLES, Atom, Constant, Rule, Text, Variable
from nser.rules.walk import atoms
from nser.rules.wording import nearest_name

__all__ = ["Grounding", "Predicate", "Vocabulary", "number", "predicate", "written"]

ACTION_SORT = "action"
ACTION_IS = "action_is"


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
    texts:      sorts whose constants are any texts in quotes, each with those that learners try
    actions:    names of the discrete actions in order; they become the sort `action` and `action_is`
    features:   names of the observation's columns, for messages
    description: what the world is and what it rewards, for people and language models; never how to solve it

    Made of them: `predicates` and `signature` by name, and `examples`, a formula that uses each predicate: its own,
    or one made up of the first constants. Raises `VocabularyError` for whatever no rule could use.
    """

    name: str
    declared: Sequence[Callable[..., Any] | Predicate]
    sorts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    actions: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    description: str = ""
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    predicates: Mapping[str, Predicate] = field(init=False, repr=False)
    signature: Signature = field(init=False, repr=False)
    examples: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        sorts = dict(self.sorts)
        collected = [as_predicate(item) for item in self.declared]
        if self.actions:
            sorts[ACTION_SORT] = tuple(self.actions)
            doc = "the agent took this action"
            taken = PredicateSignature(ACTION_IS, (ACTION_SORT,), "truth", "action", doc)
            collected.append(Predicate(taken, ActionIs(tuple(self.actions))))
        predicates: dict[str, Predicate] = {}
        for item in collected:
            _check_declaration(item.signature, predicates, {**sorts, **self.texts})
            predicates[item.name] = item
        for sort, constants in sorts.items():
            for constant in constants:
                _check_name(constant, f"constant of sort {sort}")
            if len(set(constants)) != len(constants):
                raise VocabularyError(f"sort {sort} names a constant twice: {', '.join(constants)}")
        if both := sorts.keys() & self.texts.keys():
            raise VocabularyError(f"sort {min(both)} is one of constants and one of texts, expected one of the two")
        signature = Signature({n: p.signature for n, p in predicates.items()}, sorts, dict(self.texts))
        object.__setattr__(self, "sorts", sorts)
        object.__setattr__(self, "predicates", predicates)
        object.__setattr__(self, "signature", signature)
        examples = {n: p.example or _made_up(p.signature, signature) for n, p in predicates.items()}
        for known in predicates.values():
            if known.example:
                _check_example(known, signature)
        object.__setattr__(self, "examples", examples)

    def columns(self, width: int) -> tuple[str, ...]:
        """A name for each of the `width` numbers of an observation: its feature, or `feature=constant` where one-hot.

        `x0`, `x1`, … where the features are not of that many numbers.
        """
        one_hot: list[str] = []
        for feature in self.features:
            constants = self.sorts.get(feature)
            one_hot += [f"{feature}={constant}" for constant in constants] if constants else [feature]
        fitting = next((names for names in (self.features, one_hot) if len(names) == width), None)
        return tuple(fitting or (f"x{place}" for place in range(width)))

    @property
    def sort(self) -> str:
        """What the rules of this vocabulary quantify over; raises `VocabularyError` where there are several sorts."""
        found = list(dict.fromkeys(known.signature.over for known in self.predicates.values()))
        if len(found) > 1:
            raise VocabularyError(f"vocabulary {self.name} is over {', '.join(found)}; take one by `about(sort)`")
        return found[0] if found else "step"

    def about(self, sort: str) -> Vocabulary:
        """The part that rules over one sort may use."""
        declared = [known for known in self.predicates.values() if known.signature.over == sort]
        if not declared:
            raise VocabularyError(f"found no predicate over {sort} in vocabulary {self.name}, expected one or more")
        actions = self.actions if sort == "step" else ()
        return replace(self, declared=[known for known in declared if known.name != ACTION_IS], actions=actions)

    def ground_atoms(self, kinds: Iterable[Kind] = ("truth",), scopes: Iterable[Scope] = ("state",)) -> list[Atom]:
        """Every predicate applied to every combination of its constants, in the order of declaration.

        The things themselves are called `t`, whatever sort they are of. Of sorts of texts those are used that the
        vocabulary names.
        """
        atoms = []
        for item in self.predicates.values():
            if item.signature.kind in kinds and item.signature.scope in scopes:
                for constants in product(*(_members(s, self.signature) for s in item.signature.sorts)):
                    atoms.append(Atom(item.name, (Variable("t"), *constants)))
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
        values: Any = self.predicates[atom.predicate].function(steps, *constants)
        if not isinstance(values, Tensor):
            kind = type(values).__name__
            raise VocabularyError(f"{written(atom)} gave a {kind}, expected a tensor of {len(steps)} degrees")
        if values.shape != (len(steps),):
            raise VocabularyError(
                f"{written(atom)} gave a tensor of shape {tuple(values.shape)}, expected ({len(steps)},): "
                "one degree for each step"
            )
        dtype = steps.observations.dtype if steps.observations.is_floating_point() else torch.float32
        degrees: Tensor = values.to(dtype)
        return degrees

    @staticmethod
    def _refuse(atom: Atom, values: Tensor, right: Tensor, expected: str) -> None:
        row = int((~right).nonzero()[0])
        raise DegreeError(written(atom), row, float(values[row]), expected)


def written(atom: Atom) -> str:
    """An atom as text, for messages."""
    return f"{atom.predicate}({', '.join(print_term(term) for term in atom.args)})"


def _members(sort: str, signature: Signature) -> list[Constant]:
    """The constants that stand for a sort, those of texts in quotes."""
    return [*map(Constant, signature.sorts.get(sort, ())), *map(Text, signature.texts.get(sort, ()))]


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
    if signature.over not in VARIABLES:
        raise VocabularyError(
            f"predicate {signature.name} is over the sort {signature.over}, expected one of {', '.join(VARIABLES)}"
        )
    for sort in signature.sorts:
        if sort not in sorts:
            raise VocabularyError(
                f"predicate {signature.name} takes a {sort}, which is no sort of this vocabulary; "
                f"known: {', '.join(sorts) or 'none'}{_meant(sort, sorts)}"
            )


def _made_up(signature: PredicateSignature, known: Signature) -> str:
    """An example for a predicate that brings none; "" where one of its sorts is empty."""
    members = [_members(sort, known) for sort in signature.sorts]
    if not all(members):
        return ""
    terms = [VARIABLES[signature.over], *(print_term(found[0]) for found in members)]
    atom = f"{signature.name}({', '.join(terms)})"
    if signature.kind == "truth":
        return atom
    bounds = [bound for bound in (signature.low, signature.high) if bound is not None]
    return f"{atom} < {float(f'{sum(bounds) / max(len(bounds), 1):.2g}'):g}"


def _check_example(predicate: Predicate, signature: Signature) -> None:
    """An example parses, uses its predicate, and means something in the vocabulary."""
    name, text, sort = predicate.name, predicate.example, predicate.signature.over
    variable = VARIABLES[sort]
    try:
        body = parse_formula(text, variable)
    except RuleError as error:
        raise VocabularyError(f"the example of predicate {name}, {text!r}, is no formula: {error}") from error
    if name not in {atom.predicate for atom in atoms(body)}:
        raise VocabularyError(
            f"the example of predicate {name}, {text!r}, doesn't use it; expected {name}({variable}…) in it"
        )
    # A head that is no atom of the body: `good` is what every rule may conclude.
    rule = Rule("example", body, Atom(GOOD, (Variable(variable),)), variable=variable, sort=sort)
    problems = check_names(rule, signature, Source(text))
    if problems:
        raise VocabularyError(f"the example of predicate {name}, {text!r}, is no use: {problems[0]}")


def _meant(name: str, known: Iterable[str]) -> str:
    nearest = nearest_name(name, tuple(known))
    return f"; did you mean {nearest}?" if nearest else ""
