"""A time line of rules: from which step to which each was in force."""

from __future__ import annotations

from collections.abc import Sequence

from nser.pages.figures import inline
from nser.pages.style import COLOURS, REST, over_steps
from nser.report.drawing import WIDE, chart
from nser.report.history import Life

SHOWN = 30  # rows; of more rules the newest are drawn


def time_line(lives: Sequence[Life], last_step: int) -> str | None:
    """One bar a rule, grey once it left, with a dot where it changed; None where nothing is known."""
    shown = list(lives)[-SHOWN:]
    if not shown:
        return None
    figure, axes = chart((WIDE[0], 1.0 + 0.26 * len(shown)))
    for row, life in enumerate(shown):
        bars = [(start, max((last_step if end is None else end) - start, 0)) for start, end in life.stretches]
        axes.broken_barh(bars, (row - 0.32, 0.64), facecolors=COLOURS[0] if life.alive else REST)
        axes.plot(life.changes, [row] * len(life.changes), "o", color=COLOURS[1], markersize=5)
    axes.set_yticks(range(len(shown)), [life.rule for life in shown], fontsize=9)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlim(0, max(last_step, 1) * 1.01)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    over_steps(axes)
    return inline(figure, "lives", "Time line of the rules: from which step to which each was in force")
