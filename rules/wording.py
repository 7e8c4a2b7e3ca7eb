"""The parser's terminals in human words, and the spellings that people and models reach for by habit."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

NAMES: dict[str, str] = {
    "RULE_NAME": "a rule name",
    "VARIABLE": "a variable",
    "SORT": "a sort",
    "PREDICATE": "a predicate name",
    "TERM": "a variable or a constant",
}
_NAMED = {
    **NAMES,
    **{"NUMBER": "a number", "INT": "a whole number", "STRING": "a text in quotes", "$END": "the end of the rule"},
}
# Every spelling of a sign is told as its ASCII one.
_SPELLINGS = {
    **{"∀": "forall", "∃": "exists", "∈": "in", "not": "~", "¬": "~", "and": "&", "∧": "&", "or": "|"},
    **{"∨": "|", "implies": "->", "→": "->", "iff": "<->", "↔": "<->", "≤": "<=", "≥": ">="},
}
# What stands for several terminals where all of them would do, in the order in which a message tells them.
_GROUPS: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"forall", "exists"}), "a quantifier"),
    (frozenset({"next", "prev", "eventually", "always", "once"}), "a temporal operator"),
    (frozenset({"<", "<=", ">", ">="}), "a comparison"),
    (frozenset({"true", "false"}), "a truth value"),
)
_HABITS = {
    **{"<=>": "<->", "==>": "->", "=>": "->", "⇒": "->", "⟶": "->", ":-": "->", "then": "->", "⇔": "<->"},
    **{"&&": "&", "||": "|", "!": "~", "−": "-", "–": "-"},
}
# Where the whole construct goes elsewhere or is spelt otherwise: `forall t. …`, a weight after the head, quotes that
# are none or that are never closed.
_MISPLACED = {
    **{(".", "IN"): "in step:", ("[", "$END"): "rule NAME [WEIGHT]: …"},
    **{(quote, "STRING"): '"…" on one line' for quote in ("'", '"', "“", "”", "„", "«")},
}


def expected_words(terminals: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Words for terminals, each given as its name and its literal text, sorted for people, each once."""
    named = [_NAMED[name] for name, _ in terminals if name in _NAMED]
    signs = {_SPELLINGS.get(text, text) for name, text in terminals if name not in _NAMED}
    words = sorted(set(named) - {_NAMED["$END"]})
    for members, word in _GROUPS:
        if members <= signs:
            signs -= members
            words.append(word)
    words += [f"`{sign}`" for sign in sorted(signs)]
    return (*words, _NAMED["$END"]) if _NAMED["$END"] in named else tuple(words)


def nearest_sign(text: str, at: int, terminals: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """What stands at an offset, and what was probably meant of that which could stand there.

    `a && b` fails at its second `&`, so the characters before the offset are looked at as well; what is
    found then begins before it.
    """
    names = {name for name, _ in terminals}
    possible = {literal: _SPELLINGS.get(literal, literal) for _, literal in terminals if literal}
    for (found, name), meant in _MISPLACED.items():
        if text.startswith(found, at) and name in names:
            return found, meant
    for habit, meant in _HABITS.items():
        for back in range(min(len(habit), at + 1)):
            if text.startswith(habit, at - back) and (back or meant in possible.values()):
                return habit, meant
    word = re.match(r"[A-Za-z]*", text[at : at + 16])
    found = word[0] if word else ""
    close = difflib.get_close_matches(found.lower(), [known for known in possible if known.isalpha()], 1, 0.7)
    return (found, possible[close[0]]) if close else None


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name most like a given one, or `None` when none is like it.

    >>> nearest_name("near_kye", ["holding_key", "near_key"])
    'near_key'
    """
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower()[:64], list(by_lower), 1, 0.6)
    return by_lower[close[0]] if close else None
