"""What `nser replay inspect` tells is what the index draws by."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nser.runs.directory import RunDirectory
from nser.runs.explain import stored_buffer
from nser.runs.inspect import Inspection, inspect
from nser.runs.train import train
from tests.cli.test_cli import nser
from tests.runs.test_runs import settings


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    train(path, settings(steps=2600, final_episodes=0, eval_every=100_000))
    return path


@pytest.fixture(scope="module")
def found(run: Path) -> Inspection:
    return inspect(RunDirectory.open(run), items=7)


def test_the_likeliest_items_are_those_of_the_index(run: Path, found: Inspection) -> None:
    buffer, _ = stored_buffer(RunDirectory.open(run))
    told = buffer.index.explain(buffer.index.live_slots())
    order = sorted(range(len(told.slots)), key=lambda place: (-told.probability[place], place))[:7]
    assert [item.slot for item in found.likeliest] == told.slots[order].tolist()
    for item, place in zip(found.likeliest, order, strict=True):
        assert item.times == pytest.approx(told.probability[place] * len(told.slots))
        assert (item.signal, item.age) == (told.signal[place], told.age[place])
        assert bool(item.rule) == (item.relevance > 0.05)


def test_ages_are_shares_of_items_and_of_draws(run: Path, found: Inspection) -> None:
    assert sum(one.stored for one in found.ages) == pytest.approx(1)
    assert sum(one.drawn for one in found.ages) == pytest.approx(1)
    assert [one.low for one in found.ages] == sorted(one.low for one in found.ages)


def test_half_of_the_draws_come_from_no_fewer_episodes(run: Path, found: Inspection) -> None:
    buffer, _ = stored_buffer(RunDirectory.open(run))
    slots = buffer.index.live_slots()
    probability, episodes = buffer.index.explain(slots).probability, buffer.episodes.reshape(-1)[slots]
    shares = sorted((probability[episodes == one].sum() for one in np.unique(episodes)), reverse=True)
    assert found.episodes == len(shares)
    assert sum(shares[: found.half - 1]) < 0.5 <= sum(shares[: found.half]) + 1e-12


def test_what_rules_are_owed_is_what_was_logged(run: Path, found: Inspection) -> None:
    logged = [line for line in RunDirectory.open(run).read_metrics() if line["kind"] == "train"][-1]
    assert found.owed == logged["owed"]
    assert sum(found.owed.values()) == pytest.approx(found.stats.rule_share, abs=0.02)


def test_the_command_tells_it(run: Path, found: Inspection, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = nser(capsys, "replay", "inspect", str(run), "--items", "7")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    for word in (*found.owed, *(str(item.slot) for item in found.likeliest)):
        assert word in out
    told = json.loads(nser(capsys, "replay", "inspect", str(run), "--items", "7", "--json")[1])
    assert told == json.loads(json.dumps(found.as_dict()))


def test_a_run_without_rules_has_items_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run"
    train(path, settings(steps=600, replay="per", explore="epsilon", final_episodes=0))
    told = inspect(RunDirectory.open(path))
    assert (told.owed, told.stats.rule_share) == ({}, 0.0)
    assert [item.rule for item in told.likeliest] == [""] * 5
    assert {item.action for item in told.likeliest} <= {"left", "down", "right", "up"}, "named as where rules are"
    assert nser(capsys, "replay", "inspect", str(path))[0] == 0


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = nser(capsys, "replay", "inspect", str(tmp_path))
    assert code == 2
    assert "is no run directory" in err
