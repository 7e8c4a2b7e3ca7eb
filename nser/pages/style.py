"""The style of every chart, its colours, and those of the page that they stand for.

Series take their hues from Okabe and Ito (2008), with lightness chosen so that any two, and REST, also lie apart for
readers with the common forms of colour blindness, and each stands out from its ground at 3:1. A page in dark has
lightnesses of its own; `base.css` holds both.
"""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

# A file shows these as they are, on white. In a page they become what THEMED says, and base.css tells what that is by
# day and by night; each is a colour that nothing else is drawn with.
INK = "#010203"
GROUND = "#fefefe"
PRAISE, BLAME = "#e5f0fb", "#fdebdc"
COLOURS = ("#2555b0", "#c0560d", "#168a5f", "#a65ea3", "#3a9ae0", "#c3890a", "#744b06", "#4e2f82")
REST = "#8f949a"  # what is not singled out
THEMED = {
    INK: "currentColor",
    GROUND: "var(--card)",
    PRAISE: "var(--praise)",
    BLAME: "var(--blame)",
    **{colour: f"var(--series-{number})" for number, colour in enumerate(COLOURS, start=1)},
    REST: "var(--rest)",
}

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
