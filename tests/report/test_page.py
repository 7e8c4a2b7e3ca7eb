"""The page of a run as text: whole, from nowhere else, and honest about what is not there."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

from nser.report.cost import Calls, calls_of, costs_of
from nser.report.curves import speeds
from nser.report.page import render
from nser.runs.directory import RunDirectory
from tests.report.runs import made_up, metrics_line, ruleset

COST = {"environment": 1.0, "acting": 2.0, "learning": 5.0, "scoring": 0.0, "models": 4.0}


class Page(HTMLParser):
    """Addresses that a page loads, its ids, and where its links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        address = (named.get("href") or named.get("xlink:href")) if tag in ("link", "image") else named.get("src")
        self.loads += [address] if address and not address.startswith("data:") else []
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.links += [value for name, value in attrs if tag == "a" and name.endswith("href") and value]


def test_a_whole_run_is_on_one_page_that_loads_nothing(whole: RunDirectory) -> None:
    text = render(whole)
    page = Page(text)
    assert page.loads == []
    assert len(page.ids) == len(set(page.ids)), "an id twice"
    for link in page.links:
        assert link.startswith("#"), link
        assert link[1:] in page.ids, link
    assert text.count("<svg ") >= 10
    for word in (
        "Rules in force",
        "History of the rules",
        "Ages",
        "Different episodes in a batch",
        "What each part cost",
    ):
        assert word in text
    assert "Not shown" not in text
    ruleset = whole.newest_rules()
    assert ruleset is not None
    for rule in ruleset.rules:
        assert f'id="rule-{rule.name}"' in text


def test_a_run_without_rules_or_checkpoint_says_what_is_missing(tmp_path: Path) -> None:
    run = made_up(tmp_path / "run", [], replay="uniform", explore="epsilon")
    text = render(run)
    assert "Not shown: the run has not written a checkpoint yet." in text
    assert "Rules in force" not in text
    run.checkpoint.parent.mkdir()
    run.checkpoint.write_bytes(b"PK cut")
    assert "read checkpoint" in render(run)


def test_history_is_told_without_a_checkpoint(tmp_path: Path) -> None:
    text = render(made_up(tmp_path / "run"))
    assert "nobody proposed it again (D702, by data)" in text
    assert "rule files that could not be read" not in text.lower()


def test_a_rule_file_that_cannot_be_read_is_counted(tmp_path: Path) -> None:
    run = made_up(tmp_path / "run")
    (run.rules / "0002.rules").write_bytes(b"\0")
    (run.rules / "0002.json").unlink()
    assert "could not be read and are left out: 1." in render(run)


def test_the_graph_says_special_cases_and_opposites_in_words_and_leads_to_their_rules(tmp_path: Path) -> None:
    run = made_up(tmp_path / "run")
    general, special = "facing(t, key)", "facing(t, key) & carrying(t)"
    said = {"wide": f"{general} -> good(t)", "narrow": f"{special} -> good(t)", "against": f"{general} -> ~good(t)"}
    run.save_rules(ruleset(5, *(f"rule {name}: forall t in step: {text}" for name, text in said.items())))
    text = render(run)
    assert "<li>narrow is a special case of wide</li>" in text
    assert "<li>wide and narrow: facing(key)</li>" in text
    assert "<li>wide and against claim opposite things that can hold at once</li>" in text
    for name in said:
        assert f'href="#rule-{name}"' in text
        assert f'id="rule-{name}"' in text


def test_names_and_commands_are_no_html(tmp_path: Path) -> None:
    run = made_up(tmp_path / "<script>alert(1)<")
    config = json.loads(run.config.read_text())
    config["command"] = "nser train '<img src=x onerror=alert(1)>'"
    run.config.write_text(json.dumps(config))
    text = render(run)
    assert "<script>alert" not in text
    assert "<img" not in text


def test_the_same_run_gives_the_same_page(tmp_path: Path) -> None:
    run = made_up(tmp_path / "run")
    assert render(run) == render(run)


def test_ink_follows_the_scheme_of_the_reader(tmp_path: Path) -> None:
    text = render(made_up(tmp_path / "run"))
    drawn = "".join(re.findall(r"<svg .*?</svg>", text, re.DOTALL))
    assert "currentColor" in drawn
    assert not re.search(r"(fill|stroke): #(000000|010203|ffffff)", drawn), "ink that a dark ground swallows"


def test_costs_sum_to_the_run_and_models_stand_beside() -> None:
    costs = costs_of([metrics_line("train", 1, cost={"acting": 1.0}), metrics_line("done", 2, cost=COST)])
    assert [(cost.part, cost.share) for cost in costs] == [
        ("learning", 5 / 8),
        ("acting", 2 / 8),
        ("environment", 1 / 8),
        ("scoring", 0.0),
        ("models", None),
    ]
    assert costs_of([metrics_line("train", 1)]) == []


def test_recorded_calls_are_counted_with_their_tokens(tmp_path: Path) -> None:
    run = made_up(tmp_path / "run")
    replies = run.path / "replies"
    replies.mkdir()
    (replies / "a.json").write_text('{"reply": {"text": "x", "prompt_tokens": 30, "completion_tokens": 4}}')
    (replies / "b.json").write_text("{")
    assert calls_of(run) == Calls(2, 30, 4)


def test_speed_is_of_the_stretch_between_two_lines() -> None:
    lines = [metrics_line("train", step, seconds=at) for step, at in ((1000, 10.0), (2000, 15.0), (3000, 15.0))]
    assert speeds(lines) == [{"step": 2000, "speed": 200.0}]
