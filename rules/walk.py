"""Walks over formulas that everything else uses; all without recursion, so that no input decides the stack."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from nser.rules.signature import Scope, Signature
from nser.rules.syntax import (
    And,
    Atom,
    Comparison,
    Constant,
    Formula,
    Iff,
    Implies,
    Not,
    Or,
    Quantified,
    Temporal,
    Term,
    Truth,
    Variable,
)

T = TypeVar("T")


def children(formula: Formula) -> tuple[Formula, ...]:
    """The direct subformulas, in reading order; none for a leaf (atom, comparison, truth value)."""
    match formula:
        case Not(operand) | Temporal(_, operand) | Quantified(_, _, _, operand):
            return (operand,)
        case And(operands) | Or(operands):
            return operands
        case Implies(left, right) | Iff(left, right):
            return (left, right)
        case _:
            return ()


def with_children(formula: Formula, parts: tuple[Formula, ...]) -> Formula:
    """The same connective over other subformulas, as many as `children` gives; flattens `&` and `|`."""
    match formula:
        case Not():
            return Not(parts[0])
        case Temporal(operator, _, window):
            return Temporal(operator, parts[0], window)
        case Quantified(quantifier, variable, sort, _):
            return Quantified(quantifier, variable, sort, parts[0])
        case And():
            return conjunction(parts)
        case Or():
            return disjunction(parts)
        case Implies():
            return Implies(parts[0], parts[1])
        case Iff():
            return Iff(parts[0], parts[1])
        case _:
            return formula


def conjunction(parts: tuple[Formula, ...]) -> Formula:
    """`a & b & …`, flat; one part stands for itself, none is `true`."""
    flat = tuple(one for part in parts for one in (part.operands if isinstance(part, And) else (part,)))
    return And(flat) if len(flat) > 1 else flat[0] if flat else Truth(True)


def disjunction(parts: tuple[Formula, ...]) -> Formula:
    """`a | b | …`, flat; one part stands for itself, none is `false`."""
    flat = tuple(one for part in parts for one in (part.operands if isinstance(part, Or) else (part,)))
    return Or(flat) if len(flat) > 1 else flat[0] if flat else Truth(False)


def conjuncts(formula: Formula) -> tuple[Formula, ...]:
    """The operands of a conjunction; any other formula is its own only conjunct."""
    return formula.operands if isinstance(formula, And) else (formula,)


def nodes(formula: Formula) -> Iterator[Formula]:
    """Every subformula, the formula itself first, in reading order."""
    waiting = [formula]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(children(node)))


def fold(formula: Formula, combine: Callable[[Formula, tuple[T, ...]], T]) -> T:
    """The value of a formula from the values of its parts, bottom up, left to right."""
    waiting: list[tuple[Formula, bool]] = [(formula, False)]
    values: list[T] = []
    while waiting:
        node, ready = waiting.pop()
        below = children(node)
        if ready or not below:
            first = len(values) - len(below)
            values[first:] = [combine(node, tuple(values[first:]))]
        else:
            waiting.append((node, True))
            waiting.extend((child, False) for child in reversed(below))
    return values[0]


def atoms(formula: Formula) -> tuple[Atom, ...]:
    """Every atom as it occurs, in reading order, the features of comparisons among them.

    >>> from nser.rules.parse import parse_formula
    >>> [atom.predicate for atom in atoms(parse_formula("p(t) & ~(dist(t) < 3 | p(t))"))]
    ['p', 'dist', 'p']
    """
    return tuple(
        node if isinstance(node, Atom) else node.feature
        for node in nodes(formula)
        if isinstance(node, Atom | Comparison)
    )


def literals(formula: Formula) -> tuple[Formula, ...]:
    """Every leaf as it occurs, together with a `~` directly before it, in reading order."""
    found: list[Formula] = []
    waiting = [formula]
    while waiting:
        node = waiting.pop()
        below = children(node)
        if not below or (isinstance(node, Not) and not children(node.operand)):
            found.append(node)
        else:
            waiting.extend(reversed(below))
    return tuple(found)


def depth(formula: Formula) -> int:
    """Levels of nesting: 1 for a leaf, one more for each connective, operator or quantifier around it."""
    return fold(formula, lambda _, below: 1 + max(below, default=0))


def shifts(formula: Formula) -> Iterator[tuple[Formula, int, int]]:
    """Each leaf with the steps it may be read at, first and last, counted from the present step."""
    waiting = [(formula, 0, 0)]
    while waiting:
        node, low, high = waiting.pop()
        match node:
            case Temporal(operator, operand, window):
                first, last = (window.start, window.stop) if window else (1, 1)
                if operator in {"prev", "once"}:
                    first, last = -last, -first
                waiting.append((operand, low + first, high + last))
            case Atom() | Comparison():
                atom = node if isinstance(node, Atom) else node.feature
                offsets = [term.offset for term in atom.args if isinstance(term, Variable)] or [0]
                yield node, low + min(offsets), high + max(offsets)
            case Truth():
                yield node, low, high
            case _:
                waiting.extend((child, low, high) for child in reversed(children(node)))


def horizon(formula: Formula) -> tuple[int, int]:
    """How many steps back and ahead of the present one a formula looks, both >= 0.

    >>> from nser.rules.parse import parse_formula
    >>> horizon(parse_formula("prev(p(t-1)) & eventually[2..5](next(q(t)))"))
    (2, 6)
    """
    reach = [(low, high) for _, low, high in shifts(formula)]
    return max(0, *(-low for low, _ in reach)), max(0, *(high for _, high in reach))


def substitute(formula: Formula, variable: str, constant: Constant) -> Formula:
    """Put a constant for every free occurrence of a variable; a quantifier that binds it again keeps its own."""

    return _put(formula, variable, lambda _: constant)


def renamed(formula: Formula, variable: str, name: str) -> Formula:
    """The formula with a free variable called otherwise; its offsets stay. `name` must be bound nowhere in it."""
    return formula if variable == name else _put(formula, variable, lambda term: Variable(name, term.offset))


def _put(formula: Formula, variable: str, new: Callable[[Variable], Term]) -> Formula:
    def replaced(atom: Atom) -> Atom:
        args = tuple(new(term) if isinstance(term, Variable) and term.name == variable else term for term in atom.args)
        return Atom(atom.predicate, args, atom.position)

    def combine(node: Formula, parts: tuple[Formula, ...]) -> Formula:
        match node:
            case Atom():
                return replaced(node)
            case Comparison(feature, operator, threshold):
                return Comparison(replaced(feature), operator, threshold)
            case Quantified() if node.variable == variable:
                return node
            case _:
                return with_children(node, parts)

    return fold(formula, combine)


def scope_of(formula: Formula, signature: Signature) -> Scope:
    """When a formula is known: `state` before acting, `action` with the action, else `transition`.

    What an earlier step did is known before acting: `prev(action_is(t, left))` is of the state, and the
    outcome of the step before as well. What lies ahead, and a predicate that the signature lacks, is of
    the transition.
    """
    scopes = {_scope(leaf, last, signature) for leaf, _, last in shifts(formula)}
    order: tuple[Scope, Scope] = ("transition", "action")
    return next((scope for scope in order if scope in scopes), "state")


def _scope(leaf: Formula, last: int, signature: Signature) -> Scope:
    if last > 0:
        return "transition"
    if not isinstance(leaf, Atom | Comparison):
        return "state"
    known = signature.predicates.get(leaf.predicate if isinstance(leaf, Atom) else leaf.feature.predicate)
    if known is None:
        return "transition"
    return known.scope if last == 0 else "state"
