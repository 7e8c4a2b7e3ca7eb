"""One palette for every chart, told apart by every reader in either scheme."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import nser.pages
from nser.pages.style import COLOURS, GROUND, INK, REST, THEMED
from nser.report.curves import shares_over_time
from nser.study import plot

# What the common forms of colour blindness make of linear RGB (Machado, Oliveira and Fernandes 2009, severity 1).
SEEN_BY = {
    "all cones": np.eye(3),
    "no red": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "no green": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
    "no blue": np.array([[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]]),
}
# Linear RGB to OKLab (Ottosson 2020), in which equal distances look alike.
CONES = np.array([[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]])
LAB = np.array([[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]])
APART, STANDS_OUT = 0.085, 3.0
BRIGHTNESS = np.array([0.2126, 0.7152, 0.0722])
CSS = (Path(nser.pages.__file__).parent / "base.css").read_text()


def linear(colours: list[str]) -> NDArray[np.float64]:
    """Linear RGB [N, 3] of hexadecimal colours."""
    values = np.array([[int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)] for colour in colours])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def in_page(scheme: str) -> tuple[list[str], str]:
    """The colours of series with REST, and the ground, as base.css declares them."""
    declared = CSS[: CSS.index("@media")] if scheme == "light" else CSS[CSS.index("@media") : CSS.index("* {")]
    values = dict(re.findall(r"--([\w-]+): (#\w{6})", declared))
    return [values[THEMED[colour][len("var(--") : -1]] for colour in (*COLOURS, REST)], values["card"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("eyes", SEEN_BY)
def test_any_two_colours_lie_apart_for_every_reader(scheme: str, eyes: str) -> None:
    colours, _ = in_page(scheme)
    seen = np.cbrt(np.clip(linear(colours) @ SEEN_BY[eyes].T, 0, 1) @ CONES.T) @ LAB.T
    distances = np.linalg.norm(seen[:, None] - seen[None], axis=-1) + np.eye(len(colours))
    one, other = np.unravel_index(distances.argmin(), distances.shape)
    assert distances.min() >= APART, (colours[one], colours[other])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_colour_stands_out_from_its_ground(scheme: str) -> None:
    colours, ground = in_page(scheme)
    bright, behind = linear(colours) @ BRIGHTNESS + 0.05, (linear([ground]) @ BRIGHTNESS + 0.05).item()
    contrast = np.maximum(bright, behind) / np.minimum(bright, behind)
    assert contrast.min() >= STANDS_OUT, colours[int(contrast.argmin())]


def test_a_file_has_the_colours_of_a_light_page() -> None:
    assert in_page("light")[0] == [*COLOURS, REST]


def test_runs_and_studies_draw_with_the_one_palette() -> None:
    owed = {f"rule {number}": 0.1 for number in range(len(COLOURS) + 1)}
    drawn = shares_over_time([{"kind": "train", "step": step, "owed": owed} for step in (0, 1)], "owed", "owed", "x")
    assert drawn is not None
    assert {f"var(--series-{number})" for number in range(1, 9)} | {"var(--rest)"} <= set(
        re.findall(r"var\([^)]+\)", drawn)
    )
    looks = plot._looks([f"condition {number}" for number in range(len(COLOURS))] + list(plot.CONTROLS))
    assert {look["color"] for look in looks.values()} == {*COLOURS, REST, INK}
    assert GROUND not in COLOURS
