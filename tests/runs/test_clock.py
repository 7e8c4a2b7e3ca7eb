"""The parts of a run's time: exclusive, complete, and carried on by a resumed run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nser.runs.clock import PARTS, Clock
from nser.runs.directory import RunDirectory
from nser.runs.errors import RunStopped
from nser.runs.train import resume, train
from tests.runs.test_runs import Stopper, settings


def ticking(*times: float) -> Clock:
    moments: Iterator[float] = iter(times)
    return Clock(lambda: next(moments))


def test_every_moment_belongs_to_one_part() -> None:
    clock = ticking(0, 1, 3, 6, 10, 15, 16)
    clock.switch("acting")  # at 1
    with clock.during("induction"):  # at 3
        with clock.during("scoring"):  # from 6 to 10, no part of the induction's seconds
            pass
        found = clock.seconds()  # at 15
    assert found == dict.fromkeys(PARTS, 0.0) | {"other": 1, "acting": 2, "induction": 3 + 5, "scoring": 4}
    assert sum(found.values()) == 15


def test_a_part_ends_where_its_block_fails() -> None:
    clock = ticking(0, 1, 2, 4)
    with pytest.raises(ZeroDivisionError), clock.during("evaluation"):
        raise ZeroDivisionError
    assert clock.seconds()["evaluation"] == 1


def test_a_clock_goes_on_from_what_was_saved() -> None:
    clock = ticking(0, 7, 9)
    clock.go_on({"acting": 5.0, "unknown": 3.0})
    assert clock.seconds() == dict.fromkeys(PARTS, 0.0) | {"acting": 5.0, "other": 2}


def test_a_run_tells_where_its_time_went(tmp_path: Path) -> None:
    given = settings(steps=1200, checkpoint_every=600, eval_every=600)
    with pytest.raises(RunStopped):
        train(tmp_path / "run", given, observer=Stopper(700))
    before = [line for line in RunDirectory.open(tmp_path / "run").read_metrics() if line["kind"] == "train"][-1]
    resume(tmp_path / "run")
    done = RunDirectory.open(tmp_path / "run").read_metrics()[-1]
    cost = done["cost"]
    assert set(cost) == {*PARTS, "models"}
    for part in ("environment", "acting", "learning", "evaluation"):
        assert cost[part] > before["cost"][part] >= 0, part
    # The run's own count begins a moment later, once the session is there.
    assert sum(cost.values()) >= done["seconds"] - 0.1


def test_a_run_tells_how_varied_its_batches_are_and_where_its_rules_fire(tmp_path: Path) -> None:
    given = settings(steps=1600, learning_starts=300)
    train(tmp_path / "run", given)
    lines = [line for line in RunDirectory.open(tmp_path / "run").read_metrics() if line["kind"] == "train"]
    assert lines[0]["batch_episodes"] is None, "nothing is learnt, nor drawn, before `learning_starts`"
    drawn = [line for line in lines if line["batch_episodes"] is not None]
    assert len(drawn) >= 4
    for line in drawn:
        assert 1 <= line["batch_episodes"] <= min(line["episodes"] + given.n_envs, given.batch_size)
    ruled = [line for line in lines if line["rules"]]
    assert ruled
    for line in ruled:
        assert line["firing"].keys() == line["owed"].keys()
        assert 0 < sum(line["firing"].values()) <= 1
