# ruff: noqa: D102  (the methods of Builder are the aliases of rules.lark, described there)
"""From the reductions of the LALR parser to syntax, as they happen: no parse tree, no recursion.

Names are all constants here, as whether `t` is bound is known only when its quantifier closes, and positions
are offsets into the parsed piece; `parse.py` binds and places both once a rule is whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from lark import Token, Transformer, v_args

from nser.rules.errors import NumberError, RuleSyntaxError, TextError, WindowError
from nser.rules.source import shown
from nser.rules.syntax import (
    MAX_TEXT,
    MAX_WINDOW,
    Atom,
    Comparison,
    ComparisonOperator,
    Constant,
    Formula,
    Iff,
    Implies,
    Not,
    Position,
    Quantified,
    Rule,
    Temporal,
    TemporalOperator,
    Term,
    Text,
    Threshold,
    Truth,
    Variable,
    Window,
)
from nser.rules.texts import unquote
from nser.rules.walk import conjunction, disjunction


class RefusalError(Exception):
    """What the parser refuses, by offset; `parse.py` turns it into the error of its kind, with a place."""

    def __init__(self, kind: type[RuleSyntaxError], at: int, found: str, expected: tuple[str, ...]) -> None:
        super().__init__(found)
        self.kind = kind
        self.at = at
        self.found = found
        self.expected = expected


def number(token: Token) -> float:
    """A finite number. Raises RefusalError for one beyond the floats, such as 1e999."""
    value = float(token)
    if not math.isfinite(value):
        raise RefusalError(NumberError, start(token), shown(token), ("a finite number",))
    return value


def steps(token: Token) -> int:
    """A whole number up to MAX_WINDOW; the length is looked at first, as `int` refuses huge texts."""
    digits = token.lstrip("0") or "0"
    if len(digits) > 6 or int(digits) > MAX_WINDOW:
        raise RefusalError(WindowError, start(token), shown(token), (f"at most {MAX_WINDOW} steps",))
    return int(digits)


def start(token: Token) -> int:
    """The offset of a token in the parsed piece."""
    return token.start_pos or 0


def _compared(operator: ComparisonOperator) -> Callable[[Builder, Atom, Threshold], Comparison]:
    def build(self: Builder, feature: Atom, threshold: Threshold) -> Comparison:
        return Comparison(feature, operator, threshold)

    return build


def _shifted(operator: TemporalOperator) -> Callable[[Builder, Formula], Temporal]:
    def build(self: Builder, operand: Formula) -> Temporal:
        return Temporal(operator, operand)

    return build


def _windowed(operator: TemporalOperator) -> Callable[[Builder, Window, Formula], Temporal]:
    def build(self: Builder, window: Window, operand: Formula) -> Temporal:
        return Temporal(operator, operand, window)

    return build


@v_args(inline=True)
class Builder(Transformer[Token, Formula]):
    """One method for each rule and alias of `rules.lark` that makes something."""

    less = _compared("<")
    at_most = _compared("<=")
    more = _compared(">")
    at_least = _compared(">=")
    next = _shifted("next")
    prev = _shifted("prev")
    eventually = _windowed("eventually")
    always = _windowed("always")
    once = _windowed("once")

    def rule(
        self, name: Token, weight: float | None, variable: Token, sort: Token, body: Formula, head: Formula
    ) -> Rule:
        return Rule(str(name), body, head, 1.0 if weight is None else weight, str(variable), str(sort))

    def weight(self, token: Token) -> float:
        value = number(token)
        if not 0 <= value <= 1:
            raise RefusalError(NumberError, start(token), shown(token), ("a weight in [0, 1]",))
        return value

    def negation(self, operand: Formula) -> Not:
        return Not(operand)

    def conjunction(self, left: Formula, right: Formula) -> Formula:
        return conjunction((left, right))

    def disjunction(self, left: Formula, right: Formula) -> Formula:
        return disjunction((left, right))

    def implies(self, left: Formula, right: Formula) -> Implies:
        return Implies(left, right)

    def equivalence(self, left: Formula, right: Formula) -> Iff:
        return Iff(left, right)

    def exists(self, variable: Token, sort: Token, operand: Formula) -> Quantified:
        return Quantified("exists", str(variable), str(sort), operand)

    def forall(self, variable: Token, sort: Token, operand: Formula) -> Quantified:
        return Quantified("forall", str(variable), str(sort), operand)

    def true(self) -> Truth:
        return Truth(True)

    def false(self) -> Truth:
        return Truth(False)

    def window(self, first: Token, last: Token) -> Window:
        window = Window(steps(first), steps(last))
        if window.start > window.stop:
            expected = (f"an end of at least {window.start}",)
            raise RefusalError(WindowError, start(last), shown(last), expected)
        return window

    def fixed(self, token: Token) -> Threshold:
        return Threshold(number(token))

    def learnable(self, token: Token) -> Threshold:
        return Threshold(number(token), learnable=True)

    def atom(self, predicate: Token, *args: Term) -> Atom:
        return Atom(str(predicate), args, Position(1, 1, start(predicate)))

    def name(self, token: Token) -> Constant:
        return Constant(str(token))

    def text(self, token: Token) -> Text:
        try:
            text = unquote(token)
        except ValueError:
            raise RefusalError(TextError, start(token), "half of a surrogate pair", ("whole characters",)) from None
        if len(text) > MAX_TEXT:
            found = f"a text of {len(text)} characters"
            raise RefusalError(TextError, start(token), found, (f"at most {MAX_TEXT}",))
        return Text(text)

    def later(self, name: Token, by: Token) -> Term:
        return self._offset(name, steps(by))

    def earlier(self, name: Token, by: Token) -> Term:
        return self._offset(name, -steps(by))

    def _offset(self, name: Token, by: int) -> Term:
        # `t+0` is `t`: a plain name, bound like every other.
        return Variable(str(name), by) if by else Constant(str(name))
