"""Rules as text: the canonical ASCII form, which parses back to the same rule, and the same with signs.

Parentheses stand only where the parser needs them, and where `~dist(t) < 3` would be misread.
"""

from __future__ import annotations

from collections.abc import Mapping

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
    Term,
    Text,
    Truth,
)
from nser.rules.texts import quote
from nser.rules.walk import fold

# How tightly a form holds together, loosest first.
IFF, IMPLIES, QUANTIFIED, OR, AND, COMPARISON, NOT, TIGHT = range(8)
Printed = tuple[str, int]

_UNICODE = {
    **{"~": "¬", "&": "∧", "|": "∨", "->": "→", "<->": "↔", "forall": "∀", "exists": "∃"},
    **{" in ": " ∈ ", "<=": "≤", ">=": "≥"},
}


def print_rule(rule: Rule) -> str:
    """The canonical form, one line of ASCII: `parse_rule(print_rule(rule)) == rule`.

    >>> from nser.rules.parse import parse_rule
    >>> print_rule(parse_rule("rule a [1]: ∀ t ∈ step: not p(t) and (q(t)) → good(t);"))
    'rule a: forall t in step: ~p(t) & q(t) -> good(t)'
    """
    return _rule(rule, {})


def print_formula(formula: Formula) -> str:
    """The canonical form of a formula: `parse_formula(print_formula(formula)) == formula`."""
    return fold(formula, _Signs({}).combine)[0]


def unicode_rule(rule: Rule) -> str:
    """The canonical form with the signs of logic; it parses back as well.

    >>> from nser.rules.parse import parse_rule
    >>> unicode_rule(parse_rule("rule a: forall t in step: ~p(t) & q(t) -> good(t)"))
    'rule a: ∀ t ∈ step: ¬p(t) ∧ q(t) → good(t)'
    """
    return _rule(rule, _UNICODE)


def unicode_formula(formula: Formula) -> str:
    """A formula with the signs of logic."""
    return fold(formula, _Signs(_UNICODE).combine)[0]


def number(value: float) -> str:
    """The shortest text that reads back as the same float."""
    return repr(float(value))


def _rule(rule: Rule, table: Mapping[str, str]) -> str:
    signs = _Signs(table)
    weight = "" if rule.weight == 1 else f" [{number(rule.weight)}]"
    body, strength = fold(rule.body, signs.combine)
    if strength < QUANTIFIED:
        body = f"({body})"
    head = fold(rule.head, signs.combine)[0]
    binder = f"{signs['forall']} {rule.variable}{signs[' in ']}{rule.sort}"
    return f"rule {rule.name}{weight}: {binder}: {body} {signs['->']} {head}"


class _Signs:
    """The canonical form with some signs replaced."""

    def __init__(self, table: Mapping[str, str]) -> None:
        self.table = table

    def __getitem__(self, sign: str) -> str:
        return self.table.get(sign, sign)

    def combine(self, node: Formula, parts: tuple[Printed, ...]) -> Printed:
        """The text of a formula and how tightly it holds, from those of its parts."""
        match node:
            case Truth(value):
                return ("true" if value else "false"), TIGHT
            case Atom():
                return self._atom(node), TIGHT
            case Comparison(feature, operator, threshold):
                mark = "?" if threshold.learnable else ""
                return f"{self._atom(feature)} {self[operator]} {mark}{number(threshold.value)}", COMPARISON
            case Not():
                return f"{self['~']}{_within(parts[0], NOT)}", NOT
            case And():
                return f" {self['&']} ".join(_within(part, COMPARISON) for part in parts), AND
            case Or():
                return f" {self['|']} ".join(_within(part, AND) for part in parts), OR
            case Implies():
                return f"{_within(parts[0], OR)} {self['->']} {_within(parts[1], OR, IMPLIES)}", IMPLIES
            case Iff():
                return f"{_within(parts[0], OR)} {self['<->']} {_within(parts[1], OR, IFF)}", IFF
            case Temporal(operator, _, window):
                reach = f"[{window.start}..{window.stop}]" if window else ""
                return f"{operator}{reach}({parts[0][0]})", TIGHT
            case Quantified(quantifier, variable, sort, _):
                binder = f"{self[quantifier]} {variable}{self[' in ']}{sort}"
                return f"{binder}: {_within(parts[0], QUANTIFIED)}", QUANTIFIED

    def _atom(self, atom: Atom) -> str:
        return f"{atom.predicate}({', '.join(print_term(term, ascii_only=not self.table) for term in atom.args)})"


def _within(part: Printed, least: int, same: int | None = None) -> str:
    """The text of a part, in parentheses unless it holds at least so tightly or is of the named strength."""
    text, strength = part
    return text if strength >= least or strength == same else f"({text})"


def print_term(term: Term, *, ascii_only: bool = True) -> str:
    """A term as rules write it."""
    if isinstance(term, Text):
        return quote(term.name, ascii_only=ascii_only)
    if isinstance(term, Constant) or not term.offset:
        return term.name
    return f"{term.name}{term.offset:+d}"
