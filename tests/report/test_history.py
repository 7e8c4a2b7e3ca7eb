"""Which version brought, changed and retired each rule."""

from __future__ import annotations

from pathlib import Path

from nser.report.history import events_of, history_sheet, inductions_sheet, lives_of, steps_of, versions_of
from nser.report.lives import time_line
from nser.rules.ruleset import RuleSet
from tests.report.runs import DOOR, KEY, STEPS, VERSIONS, induced, left, made_up, metrics_line, ruleset

EVENTS = events_of(VERSIONS, STEPS)


def test_every_change_has_its_version_its_step_and_its_reason() -> None:
    told = [(event.version, event.step, event.rule, event.kind) for event in EVENTS]
    assert told == [
        (1, 500, "key", "brought"),
        (2, 1000, "key", "reweighed"),
        (2, 1000, "door", "brought"),
        (3, 1500, "door", "changed"),
        (3, 1500, "key", "retired"),
        (4, 2000, "key", "brought back"),
    ]
    why = [event.why for event in EVENTS]
    assert why[0].startswith("proposed by symbolic with lift 0.250, precision 88 % on held-out episodes: when facing")
    assert why[1] == "weight 0.60 → 0.50"
    assert why[3].startswith("by symbolic: weight 0.40 → 0.50; threshold, before “")
    assert why[4] == "nobody proposed it again (D702, by data)"


def test_a_life_ends_where_the_rule_left_and_begins_again_where_it_came_back() -> None:
    lives = {life.rule: life for life in lives_of(EVENTS)}
    assert lives["key"].stretches == [(500, 1500), (2000, None)]
    assert lives["door"].stretches == [(1000, None)]
    assert lives["door"].changes == [1500]
    assert lives["key"].alive


def test_a_rule_with_a_new_name_lives_on() -> None:
    renamed = DOOR.replace("rule door", "rule gate")
    events = events_of([ruleset(1, DOOR), ruleset(2, renamed)], {1: 100, 2: 200})
    assert [(event.kind, event.rule, event.formerly) for event in events] == [
        ("brought", "door", ""),
        ("changed", "gate", "door"),
    ]
    [life] = lives_of(events)
    assert (life.rule, life.stretches, life.changes) == ("gate", [(100, None)], [200])


def test_what_no_file_tells_is_said_and_not_made_up() -> None:
    events = events_of([ruleset(3, KEY), RuleSet(ruleset(4, DOOR).rules, 4)], {})
    assert [event.step for event in events] == [None] * 3
    assert "proposed by somebody unknown" in events[1].why
    assert events[2].why == "the file does not tell"
    assert lives_of(events) == []
    assert time_line(lives_of(events), 100) is None


def test_a_person_is_named() -> None:
    gone = left(KEY, 900, "a person took it out of the rule file", "person")
    event = events_of([ruleset(1, KEY), ruleset(2, retired=(gone,))], {})[1]
    assert event.why == "a person took it out of the rule file (D702, by person)"


def test_the_table_tells_the_newest_first_and_leads_to_rules_in_force() -> None:
    sheet = history_sheet(EVENTS, ["door"])
    assert [row.cells[0].text for row in sheet.rows] == ["4", "3", "3", "2", "2", "1"]
    assert {row.cells[2].text: row.cells[2].link for row in sheet.rows} == {"door": "rule-door", "key": ""}


def test_inductions_tell_what_was_refused() -> None:
    rows = inductions_sheet(induced()).rows
    assert [cell.text for cell in rows[0].cells] == ["2,000", "4", "door, key", "wall (D703)", "0.25"]


def test_versions_are_read_as_they_were_in_force(tmp_path: Path) -> None:
    run = made_up(tmp_path / "run")
    (run.rules / "0001.rules").write_text("# a person emptied it\n")
    (run.rules / "0002.rules").write_bytes(b"\0")
    (run.rules / "0002.json").unlink()
    assert [one.version for one in versions_of(run)] == [1, 3, 4]
    assert [rule.name for rule in versions_of(run)[0].rules] == ["key"]


def test_edits_have_their_step_too() -> None:
    lines = [*induced(), metrics_line("edit", 2100, version=5), metrics_line("train", 2200)]
    assert steps_of(lines) == {**STEPS, 5: 2100}


def test_the_time_line_draws_a_bar_for_every_stretch() -> None:
    drawn = time_line(lives_of(EVENTS), 2500)
    assert drawn is not None
    assert drawn.startswith("<svg ")
    for rule in ("key", "door"):
        assert f">{rule}</text>" in drawn
