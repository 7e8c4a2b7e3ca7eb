"""The pictures of a study: curves with their intervals, and every seed's area beside the IQM.

Colours are those of every page (`nser.pages.style`); each line also carries its name, so that no legend has to be
matched by colour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nser.pages.style import COLOURS, GROUND, INK, REST, STYLE, over_steps
from nser.study.curves import Group, Results
from nser.study.statistics import band
from nser.study.table import Line, Table
from nser.study.wording import estimate_text, updates_text

DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)))  # where there are more conditions than colours
CONTROLS: Any = {  # what others are measured against: in ink and in grey
    "uniform": {"color": REST, "linestyle": "-"},
    "per": {"color": INK, "linestyle": "-"},
    "placebo": {"color": REST, "linestyle": DASHES[1]},
}
LABEL_GAP = 0.052  # least distance of two labels, in heights of a panel


def draw_curves(results: Results) -> Figure:
    """IQM over seeds of each evaluation with its pointwise 95 % interval, a panel for each update ratio."""
    ratios = results.ratios
    columns = min(2, len(ratios))
    rows = -(-len(ratios) // columns)
    looks = _looks(results.conditions)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.6 * columns, 4.2 * rows), layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False, sharey=True)
        for panel in panels.flat[len(ratios) :]:
            panel.set_visible(False)
        for panel, ratio in zip(panels.flat, ratios, strict=False):
            _curves(panel, results.at(ratio), results.steps, looks)
            panel.set_title(updates_text(ratio))
            panel.set_ylabel(f"greedy {results.measure}")
    return figure


def draw_areas(results: Results, table: Table) -> Figure:
    """The area of every seed as a dot, and the IQM with its 95 % interval above them; a panel for each ratio."""
    ratios = results.ratios
    names = results.conditions
    looks = _looks(names)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.8, 0.7 + sum(0.3 * len(results.at(r)) + 0.6 for r in ratios)), layout="constrained")
        heights = [len(results.at(ratio)) for ratio in ratios]
        panels = figure.subplots(len(ratios), 1, squeeze=False, sharex=True, height_ratios=heights)
        for panel, ratio in zip(panels.flat, ratios, strict=True):
            lines = {line.condition: line for line in table.lines if line.ratio == ratio}
            _areas(panel, results.at(ratio), lines, looks)
            panel.set_title(updates_text(ratio))
        panels.flat[-1].set_xlabel(f"area under the curve of greedy {results.measure}: every seed, IQM, 95 % interval")
    return figure


def _looks(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Colour and dashes of each condition, the same in every panel."""
    looks: dict[str, dict[str, Any]] = {}
    coloured = [name for name in names if name not in CONTROLS]
    for number, name in enumerate(coloured):
        looks[name] = {
            "color": COLOURS[number % len(COLOURS)],
            "linestyle": DASHES[number // len(COLOURS) % len(DASHES)],
        }
    looks.update(CONTROLS)
    return looks


def _curves(axes: Axes, groups: Sequence[Group], steps: np.ndarray, looks: Mapping[str, Mapping[str, Any]]) -> None:
    ends: dict[str, tuple[float, float]] = {}
    for group in groups:
        middle, low, high = band(group.curves)
        look = looks[group.condition]
        axes.plot(steps, middle, linewidth=1.8, marker="o" if len(steps) == 1 else "", **look)
        if len(group.seeds) > 1:
            axes.fill_between(steps, low, high, color=look["color"], alpha=0.8 / (4 + len(groups)), linewidth=0)
        ends[group.condition] = float(middle[-1]), float(middle.mean())
    axes.set_ylim(-0.03, 1.03)
    over_steps(axes)
    _label_ends(axes, ends, looks)


def _label_ends(axes: Axes, ends: Mapping[str, tuple[float, float]], looks: Mapping[str, Mapping[str, Any]]) -> None:
    """Write each line's name at its end, moved up or down where names would lie on each other.

    `ends` are (last value, mean) of each line; lines that end together are named in the order of their means.
    """
    low, high = axes.get_ylim()
    names = sorted(ends, key=ends.__getitem__)
    places = [(ends[name][0] - low) / (high - low) for name in names]
    for name, place, height in zip(names, places, spread(places, LABEL_GAP), strict=True):
        colour = looks[name]["color"]
        axes.annotate(
            name,
            xy=(1.0, place),
            xytext=(1.04, height),
            xycoords="axes fraction",
            textcoords="axes fraction",
            va="center",
            fontsize=9,
            color=colour,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.7, "relpos": (0, 0.5), "shrinkA": 1},
            annotation_clip=False,
        )


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Ascending places in [0, 1], moved as little as need be until neighbours lie `gap` apart.

    Places that would touch form a block, centred on the mean of what they wanted and kept within [0, 1]. Where there
    is no room for all, they share the room evenly.

    >>> [round(place, 3) for place in spread([0.1, 0.5, 0.5], 0.2)]
    [0.1, 0.4, 0.6]
    >>> spread([1.0, 1.0], 0.25)
    [0.75, 1.0]
    """
    gap = min(gap, 1 / max(1, len(places) - 1))
    blocks: list[list[float]] = []
    for wanted in places:
        blocks.append([wanted])
        while len(blocks) > 1 and _bottom(blocks[-1], gap) < _bottom(blocks[-2], gap) + gap * len(blocks[-2]):
            upper = blocks.pop()
            blocks[-1] += upper
    return [_bottom(block, gap) + gap * place for block in blocks for place in range(len(block))]


def _bottom(block: Sequence[float], gap: float) -> float:
    height = gap * (len(block) - 1)
    return min(max(sum(block) / len(block) - height / 2, 0.0), 1.0 - height)


def _areas(
    axes: Axes, groups: Sequence[Group], lines: Mapping[str, Line], looks: Mapping[str, Mapping[str, Any]]
) -> None:
    for place, group in enumerate(groups):
        area, colour = lines[group.condition].area, looks[group.condition]["color"]
        axes.scatter(group.areas, _scattered(place, len(group.areas)), s=9, color=colour, alpha=0.5, linewidths=0)
        if area.low is not None and area.high is not None:
            axes.plot([area.low, area.high], [place, place], color=colour, linewidth=3, solid_capstyle="butt")
        axes.plot(area.value, place, marker="D", markersize=6, color=colour, markeredgecolor=GROUND)
        axes.annotate(
            estimate_text(area),
            xy=(1.01, place),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=9,
            annotation_clip=False,
        )
    axes.set_yticks(range(len(groups)), [group.condition for group in groups])
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.set_xlim(-0.02, 1.02)
    axes.grid(visible=False, axis="y")  # a line through each interval would hide it


def _scattered(place: int, seeds: int) -> np.ndarray:
    """Heights of the dots of one condition: a fixed pattern, so that equal areas do not hide each other."""
    golden = (1 + np.arange(seeds)) * 0.618_034 % 1
    return place + 0.56 * (golden - 0.5)
