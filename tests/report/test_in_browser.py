"""The page in a real browser: its console is silent, tables sort and filter; light, dark, small and printed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nser.report.page import write_report
from nser.runs.directory import RunDirectory
from tests.browser import Browser, Page, browser, needs_browser

pytestmark = needs_browser
SHOWN = "[...document.querySelectorAll('#{table} tbody tr')].filter((row) => !row.hidden)"


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="module")
def report(whole: RunDirectory) -> Path:
    return write_report(whole)


@pytest.fixture
def page(chrome: Browser, report: Path) -> Iterator[Page]:
    opened = chrome.open(report)
    yield opened
    assert opened.complaints() == []


def column(page: Page, table: str, name: str) -> list[str]:
    """What the rows that are shown hold in a column, as it sorts."""
    return page.run(
        f"(() => {{ const at = [...document.querySelectorAll('#{table} th')]"
        f".findIndex((head) => head.textContent.trim() === '{name}');"
        f"return {SHOWN.format(table=table)}.map((row) => row.cells[at].dataset.order ?? ''); }})()"
    )


def head(page: Page, table: str, name: str) -> str:
    """A selector of the button in a column's head."""
    place = page.run(
        f"[...document.querySelectorAll('#{table} th')].findIndex((head) => head.textContent.trim() === '{name}') + 1"
    )
    return f"#{table} th:nth-child({place}) button"


def sorting(page: Page, selector: str) -> str:
    return page.run(f"document.querySelector('{selector}').parentNode.getAttribute('aria-sort')")


@pytest.mark.parametrize("key", ["Enter", " "])
def test_the_keyboard_sorts_by_figures_and_turns_the_order_round(page: Page, key: str) -> None:
    button = head(page, "items", "age")
    before = [float(age) for age in column(page, "items", "age")]
    page.press(button, key)
    assert [float(age) for age in column(page, "items", "age")] == sorted(before, reverse=True) != before
    assert sorting(page, button) == "descending"
    page.press(button, key)
    assert [float(age) for age in column(page, "items", "age")] == sorted(before)
    assert sorting(page, button) == "ascending"


def test_texts_sort_by_the_alphabet_and_what_is_unknown_comes_last(page: Page) -> None:
    button = head(page, "items", "rule")
    for turned in (False, True):
        page.press(button, "Enter")
        rules = column(page, "items", "rule")
        known = [rule for rule in rules if rule]
        assert known == sorted(known, reverse=turned)
        assert "" in rules
        assert rules[: len(known)] == known
    assert page.run("document.querySelectorAll('#items [aria-sort]').length") == 1


def test_words_filter_rows_and_the_count_says_how_many(page: Page) -> None:
    rules = column(page, "rules", "rule")
    page.type("#in-force input[type=search]", rules[0].upper())
    assert column(page, "rules", "rule") == [rule for rule in rules if rules[0] in rule]
    shown = page.run("document.querySelector('#in-force output').textContent")
    assert shown == f"{len([rule for rule in rules if rules[0] in rule])} of {len(rules)} rules"
    page.type("#in-force input[type=search]", " nowhere-to-be-found")
    assert column(page, "rules", "rule") == []


def test_a_chosen_value_filters_and_all_brings_the_rest_back(page: Page) -> None:
    actions = column(page, "items", "action")
    chosen = actions[0]
    choose = (
        "(() => {{ const select = document.querySelectorAll('#replay select')[1]; select.value = '{}';"
        "select.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()"
    )
    page.run(choose.format(chosen))
    assert set(column(page, "items", "action")) == {chosen} < set(actions)
    page.run(choose.format("*"))
    assert column(page, "items", "action") == actions


def test_a_link_to_a_rule_that_is_filtered_out_shows_it(page: Page) -> None:
    page.type("#in-force input[type=search]", "nowhere-to-be-found")
    rule = page.run("document.querySelector('#items td a').textContent")
    click = "document.querySelector('#items td a').click()"
    page.run(f"new Promise((done) => {{ addEventListener('hashchange', () => done()); {click}; }})")
    assert rule in column(page, "rules", "rule")


def test_every_control_has_a_name_and_tables_are_reached_by_keyboard(page: Page) -> None:
    nameless = "[...document.querySelectorAll('{}')].filter((one) => !({})).length"
    assert page.run(nameless.format("input, select", "one.labels.length && one.labels[0].textContent.trim()")) == 0
    assert page.run(nameless.format("button, a", "one.textContent.trim()")) == 0
    assert page.run(nameless.format("svg[role=img]", "one.getAttribute('aria-label')")) == 0
    assert page.run(nameless.format("table", "one.caption && one.caption.textContent.trim()")) == 0
    assert page.run(nameless.format(".wide", "one.tabIndex === 0 && one.getAttribute('aria-label')")) == 0


