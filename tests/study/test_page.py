"""The outputs of a study and its page, which is opened in a browser where one is installed."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nser.study.errors import NoResultsError, NoStudyError
from nser.study.outputs import write_outputs
from tests.browser import browser, needs_browser
from tests.study.rows import sample, study

LEVELS = {"uniform": 0.3, "per": 0.3, "induced": 0.9}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = study(tmp_path_factory.mktemp("study") / "mine", sample(LEVELS, 12))
    write_outputs(path)
    return path


class Page(HTMLParser):
    """Texts of cells, and addresses that a page loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.loads: list[str] = []
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag == "td"
        addresses = [value or "" for name, value in attrs if name == "src" or (tag == "link" and name == "href")]
        self.loads += [address for address in addresses if not address.startswith("data:")]

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.cells.append(data)
            self.inside = False


def test_everything_is_written(made: Path) -> None:
    for name in ("table.md", "table.json", "curves.png", "curves.svg", "areas.png", "areas.svg", "index.html"):
        assert (made / name).stat().st_size > 200, name
    assert not list(made.glob(".*.part"))


def test_the_page_holds_figures_settings_and_command_and_loads_nothing(made: Path) -> None:
    text = (made / "index.html").read_text()
    page = Page(text)
    assert page.loads == []
    assert text.count("<svg") == 2
    table = json.loads((made / "table.json").read_text())
    assert page.cells.count("induced") == 1 + 2, "a line, and a comparison with each baseline"
    assert page.cells.count("better") == sum(one["difference"]["verdict"] == "better" for one in table["comparisons"])
    for word in (
        *LEVELS,
        "eval_episodes",
        "numpy",
        "CPU minutes in all",
        json.loads((made / "study.json").read_text())["command"],
    ):
        assert word in text.replace("&#39;", "'"), word
    for remark in table["remarks"]:
        assert remark in text


def test_a_name_is_no_html(tmp_path: Path) -> None:
    path = study(tmp_path / "<script>alert(1)<", sample(LEVELS, 2))
    write_outputs(path)
    assert "<script>alert" not in (path / "index.html").read_text()


def test_rows_are_also_parquet(made: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = parquet.read_table(made / "evaluations.parquet").to_pylist()
    assert rows == [json.loads(line) for line in (made / "evaluations.jsonl").read_text().splitlines()]


def test_a_cut_line_is_left_out_and_told(tmp_path: Path) -> None:
    path = study(tmp_path / "cut", sample(LEVELS, 12))
    file = path / "evaluations.jsonl"
    file.write_text(file.read_text()[:-40])
    table = write_outputs(path)
    assert "lines of evaluations.jsonl that could not be read and were left out: 1" in table.remarks
    assert "induced at 1/4: seeds 11 lack evaluations and were left out" in table.remarks
    assert {line.condition: line.seeds for line in table.lines} == {"uniform": 12, "per": 12, "induced": 11}


def test_what_is_not_run_yet_is_named(tmp_path: Path) -> None:
    path = study(tmp_path / "half", sample({"uniform": 0.3}, 12), conditions=("uniform", "hand"), seeds=14)
    table = write_outputs(path)
    assert "uniform at 1/4: seeds 12, 13 are missing" in table.remarks
    assert "hand at 1/4: seeds 0-13 are missing" in table.remarks


def test_no_study_and_an_empty_one_are_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(NoStudyError, match=r"found no study\.json"):
        write_outputs(tmp_path)
    with pytest.raises(NoResultsError, match="found no evaluations yet"):
        write_outputs(study(tmp_path / "empty", []))


NAMES = (
    "[...document.querySelectorAll('#conditions tbody tr')].filter((row) => !row.hidden)"
    ".map((row) => row.cells[1].textContent).join()"
)


@needs_browser
def test_a_browser_sorts_and_filters_the_table_and_its_console_is_silent(made: Path, tmp_path: Path) -> None:
    with browser(tmp_path) as chrome:
        page = chrome.open(made / "index.html")
        found = []
        for _ in range(2):
            page.press("#conditions th:nth-child(2) button", "Enter")
            found.append(page.run(NAMES))
        assert found == ["induced,per,uniform", "uniform,per,induced"]
        page.type(".sheet:has(#conditions) input[type=search]", "UNI")
        assert page.run(NAMES) == "uniform"
        assert page.complaints() == []


@needs_browser
def test_charts_take_the_ink_and_the_ground_of_the_scheme(made: Path, tmp_path: Path) -> None:
    fill = "getComputedStyle(document.querySelector('svg text')).fill"
    ink = {"light": "rgb(29, 39, 51)", "dark": "rgb(221, 227, 234)"}
    with browser(tmp_path / "profile") as chrome:
        page = chrome.open(made / "index.html")
        for scheme, expected in ink.items():
            page.look(900, 500, scheme)
            assert page.run(fill) == expected
            page.run("document.querySelector('svg').scrollIntoView()")
            shot = np.asarray(Image.open(page.picture(tmp_path / f"{scheme}.png")).convert("L"))
            assert (np.median(shot) > 128) == (scheme == "light"), "the chart has a ground of its own"


@needs_browser
@pytest.mark.parametrize("width", [320, 1280])
def test_nothing_sticks_out_sideways(made: Path, tmp_path: Path, width: int) -> None:
    with browser(tmp_path) as chrome:
        page = chrome.open(made / "index.html")
        page.look(width, 800)
        assert page.run("document.documentElement.scrollWidth") <= width
