"""A package's own templates stand beside the shared ones, and nothing passes unescaped or unnamed."""

from __future__ import annotations

import pytest
from jinja2 import UndefinedError

from nser.pages.environment import environment

FRAME = {"title": "mine", "cards": [("1", "run", "note")], "settings": {"seed": 3}, "versions": {}, "command": ""}


@pytest.mark.parametrize("package", ["nser.report", "nser.study"])
def test_the_frame_holds_the_package_s_own_style(package: str) -> None:
    found = environment(package)
    text = found.get_template("base.html").render(**FRAME)
    styles = text[text.index("<style>") : text.index("</style>")]
    own = found.get_template("page.css").render()
    assert own.strip() in styles
    assert styles.index(own.strip()) > styles.index(":root"), "it has the last word"
    assert text.lstrip().startswith("<!doctype html>")


def test_values_are_escaped_and_a_missing_one_is_an_error() -> None:
    base = environment("nser.study").get_template("base.html")
    assert "<b>" not in base.render(**FRAME | {"title": "<b>", "settings": {"<b>": ["<b>"]}}).split("<main>")[0]
    assert "&lt;b&gt;, 1" in base.render(**FRAME | {"settings": {"name": ["<b>", 1]}})
    with pytest.raises(UndefinedError, match="title"):
        base.render(**{name: value for name, value in FRAME.items() if name != "title"})
