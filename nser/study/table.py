"""The figures of a study: one line a condition and ratio, one comparison a pair, and remarks that the data call for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from nser.study.curves import Group, Results
from nser.study.errors import BaselineError
from nser.study.statistics import (
    LEAST_PAIRS,
    LEVEL,
    RESAMPLES,
    Estimate,
    PairedDifference,
    estimate,
    first_reached,
    improvement,
    median_reached,
    paired_difference,
)
from nser.study.wording import cell_text

FEW_SEEDS = 10  # with fewer, intervals are too narrow and one seed decides
SOLVED = 0.8  # share of success, or of the normalised return, from which a run counts as having learnt the task
LEARNT = 0.1  # final success below which nothing has been learnt yet
BASELINES = ("uniform", "per", "placebo")  # compared with unless others are named


@dataclass(frozen=True)
class Line:
    """A condition at one update ratio.

    `area` is the IQM over seeds of the area under the curve, `final` that of the last evaluation, both in [0, 1];
    `reached` runs got to `SOLVED`, half of all runs by `median_step` (None: fewer than half did).
    """

    condition: str
    ratio: float
    seeds: int
    area: Estimate
    final: Estimate
    reached: int
    median_step: float | None
    cpu_seconds: float | None

    @property
    def few(self) -> bool:
        """Whether there are too few seeds to lean on."""
        return self.seeds < FEW_SEEDS


@dataclass(frozen=True)
class Comparison:
    """The areas of a condition against those of a baseline, over the seeds that both were run with."""

    condition: str
    baseline: str
    ratio: float
    difference: PairedDifference
    improvement: Estimate


@dataclass(frozen=True)
class Table:
    """All figures of a study; `last_step` is where the curves end."""

    environment: str
    measure: str
    scale: tuple[float, float] | None
    last_step: int
    evaluations: int
    lines: tuple[Line, ...]
    comparisons: tuple[Comparison, ...]
    remarks: tuple[str, ...]

    @property
    def ratios(self) -> list[float]:
        """Update ratios, ascending."""
        return sorted({line.ratio for line in self.lines})

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        found = asdict(self)
        for comparison, plain in zip(self.comparisons, found["comparisons"], strict=True):
            plain["difference"]["verdict"] = comparison.difference.verdict
        return {**found, "level": LEVEL, "resamples": RESAMPLES, "solved": SOLVED}


def make_table(results: Results, baselines: Sequence[str] = ()) -> Table:
    """All figures. `baselines` are those of `BASELINES` that the study holds where none are named.

    Raises `BaselineError` for a name that the study does not hold.
    """
    known = results.conditions
    for name in baselines:
        if name not in known:
            raise BaselineError(name, known)
    chosen = list(dict.fromkeys(baselines)) or [name for name in BASELINES if name in known]
    lines = tuple(_line(group, results) for group in results.groups)
    comparisons = tuple(c for ratio in results.ratios for c in _comparisons(results.at(ratio), chosen))
    return Table(
        environment=results.environment,
        measure=results.measure,
        scale=results.scale,
        last_step=int(results.steps[-1]),
        evaluations=len(results.steps),
        lines=lines,
        comparisons=comparisons,
        remarks=(*_remarks(results, lines, comparisons), *results.gaps),
    )


def _line(group: Group, results: Results) -> Line:
    reached = first_reached(results.steps, group.curves, SOLVED)
    return Line(
        condition=group.condition,
        ratio=group.ratio,
        seeds=len(group.seeds),
        area=estimate(group.areas),
        final=estimate(group.finals),
        reached=int(np.isfinite(reached).sum()),
        median_step=median_reached(reached),
        cpu_seconds=group.cpu_seconds,
    )


def _comparisons(groups: Sequence[Group], baselines: Sequence[str]) -> list[Comparison]:
    """Every condition with every baseline, a pair of baselines once."""
    by_name = {group.condition: group for group in groups}
    found = []
    for place, baseline in enumerate(baselines):
        for group in groups:
            if baseline in by_name and group.condition not in baselines[: place + 1]:
                found += _comparison(group, by_name[baseline])
    return found


def _comparison(group: Group, baseline: Group) -> list[Comparison]:
    shared = sorted(set(group.seeds) & set(baseline.seeds))
    if not shared:
        return []
    ours, theirs = (one.areas[np.isin(one.seeds, shared)] for one in (group, baseline))
    return [
        Comparison(
            group.condition,
            baseline.condition,
            group.ratio,
            paired_difference(ours, theirs),
            improvement(ours, theirs),
        )
    ]


def _remarks(results: Results, lines: Sequence[Line], comparisons: Sequence[Comparison]) -> list[str]:
    """What a reader must know before leaning on the figures."""
    remarks = []
    if results.scale is not None:
        low, high = results.scale
        remarks.append(
            f"Returns are scaled: 0 is the lowest evaluation of this study ({low:g}), 1 the highest ({high:g}). "
            "Figures of other studies are on other scales."
        )
    few = [cell_text(line.condition, line.ratio) for line in lines if line.few]
    if few:
        where = "Every condition has" if len(few) == len(lines) else f"{', '.join(few)}:"
        remarks.append(
            f"{where} fewer than {FEW_SEEDS} seeds. Such intervals are too narrow, and one more seed can turn the "
            "order."
        )
    if results.measure == "success" and all(line.final.value < LEARNT for line in lines):
        remarks.append(
            "No condition has learnt the task in so few steps, so that nothing can be told from their differences. "
            "Give the study more --steps, or more updates with --ratios."
        )
    if comparisons:
        remarks.append(_on_comparisons(comparisons))
    return remarks


def _on_comparisons(comparisons: Sequence[Comparison]) -> str:
    """How many were made, what that does to their level, and how many show nothing."""
    number = len(comparisons)
    shown = sum(comparison.difference.verdict != "not shown" for comparison in comparisons)
    nothing = f"an interval includes 0, or there are fewer than {LEAST_PAIRS} pairs of seeds"
    if number == 1:
        told = "It shows a difference." if shown else f"It shows none: {nothing}."
        return f"One paired comparison was made, at {LEVEL:.0%}. {told}"
    return (
        f"{number} paired comparisons were made, at {LEVEL:.0%} each and without a correction for their number: if no "
        f"condition differed from another, up to about {(1 - LEVEL) * number:.1f} would still seem to. "
        f"{shown} of {number} show a difference; elsewhere {nothing}."
    )