def test_without_scripts_every_table_stands(chrome: Browser, report: Path) -> None:
    text = report.read_text()
    still = chrome.open(report, scripts=False)
    # Scripts of the page are off; what the protocol asks is answered all the same.
    tree = still.ask("DOM.getDocument", depth=-1)["root"]
    html = still.ask("DOM.getOuterHTML", nodeId=tree["nodeId"])["outerHTML"]
    assert html.count("<tr") == text.count("<tr")
    assert 'class="tools"' not in html
    assert "<button" not in html
    assert still.complaints() == []


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_sticks_out_sideways(page: Page, width: int) -> None:
    page.look(width, 800)
    assert page.run("document.documentElement.scrollWidth") <= width


def test_light_and_dark_are_what_the_reader_asked_for(page: Page, tmp_path: Path) -> None:
    ground = {}
    for scheme in ("light", "dark"):
        page.look(900, 700, scheme)
        picture = np.asarray(Image.open(page.picture(tmp_path / f"{scheme}.png")).convert("L"))
        ground[scheme] = float(np.median(picture))
        assert picture.std() > 10, "an empty page"
    assert ground["light"] > 220
    assert ground["dark"] < 60


def test_print_shows_whole_tables_and_no_controls(page: Page) -> None:
    page.look(1000, 800, media="print")
    style = "getComputedStyle(document.querySelector('{}')).{}"
    assert page.run(style.format(".tools", "display")) == "none"
    assert page.run(style.format("#items", "fontSize")) != page.run(style.format("body", "fontSize"))
    assert page.run("document.querySelector('#items').closest('.wide').scrollHeight - "
                    "document.querySelector('#items').closest('.wide').clientHeight") <= 1  # fmt: skip
    assert page.printed().startswith(b"%PDF")


def test_the_browser_does_complain_of_a_page_that_is_broken(chrome: Browser, tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    broken.write_text("<script>console.error('told'); throw new Error('thrown')</script><img src='none.png'>")
    said = "\n".join(chrome.open(broken).complaints())
    assert "told" in said
    assert "thrown" in said
    assert "none.png" in said


def too_wide(page: Page) -> list[str]:
    """The regions that go on sideways, by their names."""
    wide = "[...document.querySelectorAll('.wide')].filter((one) => one.scrollWidth > one.clientWidth)"
    return page.run(f"{wide}.map((one) => one.getAttribute('aria-label'))")


@pytest.mark.parametrize("width", [320, 400, 1200])
def test_tables_and_the_learning_curve_fit_into_the_window(page: Page, width: int) -> None:
    page.look(width, 800)
    tables = page.run("[...document.querySelectorAll('.wide:has(table)')].map((one) => one.getAttribute('aria-label'))")
    assert not set(too_wide(page)) & {*tables, "Learning curve"}
    curves = (
        "[...document.querySelectorAll('#curves > div svg')].filter((one) => one.getBoundingClientRect().width > 0)"
    )
    letters = "Number.parseFloat(getComputedStyle(one.querySelector('text')).fontSize) * one.getScreenCTM().a"
    assert [size > 8 for size in page.run(f"{curves}.slice(0, 1).map((one) => {letters})")] == [True]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_picture_that_goes_on_sideways_throws_a_shadow_there(page: Page, tmp_path: Path, scheme: str) -> None:
    page.look(400, 800, scheme)
    assert "Graph of the rules" in too_wide(page)
    region = "document.querySelector('#hanging .wide')"
    for place, shaded in (("0", (False, True)), (f"{region}.scrollWidth", (True, False))):
        page.run(f"(() => {{ {region}.scrollIntoView(); {region}.scrollLeft = {place}; }})()")
        left, top, right = page.run(
            f"(({{ left, top, right }}) => [left, top, right])({region}.getBoundingClientRect())"
        )
        shot = np.asarray(Image.open(page.picture(tmp_path / "shot.png")).convert("L")).astype(int)
        row = shot[round(top) + 1]  # above every box
        ground = row[round(left + right) // 2]
        assert (abs(row[round(left)] - ground) > 20, abs(row[round(right) - 1] - ground) > 20) == shaded


def test_in_a_narrow_window_every_figure_of_a_card_has_its_head(page: Page) -> None:
    page.look(400, 800)
    told = page.run("[...document.querySelector('#items tbody tr').cells].map((cell) => cell.dataset.head)")
    assert told == page.run("[...document.querySelectorAll('#items th')].map((head) => head.textContent.trim())")
    shown = "getComputedStyle(document.querySelector('#items td'), '::before').content"
    assert page.run(shown) == f'"{told[0]}"'
    page.press(head(page, "items", "age"), "Enter")
    ages = [float(age) for age in column(page, "items", "age")]
    assert ages == sorted(ages, reverse=True)
