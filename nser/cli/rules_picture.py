"""The graph of rules as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from pathlib import Path
from typing import Any

from nser.files import atomic_path
from nser.rules.graph import Edge
from nser.rules.syntax import Rule, blames

STYLES = {
    "subsumes": ("#1b6ca8", "-", "-|>", "special case (arrow from the general rule)"),
    "conflicts": ("#c0392b", "--", "<|-|>", "opposite claims that can hold at once"),
    "feeds": ("#b9770e", "-", "-|>", "its head is asked for"),
    "shares": ("#b8c2cc", "-", "-", "shared predicates"),
}


def draw(path: Path, rules: Sequence[Rule], edges: Sequence[Edge]) -> None:
    """Write an .svg or .png; the same rules give the same picture."""
    import matplotlib as mpl
    import networkx as nx
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import FancyArrowPatch

    graph = nx.Graph()
    graph.add_nodes_from(rule.name for rule in rules)
    for edge in edges:
        weight = (graph.get_edge_data(edge.source, edge.target) or {}).get("weight", 0)
        graph.add_edge(edge.source, edge.target, weight=weight + (len(edge.words) if edge.kind == "shares" else 2))
    side = max(5.0, 2.2 * sqrt(len(rules) + 1))
    places = nx.spring_layout(graph, seed=7, k=2.5 / sqrt(len(rules) + 1), iterations=200) if len(rules) else {}
    figure = Figure(figsize=(1.5 * side, side), layout="constrained")
    axes = figure.add_subplot()
    axes.axis("off")
    axes.margins(0.15)
    for edge in sorted(edges, key=lambda edge: edge.kind != "shares"):
        colour, line, arrow, _ = STYLES[edge.kind]
        width = 0.6 + 0.5 * len(edge.words) if edge.kind == "shares" else 1.6
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
                linewidth=width,
                connectionstyle="arc3,rad=0.06",
            )
        )
    for rule in rules:
        x, y = places[rule.name]
        colour = "#fdecea" if blames(rule) else "#e8f6ef"
        box = {"boxstyle": "round,pad=0.4", "facecolor": colour, "edgecolor": "#5d6d7e"}
        axes.scatter([x], [y], alpha=0)
        axes.text(x, y, f"{rule.name}\n{rule.weight:.2f}", ha="center", va="center", fontsize=8, bbox=box)
    kinds = [kind for kind in STYLES if any(edge.kind == kind for edge in edges)]
    if kinds:
        line_of: Any = Line2D  # its stubs know each dash by its literal
        handles = [line_of([], [], color=STYLES[k][0], ls=STYLES[k][1], label=STYLES[k][3]) for k in kinds]
        axes.legend(
            handles=handles, loc="lower center", bbox_to_anchor=(0.5, -0.08), ncols=2, frameon=False, fontsize=8
        )
    with mpl.rc_context({"svg.hashsalt": "nser"}), atomic_path(path) as beside:
        kind = path.suffix.removeprefix(".")
        figure.savefig(beside, format=kind, dpi=130, metadata={"Date": None} if kind == "svg" else None)
