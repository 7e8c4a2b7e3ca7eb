"""Figures as SVG text that stands inside a page: in its font, and in its colours by day and by night."""

from __future__ import annotations

import io
import re
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# They read on a light ground and on a dark one.
COLOURS = ("#2f78c4", "#d9822b", "#3a9463", "#c0506a", "#8a68b8", "#97784f", "#c05ba1", "#5f8c9f")
REST = "#8f979f"
# Drawn with colours of their own that stand for the page's: what the reader's scheme makes of them is in page.css.
INK = "#010203"
THEMED = {INK: "currentColor", "#e8f6ef": "var(--praise)", "#fdecea": "var(--blame)"}
STYLE: Any = {
    "svg.fonttype": "none",  # text stays text: searchable, and in the reader's font
    "svg.hashsalt": "nser",  # the same run gives the same page
    "font.family": "sans-serif",
    "font.size": 11,
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
WIDE, SMALL = (11.5, 3.6), (4.6, 2.7)  # inches; small ones stand side by side, and are read on a telephone


def chart(size: tuple[float, float] = WIDE) -> tuple[Figure, Axes]:
    """An empty figure in the page's style, and its axes."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        return figure, figure.subplots()


def over_steps(axes: Axes) -> None:
    """Environment steps along the horizontal axis, in thousands."""
    axes.set_xlabel("environment steps")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k" if value else "0")


def legend(axes: Axes, *, outside: bool = False) -> None:
    """A legend where anything has a label; outside of the axes it hides nothing."""
    if axes.get_legend_handles_labels()[1]:
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if outside else {"loc": "best"}
        axes.legend(frameon=False, labelcolor=INK, **place)


def inline(figure: Figure, name: str, title: str) -> str:
    """The figure as an `<svg>` element whose ids begin with `name`; `title` is what a screen reader says of it."""
    stream = io.StringIO()
    with mpl.rc_context(STYLE):
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None, "Title": title})
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r'(\bid="|href="#|url\(#)(?!rule-)', rf"\g<1>{name}-", text)
    for drawn, themed in THEMED.items():
        text = text.replace(drawn, themed)
    return text.replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1)
