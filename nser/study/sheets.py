"""The two sheets of a study as text: what each condition came to, and what it is worth beside each baseline.

Built once here; Markdown, the terminal and the page only lay them out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from nser.study.statistics import LEAST_PAIRS, LEVEL, RESAMPLES
from nser.study.table import SOLVED, Comparison, Line, Table
from nser.study.wording import estimate_text, ratio_text

NAME_COLUMNS = ("condition", "against", "verdict")  # words; the other columns hold figures


@dataclass(frozen=True)
class Entry:
    """One cell of a sheet: its text, and what it is sorted by."""

    text: str
    order: float | str


@dataclass(frozen=True)
class Sheet:
    """A title, a sentence that says how to read it, the heads, and the rows."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]


def summary_sheet(table: Table) -> Sheet:
    """A row for each condition and update ratio."""
    return Sheet(
        "Conditions",
        f"Area: the {table.measure} of a seed averaged over steps, by {table.evaluations} greedy evaluations; final: "
        f"the last of them. Both are interquartile means over seeds with {LEVEL:.0%} percentile-bootstrap intervals "
        f"({RESAMPLES:,} resamples of seeds). Reach {SOLVED:.0%}: runs with one evaluation at least that high; half "
        "by: the step by which half of all runs had one; CPU s: processor seconds a seed.",
        ("ratio", "condition", "seeds", "area", "final", f"reach {SOLVED:.0%}", "half by", "CPU s"),
        tuple(_summary_row(line, table.last_step) for line in table.lines),
    )


def comparison_sheet(table: Table) -> Sheet:
    """A row for each comparison with a baseline."""
    return Sheet(
        "Paired differences of the area",
        f"Condition minus baseline, seed by seed, with {LEVEL:.0%} intervals. The mean counts every seed, the "
        "interquartile mean leaves out a quarter at each end; a difference is called shown only where both intervals "
        f"exclude 0, of {LEAST_PAIRS} seeds or more. P(better): the probability that a run of the condition beats a "
        "run of the baseline, a tie counted as half.",
        ("ratio", "condition", "against", "seeds", "mean", "IQM", "P(better)", "verdict"),
        tuple(_comparison_row(comparison) for comparison in table.comparisons),
    )


def markdown(table: Table) -> str:
    """The content of `table.md`."""
    parts = [f"# {table.environment}: greedy {table.measure}"]
    for sheet in (summary_sheet(table), comparison_sheet(table)):
        if sheet.rows:
            parts += [f"## {sheet.title}", sheet.note, _markdown_rows(sheet)]
    if table.remarks:
        parts += ["## Remarks", "\n".join(f"- {remark}" for remark in table.remarks)]
    return "\n\n".join(parts) + "\n"


def _summary_row(line: Line, last_step: int) -> tuple[Entry, ...]:
    median = line.median_step
    return (
        Entry(ratio_text(line.ratio), line.ratio),
        Entry(line.condition, line.condition),
        Entry(f"{line.seeds} (few)" if line.few else str(line.seeds), line.seeds),
        Entry(estimate_text(line.area), line.area.value),
        Entry(estimate_text(line.final), line.final.value),
        Entry(f"{line.reached} of {line.seeds}", line.reached / line.seeds),
        Entry(f"> {last_step:,}" if median is None else f"{median:,.0f}", math.inf if median is None else median),
        Entry("–", -1.0) if line.cpu_seconds is None else Entry(f"{line.cpu_seconds:,.1f}", line.cpu_seconds),
    )


def _comparison_row(comparison: Comparison) -> tuple[Entry, ...]:
    difference, better = comparison.difference, comparison.improvement
    return (
        Entry(ratio_text(comparison.ratio), comparison.ratio),
        Entry(comparison.condition, comparison.condition),
        Entry(comparison.baseline, comparison.baseline),
        Entry(str(difference.seeds), difference.seeds),
        Entry(estimate_text(difference.mean), difference.mean.value),
        Entry(estimate_text(difference.iqm), difference.iqm.value),
        Entry(estimate_text(better), better.value),
        Entry(difference.verdict, difference.verdict),
    )


def _markdown_rows(sheet: Sheet) -> str:
    lines = [
        sheet.columns,
        tuple(":--" if name in NAME_COLUMNS else "--:" for name in sheet.columns),
        *(tuple(entry.text.replace("|", "\\|") for entry in row) for row in sheet.rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
