"""Rules in plain English, one sentence each.

Without a vocabulary an atom is told by its names; with one, by its predicate's meaning. A meaning is a
phrase without the step, such as "a key is carried" or "the agent faces the {object}", where `{object}`
(the sort, or `{1}`, its place among the arguments) is filled in, and so is the word "this".
"""

from __future__ import annotations

import re

from nser.rules.printer import number, print_term
from nser.rules.signature import PredicateSignature, Signature
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
    Rule,
    Temporal,
    Text,
    Threshold,
    Truth,
    Variable,
    Window,
    blames,
    praises,
)
from nser.rules.walk import conjunction, conjuncts, fold

Told = tuple[str, bool]
"""A phrase, and whether it is simple enough to stand beside `and`, `or` and `not` without parentheses."""

ACTION = "action_is"
_NUMBERS = Signature({}, {})
_COMPARED = {"<": "is below", "<=": "is at most", ">": "is above", ">=": "is at least"}


def english(rule: Rule, signature: Signature | None = None) -> str:
    """What a rule says, as a sentence without a full stop; an action among its conditions is its subject.

    >>> from nser.rules.parse import parse_rule
    >>> text = "rule a: forall t in step: facing(t, key) & ~carrying(t) & action_is(t, pickup) -> good(t)"
    >>> english(parse_rule(text))
    'when facing(key) and not carrying: pickup is good'
    """
    known = signature or _NUMBERS
    subject = f"the {rule.sort}"
    conditions = conjuncts(rule.body)
    judged = praises(rule) or blames(rule)
    actions = [part for part in conditions if _action(part, known)] if judged else []
    if len(actions) == 1:
        subject = _action(actions[0], known) or subject
        conditions = tuple(part for part in conditions if part is not actions[0])
    when = f"when {english_formula(conjunction(conditions), known)}: " if conditions else ""
    if not judged:
        return f"{when}{english_formula(rule.head, known)}"
    return f"{when}{subject} is {'good' if praises(rule) else 'bad'}"


def english_formula(formula: Formula, signature: Signature | None = None) -> str:
    """A formula as a phrase."""
    return fold(formula, _Teller(signature or _NUMBERS).combine)[0]


def condition(part: Formula) -> str:
    """What a conjunct of a body asks for, as a phrase in which a rule's own threshold is left out.

    >>> from nser.rules.parse import parse_formula
    >>> [condition(parse_formula(text)) for text in ("~facing(t, key)", "dist(s, door) < ?2.5")]
    ['not facing(key)', 'dist(door) < …']
    """
    if isinstance(part, Comparison):
        return f"{english_formula(part.feature)} {part.operator} …"
    return english_formula(part)


def asks_for_action(part: Formula) -> bool:
    """Whether a conjunct only says which action is taken, or is not taken, at the present step."""
    return _action(part.operand if isinstance(part, Not) else part, _NUMBERS) is not None


def _action(part: Formula, known: Signature) -> str | None:
    """The action that a condition asks for at the present step, if that is what it does."""
    match part:
        case Atom(predicate, (Variable(_, 0), Constant(name))):
            found = known.predicates.get(predicate)
            return name if predicate == ACTION or (found and found.scope == "action") else None
    return None


class _Teller:
    def __init__(self, known: Signature) -> None:
        self.known = known

    def combine(self, node: Formula, parts: tuple[Told, ...]) -> Told:
        """The phrase of a formula from those of its parts."""
        match node:
            case Truth(value):
                return ("always" if value else "never"), True
            case Atom():
                return self._atom(node), True
            case Comparison(feature, operator, threshold):
                found = self.known.predicates.get(feature.predicate)
                return f"{self._atom(feature)} {_COMPARED[operator]} {_threshold(threshold, found)}", True
            case Not():
                # A phrase of several words reads badly after a bare `not`.
                denied = "it is not so that" if parts[0][1] and " " in parts[0][0] else "not"
                return f"{denied} {_alone(parts[0])}", True
            case And():
                return " and ".join(_alone(part) for part in parts), False
            case Or():
                return " or ".join(_alone(part) for part in parts), False
            case Implies():
                return f"if {_alone(parts[0])} then {_alone(parts[1])}", False
            case Iff():
                return f"{_alone(parts[0])} exactly when {_alone(parts[1])}", False
            case Temporal(operator, _, window):
                return f"{_time(operator, window)} {_alone(parts[0])}", False
            case Quantified(quantifier, variable, sort, _):
                each = "for every" if quantifier == "forall" else "for some"
                return f"{each} {sort} {variable}, {_alone(parts[0])}", False

    def _atom(self, atom: Atom) -> str:
        terms = [print_term(term, ascii_only=False) if isinstance(term, Text) else term.name for term in atom.args[1:]]
        found = self.known.predicates.get(atom.predicate)
        told = _meaning(found, terms) if found and found.doc else None
        if told is None:
            told = f"{atom.predicate}({', '.join(terms)})" if terms else atom.predicate
        step = atom.args[0] if atom.args else None
        return told + (_away(step.offset) if isinstance(step, Variable) and step.offset else "")


def _meaning(found: PredicateSignature, terms: list[str]) -> str:
    """The predicate's doc with its terms put in; terms that it does not mention follow in parentheses.

    The doc is a text of others, so that nothing in it is formatted: known marks are replaced, no more.
    """
    told = found.doc.strip().split("\n")[0].rstrip(".")
    told = told[:1].lower() + told[1:] if told[1:2].islower() else told
    left = []
    for place, (sort, term) in enumerate(zip(found.sorts, terms, strict=False), start=1):
        filled = _filled(told, place, sort, term)
        left += [term] if filled is None else []
        told = told if filled is None else filled
    return f"{told} ({', '.join(left)})" if left else told


def _filled(told: str, place: int, sort: str, term: str) -> str | None:
    """The meaning with one term at its first mark; `None` when there is no mark for it."""
    marks = {f"{{{place}}}": term, f"{{{sort}}}": term, f"this {sort}": f"the {sort} {term}", "this": term}
    for mark, put in marks.items():
        around = re.split(rf"(?<!\w){re.escape(mark)}(?!\w)", told, maxsplit=1)
        if len(around) > 1:
            return put.join(around)
    return None


def _threshold(threshold: Threshold, found: PredicateSignature | None) -> str:
    about = "about " if threshold.learnable else ""
    unit = f" {found.unit}" if found and found.unit else ""
    return f"{about}{number(threshold.value).removesuffix('.0')}{unit}"


def _time(operator: str, window: Window | None) -> str:
    if window is None:
        return "at the next step" if operator == "next" else "at the step before"
    each = "at every step" if operator == "always" else "at some step"
    side = "back" if operator == "once" else "ahead"
    if window.start == window.stop:
        return f"{_steps(window.start)} {side}"
    return f"{each} from {window.start} to {window.stop} {side}"


def _away(offset: int) -> str:
    return f" {_steps(abs(offset))} {'later' if offset > 0 else 'before'}"


def _steps(number: int) -> str:
    return "1 step" if number == 1 else f"{number} steps"


def _alone(part: Told) -> str:
    return part[0] if part[1] else f"({part[0]})"
