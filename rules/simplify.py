"""A shorter body that says the same, found by sympy under a cap and a time limit, and proved by a truth table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import Any

from nser.rules.logic import equivalent
from nser.rules.signature import Signature
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
    Truth,
)
from nser.rules.walk import children, conjunction, disjunction, literals, nodes
from nser.rules.worlds import Questions, TooManyWorldsError, Worlds

MAX_VARIABLES = 8
SECONDS = 10.0
_Leaf = Atom | Comparison | Temporal | Quantified


@dataclass(frozen=True, slots=True)
class Simplified:
    """A formula or rule, and what was done: `changed`, or why it is the one that was given."""

    formula: Formula
    changed: bool
    reason: str


def simplify_rule(rule: Rule, signature: Signature | None = None, seconds: float = SECONDS) -> tuple[Rule, Simplified]:
    """The rule with a shorter body where there is one; the head stays."""
    found = simplify(rule.body, signature, seconds)
    return replace(rule, body=found.formula), found


def simplify(formula: Formula, signature: Signature | None = None, seconds: float = SECONDS) -> Simplified:
    """An equal formula with fewer literals; the given one, with the reason, where none was found.

    At most MAX_VARIABLES different conditions (atoms, comparisons, and whatever stands under a temporal operator or
    quantifier, which is not looked into) and `seconds` of work, which are kept: the work is done in another process.
    """
    leaves = _leaves(formula)
    if not leaves:
        return _constant(formula)
    if len(leaves) > MAX_VARIABLES:
        return Simplified(
            formula, False, f"left as it is: {len(leaves)} different conditions, and the cap is {MAX_VARIABLES}"
        )
    try:
        true, free = _table(formula, leaves, signature)
    except TooManyWorldsError:
        return Simplified(formula, False, "left as it is: it asks about more than a truth table holds")
    answer = _asked(len(leaves), true, free, seconds)
    if isinstance(answer, str):
        return Simplified(formula, False, f"left as it is: {answer}")
    shorter = _built(answer[0], leaves)
    if _length(shorter) >= _length(formula):
        return Simplified(formula, False, "as short as it can be said")
    if equivalent(formula, shorter, signature) != "yes":
        return Simplified(formula, False, "left as it is: the shorter form does not say the same")
    return Simplified(shorter, True, f"{_count(formula)} became {_count(shorter)}")


def _leaves(formula: Formula) -> list[_Leaf]:
    """The different conditions, in reading order."""
    found: dict[_Leaf, None] = {}
    waiting = [formula]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Atom | Comparison | Temporal | Quantified):
            found[node] = None
        else:
            waiting.extend(reversed(children(node)))
    return list(found)


def _table(formula: Formula, leaves: list[_Leaf], signature: Signature | None) -> tuple[list[int], list[int]]:
    """The rows in which the formula holds, and those that no world has, such as x < 1 without x < 2."""
    questions = Questions(signature)
    questions.ask(formula)
    worlds = Worlds(questions)
    holds = worlds.holds(formula)
    columns = [worlds.holds(leaf) for leaf in leaves]
    true, free = [], []
    for row in range(1 << len(leaves)):
        found = worlds.all
        for i, column in enumerate(columns):
            found &= column if row >> i & 1 else worlds.all ^ column
        if not found:
            free.append(row)
        elif found & holds:
            true.append(row)
    return true, free


def _asked(count: int, true: list[int], free: list[int], seconds: float) -> tuple[Any] | str:
    """The worker's answer in a tuple, or what went wrong with it."""
    question = json.dumps({"count": count, "true": true, "free": free})
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-P", "-m", "nser.rules.simplify_worker"]
    try:
        done = subprocess.run(
            command, input=question, capture_output=True, text=True, timeout=seconds, check=True, env=environment
        )
        return (json.loads(done.stdout),)
    except subprocess.TimeoutExpired:
        return f"not done within {seconds:g} seconds"
    except (subprocess.CalledProcessError, OSError, ValueError) as error:
        return f"the process that simplifies failed ({type(error).__name__})"


def _built(form: Any, leaves: list[_Leaf]) -> Formula:
    if isinstance(form, bool):
        return Truth(form)
    if isinstance(form, int):
        return leaves[form]
    if form[0] == "not":
        return Not(_built(form[1], leaves))
    parts = tuple(_built(part, leaves) for part in form[1:])
    return conjunction(parts) if form[0] == "and" else disjunction(parts)


def _constant(formula: Formula) -> Simplified:
    """A formula of `true` and `false` alone."""
    value = Truth(equivalent(formula, Truth(True)) == "yes")
    changed = value != formula
    return Simplified(
        value,
        changed,
        f"it is {'always' if value.value else 'never'} true" if changed else "as short as it can be said",
    )


def _length(formula: Formula) -> tuple[int, int]:
    """Literals, then connectives."""
    connectives = sum(isinstance(node, And | Or | Implies | Iff | Not) for node in nodes(formula))
    return len(literals(formula)), connectives


def _count(formula: Formula) -> str:
    count = len(literals(formula))
    return "1 literal" if count == 1 else f"{count} literals"
