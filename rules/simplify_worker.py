"""The process in which sympy minimises a truth table, so that a time limit holds: it can be killed.

Reads `{"count": n, "true": [rows], "free": [rows]}` from standard input, where bit i of a row is variable i, and
writes the shorter of the sum of products and the product of sums as nested lists: `["or", ["and", 0, ["not", 1]]]`.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def minimise(count: int, true: list[int], free: list[int]) -> Any:
    """A short formula over variables 0 … count − 1 that is true in these rows, and anything in the free ones.

    The symbols are made here, by number: sympy never sees a text, which it would run.
    """
    from sympy import Symbol
    from sympy.logic import POSform, SOPform

    symbols = [Symbol(f"v{i}") for i in range(count)]
    numbers = {symbol: i for i, symbol in enumerate(symbols)}
    rows = [[row >> i & 1 for i in range(count)] for row in true]
    others = [[row >> i & 1 for i in range(count)] for row in free]
    forms = [_plain(form(symbols, rows, others), numbers) for form in (SOPform, POSform)]
    return min(forms, key=size)


def size(form: Any) -> int:
    """Leaves of a nested list, negations counted a little."""
    if not isinstance(form, list):
        return 10
    return sum(size(part) for part in form[1:]) + 1


def _plain(form: Any, numbers: dict[Any, int]) -> Any:
    from sympy import And, Not, Or
    from sympy.logic.boolalg import BooleanFalse, BooleanTrue

    if isinstance(form, BooleanTrue | BooleanFalse):
        return bool(form)
    if isinstance(form, Not):
        return ["not", _plain(form.args[0], numbers)]
    if isinstance(form, And | Or):
        parts = [_plain(part, numbers) for part in form.args]
        return ["and" if isinstance(form, And) else "or", *sorted(parts, key=_place)]
    return numbers[form]


def _place(form: Any) -> tuple[int, str]:
    """Sympy's order of operands changes from run to run; ours is that of the variables."""
    leaf = form
    while isinstance(leaf, list):
        leaf = leaf[1]
    return int(leaf), json.dumps(form)


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    json.dump(minimise(asked["count"], asked["true"], asked["free"]), sys.stdout)
