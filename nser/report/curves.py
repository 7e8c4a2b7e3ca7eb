"""What changed while a run went on, drawn over environment steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes

from nser.pages.figures import inline
from nser.pages.style import COLOURS, REST, over_steps
from nser.report.drawing import SMALL, WIDE, chart, legend

Line = dict[str, Any]
SHOWN_RULES = 8  # colours that an eye tells apart; the rest is drawn as one


def learning_curve(metrics: list[Line], *, narrow: bool = False) -> str:
    """Training and greedy success over steps, or the return where the environment knows no success.

    `narrow` is for a telephone: the same in a smaller frame, so that its letters stay as large.
    """
    train, greedy = of_kind(metrics, "train"), of_kind(metrics, "eval", "done")
    key = "success" if knows_success(metrics) else "mean_return"
    figure, axes = chart(SMALL if narrow else WIDE)
    _line(axes, train, key, label="training, last 100 episodes", color=COLOURS[0])
    _line(axes, greedy, key, label="greedy, fresh episodes", color=COLOURS[1], marker="o", markersize=5)
    for line in metrics:
        if line["kind"] == "rules" and line["kept"]:
            axes.axvline(line["step"], color=COLOURS[2], linestyle=":", label="first rules")
            break
    if key == "success":
        axes.set_ylim(-0.02, 1.02)
    axes.set_ylabel("success" if key == "success" else "return")
    over_steps(axes)
    legend(axes)
    name = "learning-narrow" if narrow else "learning"
    return inline(figure, name, f"Learning curve: {axes.get_ylabel()} over environment steps")


def small_curves(metrics: list[Line]) -> list[tuple[str, str]]:
    """(heading, picture) of return, loss, exploration and speed; a curve without a point is left out."""
    train = of_kind(metrics, "train")
    drawn = []
    if knows_success(metrics):
        drawn.append(("Return", _single(train, "mean_return", "return", "mean of 100 episodes")))
    drawn.append(("Loss", _single(train, "loss", "loss", "last batch", log=True)))
    drawn.append(("Exploration", _exploration(train)))
    drawn.append(("Speed", _single(speeds(train), "speed", "speed", "steps a second")))
    return [(heading, picture) for heading, picture in drawn if picture is not None]


def diversity_curves(metrics: list[Line]) -> list[tuple[str, str]]:
    """(heading, picture) of how varied batches were over time."""
    train = of_kind(metrics, "train")
    drawn = [
        ("Effective sample size", _single(train, "effective_size", "effective", "transitions")),
        ("Different episodes in a batch", _single(train, "batch_episodes", "varied", "episodes, newest batch")),
    ]
    return [(heading, picture) for heading, picture in drawn if picture is not None]


def shares_over_time(metrics: list[Line], key: str, name: str, title: str) -> str | None:
    """Stacked shares of each rule, `key` being `owed` or `firing`; None for a run without rules in its replay."""
    lines = [line for line in of_kind(metrics, "train") if line.get(key)]
    if not lines:
        return None
    totals: dict[str, float] = defaultdict(float)
    for line in lines:
        for rule, share in line[key].items():
            totals[rule] += share
    named = sorted(totals, key=lambda rule: -totals[rule])[:SHOWN_RULES]
    stacks = [[line[key].get(rule, 0.0) for line in lines] for rule in named]
    labels, colours = list(named), list(COLOURS[: len(named)])
    if len(totals) > len(named):
        stacks.append([sum(s for r, s in line[key].items() if r not in named) for line in lines])
        labels.append("all others")
        colours.append(REST)
    figure, axes = chart()
    axes.stackplot([line["step"] for line in lines], stacks, labels=labels, colors=colours, alpha=0.85)
    axes.set_ylim(0, max(0.05, 1.1 * max(sum(column) for column in zip(*stacks, strict=True))))
    axes.set_ylabel("share")
    over_steps(axes)
    legend(axes, outside=True)
    return inline(figure, name, title)


def speeds(train: Sequence[Line]) -> list[Line]:
    """Steps a second between two lines of the metrics."""
    found = []
    for before, line in pairwise(train):
        seconds = line.get("seconds", 0.0) - before.get("seconds", 0.0)
        if seconds > 0:
            found.append({"step": line["step"], "speed": (line["step"] - before["step"]) / seconds})
    return found


def of_kind(metrics: list[Line], *kinds: str) -> list[Line]:
    """The lines of these kinds."""
    return [line for line in metrics if line["kind"] in kinds]


def knows_success(metrics: list[Line]) -> bool:
    """Whether episodes of the environment succeed or fail."""
    return any(line.get("success") is not None for line in of_kind(metrics, "train", "eval", "done"))


def _exploration(train: list[Line]) -> str | None:
    figure, axes = chart(SMALL)
    if not _line(axes, train, "epsilon", label="ε", color=COLOURS[0]):
        return None
    guided = [
        {"step": line["step"], "share": (line["guided"] - before["guided"]) / (line["asked"] - before["asked"])}
        for before, line in pairwise(train)
        if "guided" in line and "guided" in before and line["asked"] > before["asked"]
    ]
    _line(axes, guided, "share", label="of these by rules", color=COLOURS[2])
    axes.set_ylim(-0.02, 1.02)
    axes.set_ylabel("share of actions")
    over_steps(axes)
    legend(axes)
    return inline(figure, "exploration", "Share of random actions, and share of these that rules chose")


def _single(lines: list[Line], key: str, name: str, unit: str, *, log: bool = False) -> str | None:
    figure, axes = chart(SMALL)
    if not _line(axes, lines, key, color=COLOURS[0]):
        return None
    if log and all(line[key] > 0 for line in lines if line.get(key) is not None):
        axes.set_yscale("log")
    axes.set_ylabel(unit)
    over_steps(axes)
    return inline(figure, name, f"{key.replace('_', ' ')} over environment steps")


def _line(axes: Axes, lines: list[Line], key: str, **style: Any) -> bool:
    """Draw what is known of `key`, and say whether anything is."""
    points = [(line["step"], line[key]) for line in lines if line.get(key) is not None]
    if points:
        axes.plot(*zip(*points, strict=True), **style)
    return bool(points)
