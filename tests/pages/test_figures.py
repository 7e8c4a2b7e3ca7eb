"""Figures inside a page take its colours and keep their ids apart; as files they stand on white."""

from __future__ import annotations

import io
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

import nser.pages
from nser.pages.figures import inline, picture
from nser.pages.style import GROUND, INK, STYLE, THEMED, over_steps


def figure() -> Figure:
    """A line in ink over steps, and a text that leads to a place of the page."""
    with mpl.rc_context(STYLE):
        drawn = Figure(figsize=(4, 3))
        axes = drawn.subplots()
        axes.plot([0, 5000], [0, 1], color=INK, marker="D", markeredgecolor=GROUND)
        axes.text(0, 1, "elsewhere").set_url("#elsewhere")
        over_steps(axes)
    return drawn


def test_a_figure_in_a_page_takes_the_colours_of_the_page() -> None:
    text = inline(figure(), "one", "A line")
    assert text.startswith('<svg role="img" aria-label="A line" ')
    assert "currentColor" in text
    assert "var(--card)" in text
    assert not [colour for colour in THEMED if colour in text]
    assert "#ffffff" not in text, "a ground of its own"


def test_ids_of_two_figures_are_apart_and_what_leads_out_of_a_figure_stays() -> None:
    texts = {name: inline(figure(), name, "A line") for name in ("one", "two")}
    ids = {name: re.findall(r'\bid="([^"]+)"', text) for name, text in texts.items()}
    for name, text in texts.items():
        assert len(ids[name]) > 10
        assert all(one.startswith(f"{name}-") for one in ids[name])
        inner = re.findall(r'(?:href="#|url\(#)([^")]+)', text)
        assert "elsewhere" in inner
        assert set(inner) - {"elsewhere"} <= set(ids[name])
        assert len(set(inner)) > 2
    assert not set(ids["one"]) & set(ids["two"])


def test_a_title_is_no_html() -> None:
    assert 'aria-label="&quot;&lt;b&gt;"' in inline(figure(), "one", '"<b>')


def test_files_stand_on_white_and_the_same_figure_gives_the_same_one() -> None:
    pixels = np.asarray(Image.open(io.BytesIO(picture(figure(), "png", "A line"))).convert("RGBA"))
    assert (pixels[0, 0] == 255).all()
    assert (pixels[..., 3] == 255).all()
    assert pixels[..., :3].min() < 10, "ink"
    svg = picture(figure(), "svg", "A line")
    assert svg == picture(figure(), "svg", "A line")
    assert b"fill: #ffffff" in svg
    assert b"var(" not in svg
    assert b"<dc:title>A line</dc:title>" in svg
    assert b">5k</text>" in svg, "text stays text"


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_the_page_says_what_each_colour_is_in_every_scheme(scheme: str) -> None:
    css = (Path(nser.pages.__file__).parent / "base.css").read_text()
    declared = {
        "light": css[: css.index("@media")],
        "dark": css[css.index("prefers-color-scheme: dark") : css.index("* {")],
        "print": css[css.index("@media print") :],
    }[scheme]
    for themed in THEMED.values():
        if themed.startswith("var("):
            assert f"{themed[4:-1]}: #" in declared, themed
