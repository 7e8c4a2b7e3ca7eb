"""A text that errors point into: offsets become lines and columns, and a line becomes something to show."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from dataclasses import dataclass

from nser.rules.syntax import Position

EXCERPT = 160


@dataclass(frozen=True, slots=True)
class Place:
    """A position with the line it lies in; a line beyond 160 characters is cut to a part around it.

    `caret` is the index in `line` of the character meant; the line's end when the text ends there.
    """

    position: Position
    line: str
    caret: int

    def pointed(self) -> str:
        """The line, and below it a caret under the character meant.

        >>> print(Source("p(t) &&").place(6).pointed())
        p(t) &&
              ^
        """
        line = "".join(character if character.isprintable() else " " for character in self.line)
        return f"{line}\n{' ' * width(line[: self.caret])}^"


def width(text: str) -> int:
    """Columns that a text takes in a terminal: two for a wide character, none for a combining one."""
    return sum(
        0 if unicodedata.combining(character) else 1 + (unicodedata.east_asian_width(character) in "WF")
        for character in text
    )


def shown(text: str, limit: int = 40) -> str:
    """A piece of a hostile text, fit for one line of a message: cut, quoted, control characters escaped."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    safe = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in cut
    )
    return f"`{safe}`"


class Source:
    """A text with the starts of its lines, so that each offset is located in O(log lines)."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0]
        at = text.find("\n")
        while at >= 0:
            self._starts.append(at + 1)
            at = text.find("\n", at + 1)

    def position(self, offset: int) -> Position:
        """Line and column of an offset in [0, len(text)]; lines end at a line feed, as editors count."""
        line = bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1] + 1, offset)

    def place(self, offset: int) -> Place:
        """The position of an offset together with the line around it."""
        position = self.position(offset)
        start = self._starts[position.line - 1]
        end = self._starts[position.line] - 1 if position.line < len(self._starts) else len(self.text)
        caret = offset - start
        if end - start > EXCERPT:
            start = max(start, min(offset - EXCERPT // 2, end - EXCERPT))
            caret = offset - start
            end = start + EXCERPT
        line = self.text[start:end].rstrip("\r")
        return Place(position, line, min(caret, len(line)))
