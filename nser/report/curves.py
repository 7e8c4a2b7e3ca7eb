"""The pictures of a report, as SVG text that stands inside the page."""

from __future__ import annotations

import io
from collections import defaultdict
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

Line = dict[str, Any]
SHOWN_RULES = 8  # colours that an eye tells apart; the rest is drawn as one
COLOURS = ("#2f6db3", "#d9822b", "#3a9463", "#b5485d", "#7a5aa6", "#8c6d46", "#c05ba1", "#5d7f8c")
STYLE: Any = {
    "svg.fonttype": "none",  # text stays text: searchable, and in the reader's font
    "svg.hashsalt": "nser",  # the same run gives the same page
    "font.family": "sans-serif",
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
}


def learning_curve(metrics: list[Line]) -> str:
    """Training and greedy success over steps, or the return where the environment knows no success."""
    train = [line for line in metrics if line["kind"] == "train"]
    greedy = [line for line in metrics if line["kind"] in ("eval", "done") and "mean_return" in line]
    key = "success" if any(line.get("success") is not None for line in train + greedy) else "mean_return"
    figure, axes = _axes()
    _line(axes, train, key, label="training, last 100 episodes", color=COLOURS[0], alpha=0.6)
    _line(axes, greedy, key, label="greedy, fresh episodes", color=COLOURS[1], marker="o", markersize=5)
    for line in metrics:
        if line["kind"] == "rules" and line["kept"]:
            axes.axvline(line["step"], color=COLOURS[2], alpha=0.8, linestyle=":", label="first rules")
            break
    if key == "success":
        axes.set_ylim(-0.02, 1.02)
    axes.set_ylabel("success" if key == "success" else "return")
    return _finish(figure, axes, "Learning curve: success over environment steps")


def owed_over_time(metrics: list[Line]) -> str | None:
    """Stacked share of the draws that is owed to each rule; None for a run without rules in its replay."""
    lines = [line for line in metrics if line["kind"] == "train" and line.get("owed")]
    if not lines:
        return None
    totals: dict[str, float] = defaultdict(float)
    for line in lines:
        for rule, share in line["owed"].items():
            totals[rule] += share
    named = sorted(totals, key=lambda rule: -totals[rule])[:SHOWN_RULES]
    steps = [line["step"] for line in lines]
    stacks = [[line["owed"].get(rule, 0.0) for line in lines] for rule in named]
    labels = list(named)
    if len(totals) > len(named):
        stacks.append([sum(s for r, s in line["owed"].items() if r not in named) for line in lines])
        labels.append("all others")
    figure, axes = _axes()
    axes.stackplot(steps, stacks, labels=labels, colors=[*COLOURS[: len(named)], "#bbbbbb"], alpha=0.85)
    axes.set_ylabel("share of draws")
    axes.set_ylim(0, max(0.05, 1.1 * max(sum(column) for column in zip(*stacks, strict=True))))
    return _finish(figure, axes, "Share of draws owed to each rule", outside=True)


def _axes() -> tuple[Figure, Axes]:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        return figure, figure.subplots()


def _line(axes: Axes, lines: list[Line], key: str, **style: Any) -> None:
    points = [(line["step"], line[key]) for line in lines if line.get(key) is not None]
    if points:
        axes.plot(*zip(*points, strict=True), **style)


def _finish(figure: Figure, axes: Axes, title: str, *, outside: bool = False) -> str:
    axes.set_xlabel("environment steps")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k" if value else "0")
    if axes.get_legend_handles_labels()[1]:
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if outside else {"loc": "best"}
        axes.legend(frameon=False, **place)
    stream = io.StringIO()
    with mpl.rc_context(STYLE):
        figure.savefig(stream, format="svg", metadata={"Date": None, "Title": title})
    text = stream.getvalue()
    return text[text.index("<svg") :]
