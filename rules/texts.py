"""Texts in quotes: written as JSON's strings are, so that every writer knows how, and ASCII can say anything."""

from __future__ import annotations

import json


def quote(text: str, *, ascii_only: bool = True) -> str:
    """A text as a literal of the language; what is not printable is escaped in either form.

    >>> print(quote("say é"), quote("say é", ascii_only=False))
    "say \\u00e9" "say é"
    """
    if ascii_only:
        return json.dumps(text).replace("\x7f", "\\u007f")
    plain = (sign if sign.isprintable() and sign not in '"\\' else json.dumps(sign)[1:-1] for sign in text)
    return f'"{"".join(plain)}"'


def unquote(literal: str) -> str:
    """The text of a literal. Raises ValueError for half of a surrogate pair, which is no character."""
    text: str = json.loads(literal)
    text.encode()
    return text
