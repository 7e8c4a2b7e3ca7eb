"""Do a rule's names mean something: predicates, arguments, sorts, constants and variables of a vocabulary."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypedDict

from nser.rules.errors import (
    ArityError,
    GoodInBodyError,
    HeadInBodyError,
    NumberAsTruthError,
    OffsetError,
    PredicateNameError,
    RuleNameError,
    ShadowedVariableError,
    SortError,
    TimeError,
    TruthComparedError,
    UnboundVariableError,
    UnknownConstantError,
    UnknownPredicateError,
    UnknownSortError,
)
from nser.rules.printer import print_formula, print_term
from nser.rules.signature import PredicateSignature, Signature
from nser.rules.source import Place, Source
from nser.rules.syntax import (
    GOOD,
    KEYWORDS,
    MAX_NAME,
    VARIABLES,
    Atom,
    Comparison,
    Constant,
    Formula,
    Not,
    Quantified,
    Rule,
    Temporal,
    Term,
    Text,
    Variable,
    blames,
    praises,
)
from nser.rules.walk import atoms, children, shifts
from nser.rules.wording import nearest_name

TIMELESS = frozenset({"clip", "rollout"})
# Whose predicates a rule over a sort may use: a clip is described by its steps.
_SPEAKS_OF = {sort: {"step"} if sort == "clip" else {sort} for sort in VARIABLES}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

Bound = Mapping[str, str]


class _Context(TypedDict):
    rule: str
    place: Place | None


def check_name(name: str, kind: str = "predicate") -> None:
    """Whether the language can use a name that a vocabulary registers, for a predicate, sort or constant.

    Raises PredicateNameError for a keyword, for `good`, and for what is not 1 to 32 ASCII letters, digits
    and `_`, the first no digit.
    """
    if name in KEYWORDS or (kind == "predicate" and name == GOOD):
        found = f"the reserved word `{name}` as the name of a {kind}"
        raise PredicateNameError(found, ("another name",), nearest=f"is_{name}")
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME:
        expected = (f"at most {MAX_NAME} letters, digits and `_`, the first no digit",)
        raise PredicateNameError(f"{name[:64]!r} as the name of a {kind}", expected)


def check_names(rule: Rule, signature: Signature, source: Source | None = None) -> tuple[RuleNameError, ...]:
    """Everything that is wrong with the names of a rule, in reading order; empty when it may be grounded.

    With the `source` that the rule was parsed from the problems carry their line. Never raises.
    """
    return tuple(_Check(rule, signature, source).problems())


@dataclass(frozen=True)
class _Check:
    rule: Rule
    signature: Signature
    source: Source | None

    def problems(self) -> Iterator[RuleNameError]:
        rule = self.rule
        if rule.sort not in VARIABLES:
            yield self._sort_problem(rule.sort, tuple(VARIABLES))
        if rule.variable in self._constants:
            yield self._shadow(rule.variable, None)
        yield from self._formula(rule.body)
        if praises(rule) or blames(rule):
            yield from self._judged(rule.head.operand if isinstance(rule.head, Not) else rule.head)
        else:
            yield from self._formula(rule.head)
            yield from self._repeated()

    def _formula(self, formula: Formula) -> Iterator[RuleNameError]:
        waiting: list[tuple[Formula, Bound]] = [(formula, {self.rule.variable: self.rule.sort})]
        while waiting:
            node, bound = waiting.pop()
            if isinstance(node, Atom):
                yield from self._atom(node, bound, compared=False)
            elif isinstance(node, Comparison):
                yield from self._atom(node.feature, bound, compared=True)
            elif isinstance(node, Temporal) and self.rule.sort in TIMELESS:
                at = next(iter(atoms(node)), None)
                found = f"`{node.operator}` over a {self.rule.sort}"
                yield TimeError(found, ("no temporal operator",), **self._context(at))
            elif isinstance(node, Quantified):
                yield from self._quantifier(node, bound)
                bound = {**bound, node.variable: node.sort}
            waiting.extend((child, bound) for child in reversed(children(node)))

    def _quantifier(self, node: Quantified, bound: Bound) -> Iterator[RuleNameError]:
        at = next(iter(atoms(node)), None)
        if node.sort not in self.signature.sorts:
            yield self._sort_problem(node.sort, tuple(self.signature.sorts), at)
        if node.variable in bound or node.variable in self._constants:
            yield self._shadow(node.variable, at)

    def _atom(self, atom: Atom, bound: Bound, *, compared: bool) -> Iterator[RuleNameError]:
        if atom.predicate == GOOD:
            expected = ("a predicate of the vocabulary",)
            yield GoodInBodyError(f"`{print_formula(atom)}`", expected, **self._context(atom))
            return
        known = self.signature.predicates.get(atom.predicate)
        if known is None:
            nearest = nearest_name(atom.predicate, self.signature.predicates)
            found, expected = f"`{atom.predicate}`", ("a predicate of the vocabulary",)
            yield UnknownPredicateError(found, expected, nearest=nearest, **self._context(atom))
            return
        if known.over not in _SPEAKS_OF.get(self.rule.sort, {known.over}):
            found = f"`{known.name}` of a {self.rule.sort}"
            yield SortError(found, (f"it of a {known.over}, as in `{_usage(known)}`",), **self._context(atom))
            return
        if compared and known.kind == "truth":
            found, expected = f"the truth of `{known.name}` in a comparison", (f"`{_usage(known)}` alone",)
            yield TruthComparedError(found, expected, **self._context(atom))
        if not compared and known.kind == "number":
            found, expected = f"the number `{known.name}`", (f"a comparison such as `{_usage(known)} < 3`",)
            yield NumberAsTruthError(found, expected, **self._context(atom))
        if len(atom.args) != 1 + len(known.sorts):
            found = f"`{print_formula(atom)}` with {_count(len(atom.args), 'argument')}"
            expected = (f"{1 + len(known.sorts)}, as in `{_usage(known)}`",)
            yield ArityError(found, expected, **self._context(atom))
            return
        yield from self._step(atom, atom.args[0], bound)
        for term, sort in zip(atom.args[1:], known.sorts, strict=True):
            yield from self._argument(atom, term, sort, bound)

    def _step(self, atom: Atom, term: Term, bound: Bound) -> Iterator[RuleNameError]:
        """The first argument of every predicate is the rule's own variable."""
        expected = (f"the {self.rule.sort} variable `{self.rule.variable}`",)
        context = self._context(atom)
        if isinstance(term, Constant) and term.name in self._constants:
            yield SortError(f"the constant `{term.name}` in `{print_formula(atom)}`", expected, **context)
        elif isinstance(term, Constant) or term.name not in bound:
            yield UnboundVariableError(f"`{print_term(term)}`", expected, **context)
        elif term.name != self.rule.variable:
            found = f"`{term.name}` of sort `{bound[term.name]}`"
            yield SortError(found, expected, **context)
        elif term.offset and self.rule.sort in TIMELESS:
            found = f"an offset on `{term.name}` of sort `{self.rule.sort}`"
            yield OffsetError(found, (f"`{term.name}`",), **context)

    def _argument(self, atom: Atom, term: Term, sort: str, bound: Bound) -> Iterator[RuleNameError]:
        context = self._context(atom)
        if sort in self.signature.texts:
            if not isinstance(term, Text):
                known = (*self.signature.texts[sort], term.name)[:1]
                expected = (f"{_article(sort)} in quotes, such as `{print_term(Text(known[0]))}`",)
                yield SortError(f"`{term.name}`", expected, **context)
            return
        constants = self.signature.sorts.get(sort, ())
        examples = ", ".join(f"`{name}`" for name in constants[:6]) or "(the vocabulary has none)"
        expected = (f"{_article(sort)} such as {examples}",)
        if isinstance(term, Text):
            nearest = term.name if term.name in constants else None
            yield SortError(f"the text `{print_term(term)}`", expected, nearest=nearest, **context)
        elif isinstance(term, Constant):
            if term.name in constants:
                return
            others = [name for name, members in self.signature.sorts.items() if term.name in members]
            if others:
                yield SortError(f"`{term.name}`, {_article(others[0])}", expected, **context)
            else:
                nearest = nearest_name(term.name, constants)
                yield UnknownConstantError(f"`{term.name}`", expected, nearest=nearest, **context)
        elif term.offset and bound.get(term.name) != "step" and term.name in {*bound, *self._constants}:
            found = f"an offset on `{term.name}`"
            yield OffsetError(found, (f"`{term.name}`",), **context)
        elif term.name not in bound:
            yield UnboundVariableError(f"`{term.name}`", expected, **context)
        elif bound[term.name] != sort:
            found = f"`{term.name}` of sort `{bound[term.name]}`"
            yield SortError(found, expected, **context)

    def _judged(self, good: Formula) -> Iterator[RuleNameError]:
        """The head `good(t)` takes the rule's own variable, at the present step, and nothing else."""
        if isinstance(good, Atom) and good.args != (Variable(self.rule.variable),):
            expected = (f"`{GOOD}({self.rule.variable})`",)
            yield GoodInBodyError(f"`{print_formula(good)}`", expected, **self._context(good))

    def _repeated(self) -> Iterator[RuleNameError]:
        """A head that the body states of the same step, with or without `~`."""
        told = {_at_zero(leaf): (low, high) for leaf, low, high in shifts(self.rule.head)}
        for leaf, low, high in shifts(self.rule.body):
            if told.get(_at_zero(leaf)) == (low, high):
                found = f"the head's `{print_formula(leaf)}` in the body"
                atom = leaf if isinstance(leaf, Atom) else None
                yield HeadInBodyError(found, ("other evidence",), **self._context(atom))
                return

    def _shadow(self, variable: str, at: Atom | None) -> RuleNameError:
        found = f"a second meaning of `{variable}`"
        return ShadowedVariableError(found, ("a new name",), **self._context(at))

    def _sort_problem(self, sort: str, known: tuple[str, ...], at: Atom | None = None) -> RuleNameError:
        expected = tuple(f"`{name}`" for name in known) or ("no quantifier, as the vocabulary has no sorts",)
        nearest = nearest_name(sort, known)
        return UnknownSortError(f"the sort `{sort}`", expected, nearest=nearest, **self._context(at))

    @cached_property
    def _constants(self) -> set[str]:
        return {name for members in self.signature.sorts.values() for name in members}

    def _context(self, atom: Atom | None) -> _Context:
        position = (atom.position if atom else None) or self.rule.position
        place = None
        if position:
            place = self.source.place(position.offset) if self.source else Place(position, "", 0)
        return {"rule": self.rule.name, "place": place}


def _at_zero(leaf: Formula) -> Formula:
    """A leaf with its time offsets taken off, as `shifts` tells them beside it."""
    if not isinstance(leaf, Atom | Comparison):
        return leaf
    atom = leaf if isinstance(leaf, Atom) else leaf.feature
    args = tuple(Variable(term.name) if isinstance(term, Variable) else term for term in atom.args)
    still = Atom(atom.predicate, args)
    return still if isinstance(leaf, Atom) else Comparison(still, leaf.operator, leaf.threshold)


def _usage(known: PredicateSignature) -> str:
    return f"{known.name}({', '.join((VARIABLES[known.over], *known.sorts))})"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _article(noun: str) -> str:
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"
