"""From the surface language to what is evaluated: quantifiers expanded over constants, offsets made temporal."""

from __future__ import annotations

from nser.grounding.errors import UngroundedError
from nser.rules.signature import Signature
from nser.rules.syntax import (
    GOOD,
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
    Truth,
    Variable,
    Window,
)
from nser.rules.walk import children, substitute


def lower(formula: Formula, signature: Signature) -> Formula:
    """An equal formula without quantifiers and offsets; atoms hold the step variable and constants only.

    `p(t+2)` becomes `eventually[2..2](p(t))` and `p(t-1)` becomes `once[1..1](p(t))`: past the end of an
    episode the atom is false. Raises `UngroundedError` for `good(…)` below the head, for a free object variable and
    for an unknown sort or predicate.
    """
    match formula:
        case Truth():
            return formula
        case Atom():
            return _at_offset(_known(formula, signature), formula)
        case Comparison(feature, operator, threshold):
            known = _known(feature, signature)
            return _at_offset(Comparison(known, operator, threshold), feature)
        case Not(operand):
            return Not(lower(operand, signature))
        case And(operands):
            return And(tuple(lower(o, signature) for o in operands))
        case Or(operands):
            return Or(tuple(lower(o, signature) for o in operands))
        case Implies(left, right):
            return Implies(lower(left, signature), lower(right, signature))
        case Iff(left, right):
            return Iff(lower(left, signature), lower(right, signature))
        case Temporal(operator, operand, window):
            return Temporal(operator, lower(operand, signature), window)
        case Quantified(quantifier, variable, sort, operand):
            if sort not in signature.sorts:
                raise UngroundedError(
                    f"sort {sort} is unknown here, expected one of {', '.join(signature.sorts) or 'none'}"
                )
            cases = tuple(
                lower(substitute(operand, variable, Constant(constant)), signature)
                for constant in signature.sorts[sort]
            )
            if not cases:
                return Truth(quantifier == "forall")
            if len(cases) == 1:
                return cases[0]
            return And(cases) if quantifier == "forall" else Or(cases)


def reach(formula: Formula) -> tuple[int, int]:
    """How many steps back and ahead of a step must be there to evaluate a formula at it, both >= 0.

    More than `nser.rules.walk.horizon`, which counts the steps whose predicates are read: `next(p(t-1))` reads the
    present one, but is false where there is no next step.

    >>> from nser.rules.parse import parse_formula
    >>> reach(parse_formula("next(p(t-1)) & eventually[2..5](q(t))"))
    (0, 5)
    """
    back, ahead = 0, 0
    waiting = [(formula, 0, 0)]
    while waiting:
        node, low, high = waiting.pop()
        if isinstance(node, Atom | Comparison):
            atom = node if isinstance(node, Atom) else node.feature
            offsets = [term.offset for term in atom.args if isinstance(term, Variable)] or [0]
            low, high = min(low, low + min(offsets)), max(high, high + max(offsets))
        elif isinstance(node, Temporal):
            first, last = (node.window.start, node.window.stop) if node.window else (1, 1)
            if node.operator in {"prev", "once"}:
                first, last = -last, -first
            waiting.append((node.operand, low + first, high + last))
        else:
            waiting.extend((child, low, high) for child in children(node))
        back, ahead = max(back, -low), max(ahead, high)
    return back, ahead


def _known(atom: Atom, signature: Signature) -> Atom:
    if atom.predicate == GOOD:
        raise UngroundedError("good(t) is judged from data and may only be the head of a rule")
    if atom.predicate not in signature.predicates:
        raise UngroundedError(
            f"predicate {atom.predicate} is not in the vocabulary, expected one of {', '.join(signature.predicates)}"
        )
    sorts, terms = signature.predicates[atom.predicate].sorts, atom.args[1:]
    if len(terms) != len(sorts):
        raise UngroundedError(
            f"{atom.predicate} has {len(terms)} arguments after the step, expected {len(sorts)}: "
            f"{', '.join(sorts) or 'none'}"
        )
    for term, sort in zip(terms, sorts, strict=True):
        if isinstance(term, Variable):
            raise UngroundedError(f"variable {term.name} of {atom.predicate} is bound by no quantifier; add one")
        if sort in signature.texts:
            continue
        if term.name not in signature.sorts[sort]:
            raise UngroundedError(
                f"{term.name} is no constant of sort {sort}, which {atom.predicate} takes; expected one of "
                f"{', '.join(signature.sorts[sort])}"
            )
    return Atom(atom.predicate, (Variable("t"), *terms))


def _at_offset(lowered: Atom | Comparison, original: Atom) -> Formula:
    step = original.args[0]
    offset = step.offset if isinstance(step, Variable) else 0
    if offset == 0:
        return lowered
    distance = Window(abs(offset), abs(offset))
    return Temporal("eventually" if offset > 0 else "once", lowered, distance)
