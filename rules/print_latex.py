r"""Rules in LaTeX math, for papers; plain LaTeX without packages.

`next`, `prev`, `eventually`, `always` and `once` are written X, Y, F, G and O, as in temporal logic; a
learnable threshold wears a hat.
"""

from __future__ import annotations

from nser.rules.printer import AND, COMPARISON, NOT, OR, QUANTIFIED, TIGHT, Printed, number
from nser.rules.syntax import (
    And,
    Atom,
    Comparison,
    Formula,
    Iff,
    Implies,
    Not,
    Or,
    Quantified,
    Rule,
    Temporal,
    Text,
    Truth,
    Variable,
)
from nser.rules.texts import quote
from nser.rules.walk import fold

_OPERATORS = {"next": "X", "prev": "Y", "eventually": "F", "always": "G", "once": "O"}
_COMPARED = {"<": "<", "<=": r"\le", ">": ">", ">=": r"\ge"}
ARROW = 0
_SPECIAL = {sign: rf"\{sign}" for sign in "#$%&_{}"} | {
    **{"\\": r"\char92{}", "~": r"\char126{}", "^": r"\char94{}", '"': r"\char34{}"},
}


def latex_rule(rule: Rule) -> str:
    r"""A rule as one formula, its weight above the arrow.

    >>> from nser.rules.parse import parse_rule
    >>> print(latex_rule(parse_rule("rule a: forall t in step: ~p_a(t) -> good(t)")))
    \forall t \in \mathrm{step}.\; \neg \mathrm{p\_a}(t) \rightarrow \mathrm{good}(t)
    """
    body, strength = fold(rule.body, _combine)
    if strength <= ARROW:
        body = f"({body})"
    arrow = r"\rightarrow" if rule.weight == 1 else rf"\stackrel{{{_number(rule.weight)}}}{{\rightarrow}}"
    return f"{_binder('forall', rule.variable, rule.sort)} {body} {arrow} {latex_formula(rule.head)}"


def latex_formula(formula: Formula) -> str:
    """A formula in LaTeX math, with parentheses where the canonical form has them."""
    return fold(formula, _combine)[0]


def _combine(node: Formula, parts: tuple[Printed, ...]) -> Printed:
    match node:
        case Truth():
            return (r"\top" if node.value else r"\bot"), TIGHT
        case Atom():
            return _atom(node), TIGHT
        case Comparison(feature, operator, threshold):
            value = _number(threshold.value)
            bound = rf"\widehat{{{value}}}" if threshold.learnable else value
            return f"{_atom(feature)} {_COMPARED[operator]} {bound}", COMPARISON
        case Not():
            return rf"\neg {_within(parts[0], NOT)}", NOT
        case And():
            return r" \wedge ".join(_within(part, COMPARISON) for part in parts), AND
        case Or():
            return r" \vee ".join(_within(part, AND) for part in parts), OR
        case Implies():
            return rf"{_within(parts[0], OR)} \rightarrow {_within(parts[1], OR)}", ARROW
        case Iff():
            return rf"{_within(parts[0], OR)} \leftrightarrow {_within(parts[1], OR)}", ARROW
        case Temporal(operator, _, window):
            reach = f"_{{[{window.start},{window.stop}]}}" if window else ""
            return rf"\mathbf{{{_OPERATORS[operator]}}}{reach}({parts[0][0]})", TIGHT
        case Quantified(quantifier, variable, sort, _):
            return f"{_binder(quantifier, variable, sort)} {_within(parts[0], QUANTIFIED)}", QUANTIFIED


def _within(part: Printed, least: int) -> str:
    return part[0] if part[1] >= least else f"({part[0]})"


def _binder(quantifier: str, variable: str, sort: str) -> str:
    return rf"\{quantifier} {_variable(variable)} \in {_roman(sort)}.\;"


def _atom(atom: Atom) -> str:
    terms = []
    for term in atom.args:
        if isinstance(term, Variable):
            terms.append(_variable(term.name) + (f"{term.offset:+d}" if term.offset else ""))
        elif isinstance(term, Text):
            terms.append(rf"\mbox{{\texttt{{{_escaped(quote(term.name, ascii_only=False))}}}}}")
        else:
            terms.append(_roman(term.name))
    return f"{_roman(atom.predicate)}({', '.join(terms)})"


def _variable(name: str) -> str:
    return name if len(name) == 1 and name != "_" else rf"\mathit{{{name.replace('_', chr(92) + '_')}}}"


def _roman(name: str) -> str:
    return rf"\mathrm{{{name.replace('_', chr(92) + '_')}}}"


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(sign, sign) for sign in text)


def _number(value: float) -> str:
    mantissa, _, exponent = number(value).partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa
