"""A study's figures and the list of conditions as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Group, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.table import Table as Lines
from rich.text import Text

from nser.study.sheets import sections
from nser.study.wording import updates_text

if TYPE_CHECKING:
    from nser.pages.sheets import Column, Row
    from nser.study.conditions import Condition
    from nser.study.table import Table

WIDE = 110  # columns from which figure and interval stand on one line
LONG = 10  # of a name on a narrow terminal
STYLES = {"better": "green", "worse": "red", "not shown": "dim"}


def study_table(table: Table, width: int) -> RenderableType:
    """Both sheets, a block for each update ratio, and the remarks, on a terminal of so many columns."""
    parts: list[RenderableType] = [Text(f"{table.environment}: greedy {table.measure}", style="bold")]
    for section in sections(table):
        for ratio in table.ratios:
            rows = [row for row in section.sheet.rows if row.cells[0].order == ratio]
            if rows:
                heading = f"\n{section.title}, {updates_text(ratio)}"
                parts += [Text(heading, style="bold"), _lines(section.sheet.columns, rows, narrow=width < WIDE)]
    parts += [Padding(Text(f"- {remark}"), (1, 0, 0, 0)) for remark in table.remarks]
    return Group(*parts)


def conditions_table(conditions: Iterable[Condition], overrides: Mapping[str, str]) -> RenderableType:
    """Name and summary of each, then what can be set."""
    lines = Lines(box=SIMPLE_HEAD, pad_edge=False)
    lines.add_column("condition", no_wrap=True, style="bold")
    lines.add_column("replay and exploration")
    for condition in conditions:
        lines.add_row(condition.name, condition.summary)
    settings = Lines(box=SIMPLE_HEAD, pad_edge=False, title="set behind a colon, as in induced:eta=2,tau=1e4")
    settings.title_justify = "left"
    settings.add_column("setting", no_wrap=True, style="bold")
    settings.add_column("what it is; without, the condition's own value")
    for name, told in overrides.items():
        settings.add_row(name, told)
    return Group(lines, settings)


def _lines(columns: Sequence[Column], rows: Sequence[Row], *, narrow: bool) -> Lines:
    """Rows of one ratio, which is said above them; a narrow terminal gets each interval below its figure."""
    lines = Lines(box=None, padding=(0, 1, 0, 0), header_style="dim")
    for column in columns[1:]:
        name = column.name in ("condition", "against")  # folded where there is no room; figures never are
        justify: JustifyMethod = "right" if column.number else "left"
        lines.add_column(column.name, justify=justify, no_wrap=not name, overflow="fold")
    for row in rows:
        texts = [_folded(cell.text) if narrow else cell.text for cell in row.cells[1:]]
        lines.add_row(*(Text(text, style=STYLES.get(text, "")) for text in texts))
    return lines


def _folded(text: str) -> str:
    """An interval below its figure, and a long name broken where it is put together."""
    if len(text) > LONG and "[" not in text:
        return text.replace("+", "\n+").replace(":", "\n:").replace(",", "\n,")
    return text.replace(" [", "\n[")
