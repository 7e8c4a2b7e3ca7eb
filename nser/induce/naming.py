"""Names for rules that no person named: the action, then what the body is about."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nser.rules.syntax import MAX_NAME, Atom, Comparison, Formula, Not, Variable


def rule_name(body: Sequence[Formula], action: str | None, taken: set[str]) -> str:
    """A name such as `pickup_facing_key`, cut to the language's length and made unique among `taken`."""
    words = [action] if action is not None else []
    for literal in body:
        words.append(_words(literal))
    stem = re.sub(r"_?\W+_?", "_", "_".join(words), flags=re.ASCII)[: MAX_NAME - 3].rstrip("_") or "always"
    name, count = stem, 1
    while name in taken:
        count += 1
        name = f"{stem}_{count}"
    taken.add(name)
    return name


def _words(literal: Formula) -> str:
    match literal:
        case Not(operand):
            return f"not_{_words(operand)}"
        case Comparison(feature, operator, _):
            return f"{_words(feature)}_{'high' if operator.startswith('>') else 'low'}"
        case Atom(predicate, args):
            return "_".join([predicate, *(term.name for term in args if not isinstance(term, Variable))])
        case _:
            return type(literal).__name__.lower()
