r"""Rules as Prolog clauses, to query recorded episodes with a Prolog system.

Steps are integers. The facts that a host provides: `step(T)` for each step of the episode, `p(T, …)` for
each truth predicate, `f(T, …, Value)` for each number, and `sort(X)` for each constant of an object sort.
The head `~good(t)` becomes `bad(T)`; a head of the vocabulary becomes `violated(rule, T)`, true of the steps
where the body holds and the head does not. Three helpers:

    implies(A, B) :- \+ (A, \+ B).
    iff(A, B) :- implies(A, B), implies(B, A).
    window(T, First, Last, U) :- between(First, Last, D), U is T + D, step(U).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from nser.rules.printer import number
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
    blames,
    praises,
)
from nser.rules.walk import conjuncts

_COMPARED = {"<": "<", "<=": "=<", ">": ">", ">=": ">="}


def prolog_rule(rule: Rule) -> str:
    r"""A rule as one clause, its name and weight in a comment before it.

    >>> from nser.rules.parse import parse_rule
    >>> print(prolog_rule(parse_rule("rule a [0.5]: forall t in step: ~p(t) & q(t+1, key) -> ~good(t)")))
    % rule a, weight 0.5
    bad(T) :- step(T), \+ p(T), (window(T, 1, 1, T1), q(T1, key)).
    """
    writer = _Writer(rule.variable)
    now = writer.fresh(rule.variable)
    goals = [f"{_quoted(rule.sort)}({now})"]
    goals += [writer.goal(part, {}, now) for part in conjuncts(rule.body)]
    if praises(rule) or blames(rule):
        head = f"{'good' if praises(rule) else 'bad'}({now})"
    else:
        head = f"violated({_quoted(rule.name)}, {now})"
        goals.append(rf"\+ {writer.goal(rule.head, {}, now)}")
    weight = "" if rule.weight == 1 else f", weight {number(rule.weight)}"
    return f"% rule {rule.name}{weight}\n{head} :- {', '.join(goals)}."


class _Writer:
    """Goals over fresh variables; recursive, for formulas within the language's depth."""

    def __init__(self, variable: str) -> None:
        self.variable = variable
        self.used: set[str] = set()

    def fresh(self, name: str) -> str:
        """A Prolog variable after a name, such as no other is called."""
        stem = name[0].upper() + name[1:]
        stem = stem if stem[0].isalpha() else f"V{stem}"
        chosen, number = stem, 0
        while chosen in self.used:
            number += 1
            chosen = f"{stem}{number}"
        self.used.add(chosen)
        return chosen

    def goal(self, formula: Formula, objects: Mapping[str, str], now: str) -> str:
        """A goal that holds where the formula does, as one operand of `,`; `now` is the step it speaks of."""
        match formula:
            case Truth():
                return "true" if formula.value else "fail"
            case Atom():
                return _all(self.atom(formula, objects, now))
            case Comparison(feature, operator, threshold):
                value = self.fresh("value")
                test = f"{value} {_COMPARED[operator]} {_float(threshold.value)}"
                return _all([*self.atom(feature, objects, now, value), test])
            case Not(operand):
                return rf"\+ {self.goal(operand, objects, now)}"
            case And(operands):
                return _all([self.goal(operand, objects, now) for operand in operands])
            case Or(operands):
                return f"({' ; '.join(self.goal(operand, objects, now) for operand in operands)})"
            case Implies(left, right):
                return f"implies({self.goal(left, objects, now)}, {self.goal(right, objects, now)})"
            case Iff(left, right):
                return f"iff({self.goal(left, objects, now)}, {self.goal(right, objects, now)})"
            case Temporal(operator, operand, window):
                first, last = (window.start, window.stop) if window else (1, 1)
                if operator in {"prev", "once"}:
                    first, last = -last, -first
                step, walk = self.walk(now, first, last)
                inner = self.goal(operand, objects, step)
                return _every(walk, inner) if operator == "always" else _all([walk, inner])
            case Quantified(quantifier, variable, sort, operand):
                name = self.fresh(variable)
                member = f"{_quoted(sort)}({name})"
                inner = self.goal(operand, {**objects, variable: name}, now)
                return _every(member, inner) if quantifier == "forall" else _all([member, inner])

    def walk(self, now: str, first: int, last: int) -> tuple[str, str]:
        """The variable of a step from `first` to `last` steps away, and the goal that finds it."""
        step = self.fresh(self.variable)
        return step, f"window({now}, {first}, {last}, {step})"

    def atom(self, atom: Atom, objects: Mapping[str, str], now: str, *more: str) -> list[str]:
        """The goals of an atom: the walks to the steps of its offsets, then itself."""
        goals, terms = [], []
        for term in atom.args:
            if isinstance(term, Text):
                terms.append(_text(term.name))
            elif not isinstance(term, Variable):
                terms.append(_quoted(term.name))
            elif term.name in objects:
                terms.append(objects[term.name])
            elif term.offset:
                step, walk = self.walk(now, term.offset, term.offset)
                goals.append(walk)
                terms.append(step)
            else:
                terms.append(now)
        return [*goals, f"{_quoted(atom.predicate)}({', '.join([*terms, *more])})"]


def _all(goals: list[str]) -> str:
    return goals[0] if len(goals) == 1 else f"({', '.join(goals)})"


def _every(generator: str, goal: str) -> str:
    return rf"\+ ({generator}, \+ {goal})"


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[a-z][A-Za-z0-9_]*", name) else f"'{name}'"


def _text(text: str) -> str:
    r"""A quoted atom of ISO Prolog, in which `\` and the quote are escaped and control characters are numbers."""
    signs = (f"\\{sign}" if sign in "\\'" else sign if sign.isprintable() else f"\\x{ord(sign):x}\\" for sign in text)
    return f"'{''.join(signs)}'"


def _float(value: float) -> str:
    """A float of ISO Prolog, which wants digits after a point: 1.0e-05."""
    mantissa, mark, exponent = number(value).partition("e")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}{mark}{exponent}"
