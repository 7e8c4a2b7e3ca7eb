from __future__ import annotations

import json
import math

import pytest

from nser.study.curves import collect
from nser.study.errors import BaselineError
from nser.study.sheets import comparisons, markdown, sections, summary
from nser.study.statistics import estimate, improvement, paired_difference
from nser.study.table import make_table
from tests.study.rows import cell, sample

LEVELS = {"uniform": 0.3, "per": 0.32, "placebo": 0.5, "induced": 0.8}


def test_a_line_holds_what_its_seeds_say() -> None:
    curves = [[0, 0.8, 0.9, 1], [0, 0, 0.9, 0.7], [0, 0, 0, 0.1]]
    table = make_table(collect([one for seed, curve in enumerate(curves) for one in cell("per", seed, curve)]))
    (line,) = table.lines
    assert line.area.value == pytest.approx((2.7 / 4 + 1.6 / 4 + 0.1 / 4) / 3)
    assert line.final.value == pytest.approx(0.6)
    assert (line.reached, line.seeds, line.median_step) == (2, 3, 3000.0)
    assert table.comparisons == ()


def test_comparisons_are_those_of_the_seeds_in_common() -> None:
    rows = [one for one in sample(LEVELS, 14) if not (one["condition"] == "per" and one["seed"] in (3, 5))]
    results = collect(rows)
    table = make_table(results, ["per"])
    assert {(one.condition, one.baseline) for one in table.comparisons} == {
        ("uniform", "per"), ("placebo", "per"), ("induced", "per"),
    }  # fmt: skip
    groups = {group.condition: group for group in results.groups}
    kept = [seed for seed in range(14) if seed not in (3, 5)]
    one = next(one for one in table.comparisons if one.condition == "induced")
    assert one.difference == paired_difference(groups["induced"].areas[kept], groups["per"].areas)
    assert one.improvement == improvement(groups["induced"].areas[kept], groups["per"].areas)
    assert one.difference.seeds == 12
    assert table.lines[0].area == estimate(groups["uniform"].areas)


def test_each_pair_of_default_baselines_is_compared_once() -> None:
    table = make_table(collect(sample(LEVELS, 6)))
    assert [(one.condition, one.baseline) for one in table.comparisons] == [
        ("per", "uniform"), ("placebo", "uniform"), ("induced", "uniform"),
        ("placebo", "per"), ("induced", "per"), ("induced", "placebo"),
    ]  # fmt: skip


def test_ratios_are_never_compared_with_each_other() -> None:
    rows = sample({"uniform": 0.3}, 6) + sample({"per": 0.6}, 6, ratio=1.0)
    assert make_table(collect(rows)).comparisons == ()


def test_conditions_without_a_seed_in_common_are_not_compared() -> None:
    rows = cell("uniform", 0, [0, 0, 0, 0]) + cell("per", 1, [0, 0, 0, 1])
    table = make_table(collect(rows))
    assert table.comparisons == ()
    assert "per at 1/4: seeds 0 are missing" in table.remarks


def test_an_unknown_baseline_is_refused_with_those_there_are() -> None:
    with pytest.raises(BaselineError, match=r"found baseline hand.*expected one of uniform, per"):
        make_table(collect(sample({"uniform": 0.1, "per": 0.2}, 3)), ["hand"])


def test_remarks_say_what_the_data_call_for() -> None:
    few = " ".join(make_table(collect(sample(LEVELS, 4))).remarks)
    assert "Every condition has fewer than 10 seeds" in few
    assert "6 paired comparisons were made" in few
    assert "about 0.3 would still seem to. 0 of 6 show a difference" in few
    many = make_table(collect(sample(LEVELS, 16)))
    assert "fewer than 10 seeds" not in " ".join(many.remarks)
    verdicts = {(one.condition, one.baseline): one.difference.verdict for one in many.comparisons}
    assert verdicts["induced", "uniform"] == "better"
    assert verdicts["induced", "per"] == "better"
    mixed = sample({"uniform": 0.3}, 12) + sample({"per": 0.3}, 4)
    assert "per at 1/4: fewer than 10 seeds" in " ".join(make_table(collect(mixed)).remarks)


def test_one_comparison_is_told_in_words_for_one() -> None:
    table = make_table(collect(sample({"uniform": 0.3, "per": 0.3}, 12)))
    assert table.remarks[-1].startswith("One paired comparison was made, at 95%. It shows none: an interval")
    table = make_table(collect(sample({"uniform": 0.2, "per": 0.7}, 12)))
    assert table.remarks[-1] == "One paired comparison was made, at 95%. It shows a difference."


def test_a_study_that_learnt_nothing_asks_for_more_steps() -> None:
    rows = [row for seed in range(12) for name in ("uniform", "per") for row in cell(name, seed, [0, 0, 0, 0])]
    assert "Give the study more --steps" in make_table(collect(rows)).remarks[0]
    learnt = cell("uniform", 0, [0, 0, 0, 0]) + cell("per", 0, [0, 0, 0, 1])
    assert "--steps" not in " ".join(make_table(collect(learnt)).remarks)


def test_returns_are_told_with_their_scale() -> None:
    rows = [
        one | {"success": None, "return": -200 + 100 * one["success"]}
        for one in sample({"uniform": 0.3, "per": 0.5}, 3)
    ]
    table = make_table(collect(rows))
    assert table.scale is not None
    assert table.scale[0] < -190
    assert "Returns are scaled" in table.remarks[0]


def test_a_table_is_json() -> None:
    table = make_table(collect(sample(LEVELS, 12)))
    told = json.loads(json.dumps(table.as_dict(), allow_nan=False))
    assert told["level"] == 0.95
    assert [one["condition"] for one in told["lines"]] == list(LEVELS)
    assert told["comparisons"][2]["difference"]["verdict"] == "better"
    assert told["comparisons"][2]["difference"]["mean"]["low"] > 0


def test_sheets_hold_every_line_and_markdown_every_row() -> None:
    table = make_table(collect(sample(LEVELS, 3)))
    lines, pairs = (section.sheet for section in sections(table))
    assert (lines, pairs) == (summary(table).sheet, comparisons(table).sheet)
    assert [row.cells[1].text for row in lines.rows] == list(LEVELS)
    assert lines.rows[0].cells[2].text == "3 (few)"
    half = lines.rows[0].cells[6]
    assert (half.text, half.order) == ("> 4,000", math.inf), "half of the runs never got there"
    assert {row.cells[-1].text for row in pairs.rows} == {"not shown"}, "three seeds show nothing"
    text = markdown(table)
    tables = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(tables) == 2 + len(lines.rows) + 2 + len(pairs.rows)
    assert len({line.count("|") for line in tables}) == 1, "both sheets have eight columns"
    assert all(f"- {remark}" in text for remark in table.remarks)
