"""From rows of evaluations to one curve a seed: which measure, on which scale, and which seeds are whole.

A row is one greedy evaluation (the schema is in `nser.study.cells`). Only whole curves count: a seed that lacks an
evaluation is left out and named, for a mean over other steps than those of its rivals would be no comparison.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nser.study.errors import NoResultsError
from nser.study.wording import cell_text, listed

Row = Mapping[str, Any]
Cell = tuple[str, float, int]
Measure = Literal["success", "return"]
HUGE = 1e15  # no step, seed or return is as large: such a number is damage


@dataclass(frozen=True)
class Group:
    """All whole seeds of one condition at one update ratio.

    `curves` is [n, k] in [0, 1]: n seeds in ascending order, k evaluations after `steps` [k]. `cpu_seconds` is the
    mean a seed, None where it was not recorded.
    """

    condition: str
    ratio: float
    seeds: tuple[int, ...]
    steps: NDArray[np.int64]
    curves: NDArray[np.float64]
    cpu_seconds: float | None

    @property
    def areas(self) -> NDArray[np.float64]:
        """Area under each seed's curve, [n] in [0, 1]: the mean of its evaluations, each for the steps before it.

        That is the plain mean where evaluations are evenly spaced; the last one may come early.
        """
        return np.asarray(self.curves @ np.diff(self.steps, prepend=0) / self.steps[-1])

    @property
    def finals(self) -> NDArray[np.float64]:
        """The last evaluation of each seed, [n] in [0, 1]."""
        return self.curves[:, -1]


@dataclass(frozen=True)
class Results:
    """Everything measured in a study.

    `measure` says what the curves hold, `success` or `normalised return`; `scale` is the pair of mean returns that
    became 0 and 1, None where success was measured; `steps` is [k]; `gaps` are sentences about what is missing.
    """

    environment: str
    measure: str
    scale: tuple[float, float] | None
    steps: NDArray[np.int64]
    groups: tuple[Group, ...]
    gaps: tuple[str, ...]

    @property
    def ratios(self) -> list[float]:
        """Update ratios, ascending."""
        return sorted({group.ratio for group in self.groups})

    @property
    def conditions(self) -> list[str]:
        """Names of the conditions in their order."""
        return list(dict.fromkeys(group.condition for group in self.groups))

    def at(self, ratio: float) -> list[Group]:
        """The groups of one ratio."""
        return [group for group in self.groups if group.ratio == ratio]


def collect(
    rows: Iterable[Row],
    conditions: Sequence[str] = (),
    ratios: Sequence[float] = (),
    seeds: Sequence[int] = (),
    *,
    measure: Measure | None = None,
    lost: int = 0,
) -> Results:
    """Curves of all whole seeds.

    `conditions` sets the order; with `ratios` and `seeds` it says what is expected beyond what rows are there of, so
    that gaps are named; `lost` counts lines that were no rows.
    Success is measured where the environment knows it and `measure` asks for nothing else; otherwise the mean return,
    scaled so that the lowest evaluation of the study is 0 and the highest is 1: such figures compare conditions of
    this study and nothing else.
    Raises `NoResultsError` where there is nothing of what is measured, or rows of two environments are mixed.
    """
    rows = list(rows)
    environments = sorted({str(row.get("environment")) for row in rows})
    if len(environments) > 1:
        raise NoResultsError(f"found rows of {', '.join(environments):.200}, expected one environment a study")
    if measure is None:
        measure = "success" if any(_figure(row, "success") is not None for row in rows) else "return"
    points, unreadable = _points(rows, measure)
    if not points:
        what = f"no {measure} in {len(rows)} evaluations" if rows else "no evaluations yet"
        raise NoResultsError(f"found {what}, expected those of one finished cell at least")
    steps = _common_steps(points)
    values = {cell: np.array([curve[step] for step in steps]) for cell, curve in points.items() if _whole(curve, steps)}
    scale = None if measure == "success" else _scale(values)
    seconds = _cpu_seconds(rows)
    groups = [
        _group(key, np.array(steps), {c[2]: values[c] for c in values if c[:2] == key}, scale, seconds)
        for key in _ordered([cell[:2] for cell in values], conditions)
    ]
    lost += unreadable
    gaps = [f"lines of evaluations.jsonl that could not be read and were left out: {lost}"] if lost else []
    gaps += _gaps(points, steps, set(itertools.product(conditions, ratios)), set(seeds))
    named = "success" if measure == "success" else "normalised return"
    return Results(environments[0], named, scale, np.array(steps), tuple(groups), tuple(gaps))


def _figure(row: Row, name: str) -> float | None:
    """A number of a row, None for anything else: absent, no number, not finite, or absurdly large."""
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < HUGE else None


def _cell(row: Row) -> Cell | None:
    """What a row belongs to, None where that can't be told."""
    ratio, seed = _figure(row, "ratio"), _figure(row, "seed")
    if not row.get("condition") or ratio is None or seed is None or ratio <= 0:
        return None
    return str(row["condition"]), ratio, int(seed)


