"""How old the items are that are stored, and how old those that are drawn."""

from __future__ import annotations

import numpy as np

from nser.pages.figures import inline
from nser.pages.style import COLOURS, REST
from nser.replay.explain import Explanation
from nser.report.drawing import SMALL, chart, legend

BINS = 24


def ages(explained: Explanation) -> str:
    """Histogram of the ages of all items, and of draws: what the law makes of age."""
    edges = np.linspace(0, max(int(explained.age.max()), 1), BINS + 1)
    stored, _ = np.histogram(explained.age, edges)
    drawn, _ = np.histogram(explained.age, edges, weights=explained.probability)
    figure, axes = chart(SMALL)
    axes.stairs(stored / max(stored.sum(), 1), edges, fill=True, color=REST, alpha=0.45, label="stored")
    axes.stairs(drawn, edges, color=COLOURS[0], linewidth=1.8, label="drawn")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("age in gradient steps")
    axes.set_ylabel("share")
    legend(axes)
    return inline(figure, "ages", "Ages of the stored items and of the drawn ones")
