"""`nser rollouts weigh` and `inspect`, through the real command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nser.rollouts.files import read_rollouts
from nser.rollouts.presets import NSER
from nser.rollouts.record import Rollout
from nser.rollouts.settings import StoreSettings
from nser.rollouts.store import RolloutStore
from tests.cli.test_cli import nser

RULES = """
rule polite: forall r in rollout: contains(r, "please") -> good(r)
rule lost [0.5]: forall u in turn: invalid_action(u) -> good(u)
rule long: forall r in rollout: length(r) > 400 -> ~good(r)
"""
POLITE: list[dict[str, Any]] = [
    {"role": "user", "content": "Ask “nicely”."},
    {"role": "assistant", "content": "Well, please: é"},
]
LOST: list[dict[str, Any]] = [
    {"role": "assistant", "content": "hm"},
    {"role": "user", "content": "Invalid action: no."},
    {"role": "assistant", "content": "left"},
]
LINES: list[dict[str, Any]] = [
    {"id": 7, "messages": POLITE, "reward": 1.5, "extra": {"b": [1e-7, None], "a": "\ud800"}, "weight": 9, "task": "t"},
    {"messages": LOST, "task": "t", "reward": 0, "group": "g"},
    {"reward": 0.25, "messages": [{"role": "assistant", "content": ""}]},
]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    paths = {name: tmp_path / name for name in ("in.jsonl", "out.jsonl", "x.rules")}
    paths["in.jsonl"].write_text("\n\n".join(json.dumps(line) for line in LINES) + "\n")
    paths["x.rules"].write_text(RULES)
    return paths


def weigh(files: dict[str, Path], *more: str) -> list[str]:
    return ["rollouts", "weigh", str(files["in.jsonl"]), "--rules", str(files["x.rules"]), "-o",
            str(files["out.jsonl"]), *more]  # fmt: skip


def test_scores_and_weights_follow_all_other_fields(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = nser(capsys, *weigh(files))
    assert code == 0
    assert "written to" in err
    found = [json.loads(line) for line in files["out.jsonl"].read_text().splitlines()]
    for before, after in zip(LINES, found, strict=True):
        kept = {name: value for name, value in before.items() if name != "weight"}
        assert list(after) == [*kept, "rule_scores", "rule_score", "weight"]
        assert {name: after[name] for name in kept} == kept
    assert [line["rule_scores"] for line in found] == [
        {"polite": 1.0, "lost": 0.0, "long": 0.0},
        {"polite": 0.0, "lost": 1.0, "long": 0.0},
        {"polite": 0.0, "lost": 0.0, "long": 0.0},
    ]
    assert [(line["rule_score"], line["weight"]) for line in found] == [(1.0, 2.0), (0.5, 1.5), (0.0, 1.0)]
    assert "3 rollouts, mean weight 1.500" in out
    assert "polite" in out


def test_the_result_can_be_read_and_weighed_again(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    nser(capsys, *weigh(files))
    scores = [rollout.rule_score for rollout in read_rollouts(files["out.jsonl"])]
    assert scores == [1.0, 0.5, 0.0]
    first = files["out.jsonl"].read_text()
    again = {**files, "in.jsonl": files["out.jsonl"]}
    code, _, _ = nser(capsys, *weigh(again))
    assert code == 0
    assert files["out.jsonl"].read_text() == first


@pytest.mark.parametrize(
    ("more", "weights"),
    [
        (("--eta", "3"), [4.0, 2.5, 1.0]),
        (("--weight", "score"), [1.0, 0.5, 0.0]),
        (("--weight", "score", "--over-turns", "mean"), [1.0, pytest.approx(0.5 / 3, abs=1e-6), 0.0]),
    ],
)
def test_forms_of_the_weight(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str], more: tuple[str, ...], weights: list[float]
) -> None:
    assert nser(capsys, *weigh(files, *more))[0] == 0
    assert [json.loads(line)["weight"] for line in files["out.jsonl"].read_text().splitlines()] == weights


def test_the_summary_for_machines(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = nser(capsys, *weigh(files, "--json"))
    told = json.loads(out)
    assert (told["rollouts"], told["mean_weight"]) == (3, 1.5)
    polite, lost, long = told["rules"]
    assert (polite["rollouts"], polite["reward"], polite["reward_elsewhere"]) == (1, 1.5, 0.125)
    assert lost["share"] == pytest.approx(1 / 3)
    assert long["reward"] is None


def test_many_rollouts_are_weighed_in_batches(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    lines = [json.dumps({"messages": LOST if i % 3 else POLITE, "reward": i, "i": i}) for i in range(600)]
    files["in.jsonl"].write_text("\n".join(lines))
    nser(capsys, *weigh(files))
    found = [json.loads(line) for line in files["out.jsonl"].read_text().splitlines()]
    assert [line["i"] for line in found] == list(range(600))
    assert [line["weight"] for line in found] == [1.5 if i % 3 else 2.0 for i in range(600)]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "in.jsonl, line 6: the line: found no JSON"),
        ('{"messages": [], "reward": 1}', "in.jsonl, line 6: messages: found"),
        (
            '{"messages": [{"role": "elf", "content": ""}], "reward": 1}',
            "in.jsonl, line 6: messages[0].role: found elf",
        ),
        ('{"messages": [{"role": "user", "content": ""}]}', "in.jsonl, line 6: reward: found nothing"),
        ('{"reward": NaN}', "in.jsonl, line 6: the line: found no JSON (NaN"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_written(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str], line: str, told: str
) -> None:
    with files["in.jsonl"].open("a") as stream:
        stream.write(line + "\n")
    code, _, err = nser(capsys, *weigh(files))
    assert code == 2
    assert told in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in files["in.jsonl"].parent.iterdir()) == ["in.jsonl", "x.rules"]


@pytest.mark.parametrize(
    ("rules", "more", "told"),
    [
        ("rule a: forall t in step: p(t) -> good(t)", (), "rule a is over the sort step"),
        ('rule a: forall r in rollout: contain(r, "x") -> good(r)', (), "did you mean `contains`?"),
        (RULES, ("--weight", "loud"), "found --weight loud, expected boost or score"),
        (RULES, ("--over-turns", "sum"), "expected max or mean"),
        (RULES, ("--vocab", "tests.induce.planted:CHAIN"), "expected one over rollout or turn"),
    ],
)
def test_wrong_use_is_one_sentence(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str], rules: str, more: tuple[str, ...], told: str
) -> None:
    files["x.rules"].write_text(rules)
    code, _, err = nser(capsys, *weigh(files, *more))
    assert code == 2
    assert told in err


def test_a_missing_file_and_a_place_that_can_not_be_written(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    missing = {**files, "in.jsonl": files["in.jsonl"].with_name("gone.jsonl")}
    code, _, err = nser(capsys, *weigh(missing))
    assert code == 2
    assert "gone.jsonl" in err
    nowhere = {**files, "out.jsonl": files["in.jsonl"].parent / "no" / "out.jsonl"}
    code, _, err = nser(capsys, *weigh(nowhere))
    assert code == 2
    assert "can't write" in err


def stored(path: Path) -> None:
    store = RolloutStore(replace(NSER, capacity=16), seed=1)
    some = [
        Rollout(
            prompt_ids=np.array([1, 2], np.int32),
            response_ids=np.array([place, 3], np.int32),
            response_mask=np.ones(2, np.bool_),
            behavior_logps=np.full(2, -1.0, np.float32),
            advantage=float(place),
            reward=place / 4,
            group=f"g{place}",
            task="sums" if place % 2 else "lakes",
            rule_scores={"a": 1.0 if place == 1 else 0.0},
            metadata={"messages": POLITE, "number": place},
        )
        for place in range(5)
    ]
    store.admit(some)
    store.advance(2)
    store.draw(2)
    store.save(path)


def test_a_store_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "store.npz"
    stored(path)
    code, out, _ = nser(capsys, "rollouts", "inspect", str(path), "--items", "2")
    assert code == 0
    for word in ("4 of 16 items", "version 2", "owed to rules", "lakes", "sums", "most probable", "least probable"):
        assert word in out
    code, out, _ = nser(capsys, "rollouts", "inspect", str(path), "--json")
    told = json.loads(out)
    assert code == 0
    assert told["items"] == 4
    assert (
        told["tasks"]["lakes"]["refused"] == {"zero_signal": 1} or sum(told["tasks"]["lakes"]["refused"].values()) == 1
    )
    rows = told["most_probable"]
    assert rows == told["least_probable"][::-1]
    assert sum(row["probability"] for row in rows) == pytest.approx(1.0)
    assert np.all(np.diff([row["probability"] for row in rows]) <= 0)
    assert {row["age"] for row in rows} == {2}
    assert sum(row["uses"] for row in rows) == 2
    (related,) = [row for row in rows if row["relevance"]]
    assert related["task"] == "sums"
    assert related["rule_share"] > 0


def test_an_empty_store_and_a_file_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "store.npz"
    RolloutStore(StoreSettings(capacity=4)).save(path)
    code, out, _ = nser(capsys, "rollouts", "inspect", str(path))
    assert code == 0
    assert "0 of 4 items" in out
    path.write_bytes(b"no")
    code, _, err = nser(capsys, "rollouts", "inspect", str(path))
    assert code == 2
    assert err.count("\n") == 1
