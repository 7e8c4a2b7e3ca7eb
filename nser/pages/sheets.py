"""Tables as data: what a page shows as text, and what it sorts and filters by."""

from __future__ import annotations

import math
from dataclasses import dataclass

from nser.percent import percent

UNKNOWN = "–"


@dataclass(frozen=True)
class Column:
    """A column of a table.

    note: what its figures are;  number: set to the right;  choose: the page offers its values in a list to filter by
    """

    name: str
    note: str = ""
    number: bool = True
    choose: bool = False


@dataclass(frozen=True)
class Cell:
    """A cell: its text, a smaller note and a line of code under it, a place on the page that it leads to.

    `order` is what sorts, a number (infinity too) or a text; None sorts last.
    """

    text: str
    order: float | str | None = None
    note: str = ""
    code: str = ""
    link: str = ""


@dataclass(frozen=True)
class Row:
    """A row; `anchor` is its place on the page, where it has one."""

    cells: tuple[Cell, ...]
    anchor: str = ""


@dataclass(frozen=True)
class Sheet:
    """A table; `name` tells it from the others of a page, and `what` names its rows in the plural."""

    name: str
    what: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    def __post_init__(self) -> None:
        wrong = [row for row in self.rows if len(row.cells) != len(self.columns)]
        if wrong:
            raise ValueError(f"found {len(wrong[0].cells)} cells, expected {len(self.columns)} in sheet {self.name}")


def number(value: float | None, form: str = "{:.3g}", note: str = "") -> Cell:
    """A figure; None and NaN are shown as unknown."""
    if value is None or math.isnan(value):
        return Cell(UNKNOWN)
    return Cell(form.format(value), float(value), note)


def share(value: float | None) -> Cell:
    """A share in [0, 1] as per cent."""
    return number(value) if value is None or math.isnan(value) else Cell(percent(value), float(value))


def word(text: str, note: str = "", link: str = "") -> Cell:
    """A text that sorts by itself."""
    return Cell(text or UNKNOWN, text or None, note, link=link)
