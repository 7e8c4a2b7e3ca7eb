"""The style of every chart, and the colours that stand for those of the page it is on."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

# A file shows these as they are, on white. In a page they become what THEMED says, and base.css tells what that is by
# day and by night; each is a colour that nothing else is drawn with.
INK = "#010203"
GROUND = "#fefefe"
PRAISE, BLAME = "#e8f6ef", "#fdecea"
THEMED = {INK: "currentColor", GROUND: "var(--card)", PRAISE: "var(--praise)", BLAME: "var(--blame)"}

STYLE: Any = {
    "svg.fonttype": "none",  # text stays text: searchable, and in the reader's font
    "svg.hashsalt": "nser",  # the same figures give the same file
    "font.family": "sans-serif",
    "font.size": 11,
    "axes.titlesize": "medium",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.18,
    "grid.color": INK,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def over_steps(axes: Axes) -> None:
    """Environment steps along the horizontal axis, in thousands."""
    axes.set_xlabel("environment steps")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k" if value else "0")
