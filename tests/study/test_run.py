from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nser.envs.errors import UnknownEnvironmentError
from nser.study import run as running
from nser.study.cells import Cell, Row, read_rows
from nser.study.conditions import condition_of
from nser.study.errors import DifferentStudyError, NothingKnownError
from nser.study.run import pending, run_study
from nser.study.settings import StudySettings, study_settings
from nser.study.stack import StackJob


def settings(**values: Any) -> StudySettings:
    return study_settings(
        {
            "env": "MiniGrid-DoorKey-5x5-v0", "conditions": ["uniform", "per"], "seeds": 3, "stack_size": 2,
            "steps": 200, "eval_every": 100, "eval_episodes": 1, "learning_starts": 50, "net_arch": (8,), "workers": 1,
            **values,
        }
    )  # fmt: skip


def silent(done: int, total: int, text: str) -> None:
    del done, total, text


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float, tuple[int, ...]]]:
    """The stacks that were really run."""
    found: list[tuple[str, float, tuple[int, ...]]] = []
    real = running.run_job

    def counted(settings: StudySettings, job: StackJob, directory: Path, report: Any) -> list[Row]:
        found.append((job.condition.name, job.ratio, job.seeds))
        return real(settings, job, directory, report)

    monkeypatch.setattr(running, "run_job", counted)
    return found


def cells(path: Path) -> set[Cell]:
    return {Cell(row["condition"], row["ratio"], row["seed"]) for row in read_rows(path)}


def test_a_study_runs_every_cell_once_and_tells_how_far_it_is(tmp_path: Path, ran: list[Any]) -> None:
    told: list[tuple[int, int, str]] = []
    run_study(settings(), tmp_path, lambda *one: told.append(one))
    assert sorted(ran) == [(name, 0.25, seeds) for name in ("per", "uniform") for seeds in ((0, 1), (2,))]
    assert cells(tmp_path) == {Cell(name, 0.25, seed) for name in ("per", "uniform") for seed in range(3)}
    assert len(read_rows(tmp_path)) == 2 * 3 * 2
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert told[0][:2] == (0, 1200)
    assert told[-1][:2] == (1200, 1200)


def test_finished_cells_are_never_run_again_and_new_ones_are(tmp_path: Path, ran: list[Any]) -> None:
    run_study(settings(conditions=["uniform"]), tmp_path, silent)
    before = (tmp_path / "evaluations.jsonl").read_text()
    ran.clear()
    run_study(settings(conditions=["uniform"]), tmp_path, silent)
    assert ran == []
    run_study(settings(conditions=["uniform", "per"], seeds=4), tmp_path, silent)
    assert sorted(ran) == [("per", 0.25, (0, 1)), ("per", 0.25, (2, 3)), ("uniform", 0.25, (3,))]
    assert (tmp_path / "evaluations.jsonl").read_text().startswith(before)


def test_an_interrupted_study_goes_on_where_it_stopped(
    tmp_path: Path, ran: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tmp_path / "whole"
    run_study(settings(), whole, silent)
    real, stopped = running.run_job, tmp_path / "stopped"

    def interrupted(settings: StudySettings, job: StackJob, directory: Path, report: Any) -> list[Row]:
        if cells(directory):
            raise KeyboardInterrupt
        return real(settings, job, directory, report)

    monkeypatch.setattr(running, "run_job", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_study(settings(), stopped, silent)
    first = cells(stopped)
    assert len(first) == 2
    monkeypatch.setattr(running, "run_job", real)
    ran.clear()
    run_study(settings(), stopped, silent)
    assert not first & {Cell(name, ratio, seed) for name, ratio, seeds in ran for seed in seeds}
    plain = [[{**row, "cpu_seconds": 0} for row in read_rows(path)] for path in (whole, stopped)]
    assert plain[0] == plain[1]


def test_processes_give_what_one_process_gives(tmp_path: Path) -> None:
    run_study(settings(), tmp_path / "one", silent)
    run_study(settings(workers=2), tmp_path / "two", silent)
    key = lambda row: (row["condition"], row["seed"], row["step"])  # noqa: E731
    plain = [
        sorted(({**row, "cpu_seconds": 0} for row in read_rows(tmp_path / name)), key=key) for name in ("one", "two")
    ]
    assert plain[0] == plain[1]


def test_the_longest_stacks_come_first() -> None:
    asked = settings(conditions=["per", "induced"], ratios=[0.125, 1.0])
    jobs = pending(asked, [condition_of(name) for name in asked.conditions], set())
    assert [len(job.seeds) for job in jobs[:2]] == [2, 2]
    assert (jobs[0].condition.name, jobs[0].ratio) == ("induced", 1.0)
    assert (jobs[-1].condition.name, jobs[-1].ratio, jobs[-1].seeds) == ("per", 0.125, (2,))


def test_what_cannot_be_run_is_told_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "study"
    with pytest.raises(UnknownEnvironmentError):
        run_study(settings(env="DoorKee-v0"), path, silent)
    with pytest.raises(NothingKnownError):
        run_study(settings(env="Acrobot-v1", conditions=["per", "hand"]), path, silent)
    assert not path.exists()
    run_study(settings(conditions=["uniform"], seeds=1), path, silent)
    with pytest.raises(DifferentStudyError, match="steps is 200 there"):
        run_study(settings(conditions=["uniform"], steps=300), path, silent)
