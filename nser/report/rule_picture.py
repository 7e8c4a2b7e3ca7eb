"""The graph of rules as a picture: special cases, contradictions, shared predicates."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import networkx as nx
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch

from nser.files import atomic_path
from nser.pages.figures import inline, picture
from nser.pages.style import BLAME, COLOURS, INK, PRAISE, REST, STYLE
from nser.rules.graph import Edge
from nser.rules.syntax import Rule, blames

STYLES = {
    "subsumes": (COLOURS[0], "-", "-|>", "special case (arrow from the general rule)"),
    "conflicts": (COLOURS[1], "--", "<|-|>", "opposite claims that can hold at once"),
    "feeds": (COLOURS[2], "-", "-|>", "its head is asked for"),
    "shares": (REST, "-", "-", "shared predicates"),
}
TITLE = "Graph of the rules"
Places = dict[str, tuple[float, float]]


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
    side = max(4.0 if linked else 5.0, 2.2 * sqrt(len(rules) + 1) * (0.75 if linked else 1.0))
    places = _places(rules, edges)
    figure = Figure(figsize=(1.5 * side, side), layout="constrained")
    axes = figure.add_subplot()
    axes.axis("off")
    axes.margins(0.15)
    for edge in sorted(edges, key=lambda edge: edge.kind != "shares"):
        _arrow(axes, edge, places)
    for rule in rules:
        x, y = places[rule.name]
        box = {"boxstyle": "round,pad=0.4", "facecolor": BLAME if blames(rule) else PRAISE, "edgecolor": REST}
        axes.scatter([x], [y], alpha=0)
        label = axes.text(
            x, y, f"{rule.name}\n{rule.weight:.2f}", ha="center", va="center", fontsize=8, bbox=box, color=INK
        )
        if linked:
            label.set_url(f"#rule-{rule.name}")
    kinds = [kind for kind in STYLES if any(edge.kind == kind for edge in edges)]
    if kinds:
        line_of: Any = Line2D  # its stubs know each dash by its literal
        handles = [line_of([], [], color=STYLES[k][0], ls=STYLES[k][1], label=STYLES[k][3]) for k in kinds]
        axes.legend(
            handles=handles, loc="lower center", bbox_to_anchor=(0.5, -0.08), ncols=2, frameon=False, fontsize=8
        )
    return figure


def _places(rules: Sequence[Rule], edges: Sequence[Edge]) -> Places:
    if not rules:
        return {}
    graph = nx.Graph()
    graph.add_nodes_from(rule.name for rule in rules)
    for edge in edges:
        weight = (graph.get_edge_data(edge.source, edge.target) or {}).get("weight", 0)
        graph.add_edge(edge.source, edge.target, weight=weight + (len(edge.words) if edge.kind == "shares" else 2))
    found = nx.spring_layout(graph, seed=7, k=2.5 / sqrt(len(rules) + 1), iterations=200)
    return {name: (float(x), float(y)) for name, (x, y) in found.items()}


def _arrow(axes: Axes, edge: Edge, places: Places) -> None:
    colour, line, arrow, _ = STYLES[edge.kind]
    axes.add_patch(
        FancyArrowPatch(
            places[edge.source],
            places[edge.target],
            arrowstyle=arrow,
            mutation_scale=14,
            shrinkA=16,
            shrinkB=16,
            color=colour,
            linestyle=line,
            linewidth=0.6 + 0.5 * len(edge.words) if edge.kind == "shares" else 1.6,
            connectionstyle="arc3,rad=0.06",
        )
    )
