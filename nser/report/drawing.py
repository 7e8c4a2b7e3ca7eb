"""Charts of a run: their sizes, their legends."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nser.pages.style import INK, STYLE

WIDE, SMALL = (11.5, 3.6), (4.6, 2.7)  # inches; small ones stand side by side, and are read on a telephone


def chart(size: tuple[float, float] = WIDE) -> tuple[Figure, Axes]:
    """An empty figure in the style of pages, and its axes."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        return figure, figure.subplots()


def legend(axes: Axes, *, outside: bool = False) -> None:
    """A legend where anything has a label; outside of the axes it hides nothing."""
    if axes.get_legend_handles_labels()[1]:
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if outside else {"loc": "best"}
        axes.legend(frameon=False, labelcolor=INK, **place)
