"""The graph of rules as a picture: special cases, contradictions, shared conditions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch
from numpy.typing import NDArray

from nser.files import atomic_path
from nser.pages.figures import inline, picture
from nser.pages.style import BLAME, COLOURS, INK, PRAISE, REST, STYLE
from nser.report.drawing import WIDE
from nser.rules.graph import Edge
from nser.rules.syntax import Rule, blames

STYLES = {
    "subsumes": (COLOURS[0], "-", "-|>", "special case (arrow from the general rule)"),
    "conflicts": (COLOURS[1], "--", "<|-|>", "opposite claims that can hold at once"),
    "feeds": (COLOURS[2], "-", "-|>", "its head is asked for"),
    "shares": (REST, "-", "-", "shared conditions (the more, the thicker)"),
}
TITLE = "Graph of the rules"
FONT = 9  # points
LETTER, LINE, PADDING = 0.085, 0.17, 0.16  # inches: width of a letter and height of a line in that size, around a label
GAP, FOOT = 0.35, 0.4  # inches: between two boxes, and of the legend below
ROUNDS = 500
Points = NDArray[np.float64]


def draw(path: Path, rules: Sequence[Rule], edges: Sequence[Edge]) -> None:
    """Write an .svg or .png; the same rules give the same picture."""
    kind: Literal["svg", "png"] = "svg" if path.suffix == ".svg" else "png"
    with mpl.rc_context(STYLE), atomic_path(path) as beside:
        beside.write_bytes(picture(_figure(rules, edges), kind, TITLE))


def in_page(rules: Sequence[Rule], edges: Sequence[Edge]) -> str:
    """The picture as an `<svg>` element in the page's colours; each rule leads to its place, `rule-NAME`."""
    with mpl.rc_context(STYLE):
        return inline(_figure(rules, edges, linked=True), "graph", TITLE)


def _figure(rules: Sequence[Rule], edges: Sequence[Edge], *, linked: bool = False) -> Figure:
    """Boxes and lines on axes whose unit is an inch, so that what is measured beforehand is what is drawn."""
    sizes, places = box_sizes(rules), box_places(rules, edges)
    low, high = (places - sizes / 2).min(axis=0, initial=0), (places + sizes / 2).max(axis=0, initial=0)
    width, height = np.maximum(high - low, (WIDE[0] - GAP, LINE)) + GAP
    figure = Figure(figsize=(width, height + FOOT))
    axes = figure.add_axes((0, FOOT / (height + FOOT), 1, height / (height + FOOT)))
    axes.axis("off")
    middle = (low + high) / 2
    axes.set_xlim(middle[0] - width / 2, middle[0] + width / 2)
    axes.set_ylim(middle[1] - height / 2, middle[1] + height / 2)
    row = {rule.name: number for number, rule in enumerate(rules)}
    for edge in sorted(edges, key=lambda edge: edge.kind != "shares"):
        ends = [row[edge.source], row[edge.target]]
        _arrow(axes, edge, places[ends], sizes[ends])
    for rule, (x, y) in zip(rules, places, strict=True):
        box = {"boxstyle": f"round,pad={PADDING * 72 / FONT / 2:.2f}", "facecolor": BLAME if blames(rule) else PRAISE}
        label = axes.text(
            x, y, _label(rule), ha="center", va="center", fontsize=FONT, bbox={**box, "edgecolor": REST}, color=INK
        )
        if linked:
            label.set_url(f"#rule-{rule.name}")
    kinds = [kind for kind in STYLES if any(edge.kind == kind for edge in edges)]
    if kinds:
        line_of: Any = Line2D  # its stubs know each dash by its literal
        handles = [line_of([], [], color=STYLES[k][0], ls=STYLES[k][1], label=STYLES[k][3]) for k in kinds]
        figure.legend(handles=handles, loc="lower center", ncols=len(kinds), frameon=False, fontsize=FONT)
    return figure


def _label(rule: Rule) -> str:
    return f"{rule.name}\n{rule.weight:.2f}"


def box_sizes(rules: Sequence[Rule]) -> Points:
    """Width and height [N, 2] in inches of each rule's box."""
    letters = [max(map(len, _label(rule).split("\n"))) for rule in rules]
    return np.array([(LETTER * count + PADDING, 2 * LINE + PADDING) for count in letters]).reshape(-1, 2)


def box_places(rules: Sequence[Rule], edges: Sequence[Edge]) -> Points:
    """Middles [N, 2] in inches of boxes that do not overlap: rules that hang together lie near each other."""
    names = [rule.name for rule in rules]
    if not names:
        return np.empty((0, 2))
    graph = nx.complete_graph(names)  # what is unrelated is held together loosely, or it would fly off
    nx.set_edge_attributes(graph, 0.1, "weight")
    for edge in edges:
        graph[edge.source][edge.target]["weight"] += 0.3 * len(edge.words) if edge.kind == "shares" else 0.6
    found = nx.spring_layout(graph, seed=7, k=2.5 / len(names) ** 0.5, iterations=200)
    half = np.array([WIDE[0] / 2 - 1.5, 0.45 * len(names) ** 0.5]) * max(1.0, (len(names) / 20) ** 0.5)
    return _apart(np.array([found[name] for name in names]) * half, box_sizes(rules) + GAP)


def _apart(places: Points, sizes: Points) -> Points:
    """The places [N, 2] with boxes of these sizes pushed off each other, each pair the shorter way."""
    for _ in range(ROUNDS):
        away = places[:, None] - places[None]  # [N, N, 2]
        room = np.abs(away) - (sizes[:, None] + sizes[None]) / 2
        overlap = (room < -1e-6).all(axis=-1) & ~np.eye(len(places), dtype=bool)
        if not overlap.any():
            break
        shorter = np.eye(2)[room.argmax(axis=-1)]
        order = np.sign(np.arange(len(places))[:, None] - np.arange(len(places)))[..., None]
        side = np.where(away == 0, order, np.sign(away))
        places = places + 0.5 * (overlap[..., None] * shorter * side * -room).sum(axis=1)
    return places


def _arrow(axes: Axes, edge: Edge, ends: Points, sizes: Points) -> None:
    """A line from border to border of two boxes, with middles [2, 2] and sizes [2, 2]."""
    colour, line, arrow, _ = STYLES[edge.kind]
    along = np.abs(ends[1] - ends[0]) / max(float(np.linalg.norm(ends[1] - ends[0])), 1e-9)
    inside = (sizes / 2 / np.maximum(along, 1e-9)).min(axis=1) * 72  # points from each middle to its border
    axes.add_patch(
        FancyArrowPatch(
            tuple(ends[0]),
            tuple(ends[1]),
            arrowstyle=arrow,
            mutation_scale=14,
            shrinkA=inside[0],
            shrinkB=inside[1],
            color=colour,
            linestyle=line,
            linewidth=0.6 + 0.7 * len(edge.words) if edge.kind == "shares" else 1.6,
            connectionstyle="arc3,rad=0" if edge.kind == "shares" else "arc3,rad=0.08",
        )
    )
