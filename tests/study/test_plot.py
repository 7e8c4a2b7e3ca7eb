from __future__ import annotations

import itertools
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.text import Annotation

from nser.pages.figures import inline, picture
from nser.study.curves import Results, collect
from nser.study.plot import LABEL_GAP, draw_areas, draw_curves, spread
from nser.study.table import make_table
from tests.study.rows import sample

NAMES = (
    "uniform",
    "per",
    "placebo",
    "hand",
    "induced",
    "induced+explore",
    "wrong",
    "freshper",
    "vlm-rb",
    "wrong+explore",
)


def results(seeds: int = 3) -> Results:
    levels = dict.fromkeys(NAMES, 1.0)  # all end at the top: the worst case for names at the ends
    return collect(sample(levels, seeds) + sample(levels, seeds, ratio=0.5) + sample(levels, seeds, ratio=1.0))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0, 0.2))
def test_spread_keeps_order_room_and_bounds(wanted: list[float], gap: float) -> None:
    places = sorted(wanted)
    found = spread(places, gap)
    fits = min(gap, 1 / max(1, len(places) - 1))
    assert all(b - a >= fits - 1e-9 for a, b in itertools.pairwise(found))
    assert all(-1e-9 <= place <= 1 + 1e-9 for place in found)


def test_spread_moves_nothing_without_need() -> None:
    assert spread([0.1, 0.5, 0.9], 0.2) == [0.1, 0.5, 0.9]


def test_names_at_the_ends_of_curves_do_not_lie_on_each_other() -> None:
    figure = draw_curves(results())
    panels = [panel for panel in figure.axes if panel.get_visible()]
    assert len(panels) == 3
    for panel in panels:
        names = [text for text in panel.texts if isinstance(text, Annotation)]
        assert {name.get_text() for name in names} == set(NAMES)
        heights = sorted(float(name.xyann[1]) for name in names)
        assert all(b - a >= LABEL_GAP - 1e-9 for a, b in itertools.pairwise(heights))
        assert len(panel.collections) == len(NAMES), "a band each"


def test_no_two_conditions_look_alike() -> None:
    figure = draw_curves(results())
    looks = {(line.get_color(), str(line.get_linestyle())) for line in figure.axes[0].lines}
    assert len(looks) == len(NAMES)


def test_areas_show_every_seed_and_each_interval() -> None:
    found = results(seeds=5)
    figure = draw_areas(found, make_table(found))
    panel = figure.axes[0]
    assert sum(np.shape(dots.get_offsets())[0] for dots in panel.collections) == 5 * len(NAMES)
    assert [tick.get_text() for tick in panel.get_yticklabels()] == list(NAMES)


@pytest.mark.parametrize("seeds", [1, 2])
def test_a_seed_or_two_can_be_drawn(seeds: int) -> None:
    found = collect(sample({"uniform": 0.5, "per": 0.2}, seeds))
    for figure in (draw_curves(found), draw_areas(found, make_table(found))):
        width, height = struct.unpack(">II", picture(figure, "png", "x")[16:24])
        assert width > 500
        assert height > 80


def test_the_same_study_gives_the_same_picture() -> None:
    found = collect(sample({"uniform": 0.5, "per": 0.2}, 3))
    first, second = (inline(draw_curves(found), "curves", "x") for _ in range(2))
    assert first == second
    assert first.startswith("<svg")
    assert "per" in first
