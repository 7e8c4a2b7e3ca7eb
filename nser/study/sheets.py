"""The two tables of a study: what each condition came to, and what it is worth beside each baseline.

Built once here; Markdown, the terminal and the page only lay them out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from nser.pages.sheets import Cell, Column, Row, Sheet, number, word
from nser.study.statistics import LEAST_PAIRS, LEVEL, RESAMPLES
from nser.study.table import SOLVED, Comparison, Line, Table
from nser.study.wording import estimate_text, ratio_text

RATIO = Column("ratio", "updates of the network per environment step", choose=True)
CONDITION = Column("condition", number=False, choose=True)
SEEDS = Column("seeds")
SUMMARY = (
    RATIO,
    CONDITION,
    SEEDS,
    Column("area"),
    Column("final"),
    Column(f"reach {SOLVED:.0%}"),
    Column("half by"),
    Column("CPU s"),
)
COMPARISON = (
    RATIO,
    CONDITION,
    Column("against", number=False, choose=True),
    SEEDS,
    Column("mean"),
    Column("IQM"),
    Column("P(better)"),
    Column("verdict", number=False, choose=True),
)


@dataclass(frozen=True)
class Section:
    """A sheet under its title, with a sentence that says how to read it."""

    title: str
    note: str
    sheet: Sheet


def sections(table: Table) -> list[Section]:
    """Conditions, then comparisons where there are any."""
    return [section for section in (summary(table), comparisons(table)) if section.sheet.rows]


def summary(table: Table) -> Section:
    """A row for each condition and update ratio."""
    evaluations = f"{table.evaluations} greedy evaluation{'' if table.evaluations == 1 else 's'}"
    return Section(
        "Conditions",
        f"Area: the {table.measure} of a seed averaged over steps, by {evaluations}; final: "
        f"the last of them. Both are interquartile means over seeds with {LEVEL:.0%} percentile-bootstrap intervals "
        f"({RESAMPLES:,} resamples of seeds). Reach {SOLVED:.0%}: runs with one evaluation at least that high; half "
        "by: the step by which half of all runs had one; CPU s: processor seconds a seed.",
        Sheet("conditions", "conditions", SUMMARY, tuple(_summary_row(line, table.last_step) for line in table.lines)),
    )


def comparisons(table: Table) -> Section:
    """A row for each comparison with a baseline."""
    rows = tuple(_comparison_row(comparison) for comparison in table.comparisons)
    return Section(
        "Paired differences of the area",
        f"Condition minus baseline, seed by seed, with {LEVEL:.0%} intervals. The mean counts every seed, the "
        "interquartile mean leaves out a quarter at each end; a difference is called shown only where both intervals "
        f"exclude 0, of {LEAST_PAIRS} seeds or more. P(better): the probability that a run of the condition beats a "
        "run of the baseline, a tie counted as half.",
        Sheet("comparisons", "comparisons", COMPARISON, rows),
    )


def markdown(table: Table) -> str:
    """The content of `table.md`."""
    parts = [f"# {table.environment}: greedy {table.measure}"]
    for section in sections(table):
        parts += [f"## {section.title}", section.note, _markdown_rows(section.sheet)]
    if table.remarks:
        parts += ["## Remarks", "\n".join(f"- {remark}" for remark in table.remarks)]
    return "\n\n".join(parts) + "\n"


def _summary_row(line: Line, last_step: int) -> Row:
    median = line.median_step
    cells = (
        Cell(ratio_text(line.ratio), line.ratio),
        word(line.condition),
        Cell(f"{line.seeds} (few)" if line.few else str(line.seeds), line.seeds),
        Cell(estimate_text(line.area), line.area.value),
        Cell(estimate_text(line.final), line.final.value),
        Cell(f"{line.reached} of {line.seeds}", line.reached / line.seeds),
        Cell(f"> {last_step:,}", math.inf) if median is None else number(median, "{:,.0f}"),
        number(line.cpu_seconds, "{:,.1f}"),
    )
    return Row(cells)


def _comparison_row(comparison: Comparison) -> Row:
    difference, better = comparison.difference, comparison.improvement
    cells = (
        Cell(ratio_text(comparison.ratio), comparison.ratio),
        word(comparison.condition),
        word(comparison.baseline),
        number(difference.seeds, "{:d}"),
        Cell(estimate_text(difference.mean), difference.mean.value),
        Cell(estimate_text(difference.iqm), difference.iqm.value),
        Cell(estimate_text(better), better.value),
        word(difference.verdict),
    )
    return Row(cells)


def _markdown_rows(sheet: Sheet) -> str:
    lines = [
        tuple(column.name for column in sheet.columns),
        tuple("--:" if column.number else ":--" for column in sheet.columns),
        *(tuple(cell.text.replace("|", "\\|") for cell in row.cells) for row in sheet.rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
