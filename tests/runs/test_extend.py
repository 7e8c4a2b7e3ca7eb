"""A run that is given more steps is the run that had been given them at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nser.runs.directory import RunDirectory
from nser.runs.errors import RunError, RunStopped
from nser.runs.extend import extend
from nser.runs.train import resume, train
from tests.runs.test_runs import Stopper, settings, told, weights

FRACTION = 0.4


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1,600 steps at once, ε falling during the first 400 of them."""
    path = tmp_path_factory.mktemp("runs") / "long"
    train(path, settings(steps=1600, exploration_fraction=FRACTION * 1000 / 1600))
    return path


def test_a_finished_run_goes_on_bit_for_bit(long: Path, tmp_path: Path) -> None:
    path = tmp_path / "run"
    train(path, settings(steps=1000, exploration_fraction=FRACTION))
    resume(path, steps=1600)
    assert told(path) == told(long)
    assert weights(path) == weights(long)


def test_a_stopped_run_goes_on_to_its_new_end(long: Path, tmp_path: Path) -> None:
    path = tmp_path / "run"
    with pytest.raises(RunStopped):
        train(path, settings(steps=1000, exploration_fraction=FRACTION), observer=Stopper(400))
    resume(path, steps=1600)
    assert told(path) == told(long)
    assert weights(path) == weights(long)


def test_exploration_goes_on_where_it_was(long: Path) -> None:
    rates = {line["step"]: line["epsilon"] for line in told(long) if line["kind"] == "train"}
    assert rates[256] > rates[504] == rates[1600] == 0.1


def test_the_configuration_says_how_the_run_was_continued(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", settings(steps=1000))
    before = json.loads(run.config.read_text())
    extend(run, 1600)
    extend(run, 2000)
    after = json.loads(run.config.read_text())
    assert [(one["from"], one["to"]) for one in after["continued"]] == [(1000, 1600), (1600, 2000)]
    assert after["command"] == before["command"]
    assert run.settings().steps == 2000
    assert run.settings().exploration_fraction == pytest.approx(settings().exploration_fraction / 2)


def test_the_same_number_changes_nothing(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", settings(steps=1000))
    before = run.config.read_bytes()
    extend(run, 1000)
    assert run.config.read_bytes() == before


def test_fewer_steps_are_refused(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", settings(steps=1000))
    with pytest.raises(RunError, match=r"found 900 steps, expected more than the 1,000 of .*run"):
        extend(run, 900)
