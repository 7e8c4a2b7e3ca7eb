"""Tables as data, and the same tables in a browser that sorts and filters them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from nser.pages.environment import environment
from nser.pages.sheets import Cell, Column, Row, Sheet, number, share, word
from tests.browser import Page, browser, needs_browser

COLUMNS = (Column("name", number=False), Column("ratio", choose=True), Column("step"))
ROWS = (
    ("a", Cell("1/2", 0.5), number(900, "{:,d}")),
    ("b", Cell("1/4", 0.25), number(None)),
    ("c", Cell("1/4", 0.25), Cell("> 4,000", math.inf)),
    ("d", Cell("2", 2.0), number(1000, "{:,d}")),
    ("e", Cell("10", 10.0), Cell("> 4,000", math.inf)),
)
SHEET = Sheet("made", "rows", COLUMNS, tuple(Row((word(name), ratio, step)) for name, ratio, step in ROWS))
SHOWN = (
    "[...document.querySelectorAll('#made tbody tr')].filter((row) => !row.hidden)"
    ".map((row) => row.cells[0].textContent).join('')"
)


def test_a_sheet_refuses_rows_of_another_width() -> None:
    with pytest.raises(ValueError, match="found 2 cells, expected 1"):
        Sheet("s", "rows", (Column("one"),), (Row((Cell("a"), Cell("b"))),))


def test_what_is_unknown_is_shown_as_such_and_has_no_order() -> None:
    for unknown in (number(None), number(float("nan")), share(None), share(float("nan")), word("")):
        assert (unknown.text, unknown.order) == ("–", None)
    assert (share(0.125).text, share(0.125).order) == ("12.5 %", 0.125)


def opened(page: Path) -> Path:
    """A page with the one table."""
    frame = {"title": "t", "cards": [], "settings": {}, "versions": {}, "command": ""}
    text = (
        '{% extends "base.html" %}{% from "sheet.html" import table %}'
        '{% block content %}{{ table(sheet, "Rows") }}{% endblock %}'
    )
    page.write_text(environment("nser.study").from_string(text).render(sheet=SHEET, **frame))
    return page


def sorted_by(page: Page, column: int) -> list[str]:
    """Names of the rows after one press on a head, and after a second."""
    found = []
    for _ in range(2):
        page.press(f"#made th:nth-child({column}) button", "Enter")
        found.append(page.run(SHOWN))
    return found


@needs_browser
def test_infinity_is_the_largest_equals_keep_their_order_and_the_unknown_stays_last(tmp_path: Path) -> None:
    with browser(tmp_path / "profile") as chrome:
        page = chrome.open(opened(tmp_path / "page.html"))
        assert sorted_by(page, 3) == ["cedab", "adceb"]
        assert page.complaints() == []


@needs_browser
def test_a_list_of_values_is_in_their_order_and_says_them_as_the_table_does(tmp_path: Path) -> None:
    with browser(tmp_path / "profile") as chrome:
        page = chrome.open(opened(tmp_path / "page.html"))
        options = "[...document.querySelector('select').options].map((option) => option.text).join()"
        assert page.run(options) == "all,1/4,1/2,2,10"
        page.run(
            "(() => { const select = document.querySelector('select'); select.selectedIndex = 1;"
            "select.dispatchEvent(new Event('input', { bubbles: true })); })()"
        )
        assert page.run(SHOWN) == "bc"
        assert page.run("document.querySelector('output').textContent") == "2 of 5 rows"
        assert page.complaints() == []