def _points(rows: list[Row], key: Measure) -> tuple[dict[Cell, dict[int, float]], int]:
    """Each cell's figures by step, and the number of rows that lack something; the later of two equal rows counts."""
    points: dict[Cell, dict[int, float]] = defaultdict(dict)
    unreadable = 0
    for row in rows:
        cell, step, value = _cell(row), _figure(row, "step"), _figure(row, key)
        if cell is None or step is None or step < 1 or value is None or (key == "success" and not 0 <= value <= 1):
            unreadable += 1
        else:
            points[cell][int(step)] = value
    return points, unreadable


def _common_steps(points: Mapping[Cell, Mapping[int, float]]) -> list[int]:
    """The steps that most cells were evaluated at; of two sets as common, the longer."""
    counted = Counter(tuple(sorted(curve)) for curve in points.values())
    steps, _ = max(counted.items(), key=lambda item: (item[1], len(item[0])))
    return list(steps)


def _whole(curve: Mapping[int, float], steps: Sequence[int]) -> bool:
    return all(step in curve for step in steps)


def _scale(values: Mapping[Cell, NDArray]) -> tuple[float, float]:
    low = min(float(curve.min()) for curve in values.values())
    high = max(float(curve.max()) for curve in values.values())
    return low, high


def _group(
    key: tuple[str, float],
    steps: NDArray[np.int64],
    curves: Mapping[int, NDArray],
    scale: tuple[float, float] | None,
    seconds: Mapping[Cell, float],
) -> Group:
    seeds = tuple(sorted(curves))
    stacked = np.stack([curves[seed] for seed in seeds])
    if scale is not None:
        low, high = scale
        stacked = (stacked - low) / (high - low) if high > low else np.zeros_like(stacked)
    spent = [seconds[(*key, seed)] for seed in seeds if (*key, seed) in seconds]
    return Group(*key, seeds, steps, stacked, float(np.mean(spent)) if spent else None)


def _cpu_seconds(rows: list[Row]) -> dict[Cell, float]:
    """CPU seconds of each cell; rows carry the time since the cell began."""
    spent: dict[Cell, float] = {}
    for row in rows:
        cell, seconds = _cell(row), _figure(row, "cpu_seconds")
        if cell is not None and seconds is not None:
            spent[cell] = max(seconds, spent.get(cell, 0.0))
    return spent


def _ordered(keys: Iterable[tuple[str, float]], conditions: Sequence[str]) -> list[tuple[str, float]]:
    """Ratios ascending, conditions as asked for, others behind them as they came."""
    keys = list(dict.fromkeys(keys))
    order = list(dict.fromkeys((*conditions, *(name for name, _ in keys))))
    return sorted(keys, key=lambda key: (key[1], order.index(key[0])))


def _gaps(
    points: Mapping[Cell, Mapping[int, float]], steps: Sequence[int], keys: set[tuple[str, float]], seeds: set[int]
) -> list[str]:
    """A sentence for each condition and ratio that lacks a seed or a part of one; `keys` and `seeds` are expected."""
    seeds = seeds | {cell[2] for cell in points}
    gaps = []
    for name, ratio in sorted(keys | {cell[:2] for cell in points}, key=lambda key: (key[1], key[0])):
        curves = {cell[2]: curve for cell, curve in points.items() if cell[:2] == (name, ratio)}
        cut = sorted(seed for seed, curve in curves.items() if not _whole(curve, steps))
        missing = sorted(seeds - curves.keys())
        if cut:
            gaps.append(f"{cell_text(name, ratio)}: seeds {listed(cut)} lack evaluations and were left out")
        if missing:
            gaps.append(f"{cell_text(name, ratio)}: seeds {listed(missing)} are missing")
    return gaps
