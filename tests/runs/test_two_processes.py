"""A run or study that one process works on: a second is refused, readers never are."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nser.cli.main import main
from nser.lock import LockedError
from nser.runs.directory import RunDirectory
from nser.runs.errors import RunExistsError
from nser.runs.train import resume, train
from nser.study.cells import StudyDirectory
from nser.study.run import run_study
from nser.study.settings import StudySettings
from tests.runs.test_runs import Stopper, settings
from tests.study.rows import study
from tests.test_lock import holding


class Meanwhile(Stopper):
    """Does something in the middle of a run, once."""

    def __init__(self, act: Callable[[], Any]) -> None:
        super().__init__(10**9)
        self.act, self.done = act, False

    def progress(self, step: int, success: float | None, mean_return: float | None, rules: int) -> None:
        if not self.done and step >= 400:
            self.done = True
            self.act()


def files(path: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_a_run_that_goes_on_is_nobody_elses(tmp_path: Path) -> None:
    path = tmp_path / "run"

    def act() -> None:
        before = files(path)
        busy = f"run is in use by process {os.getpid()} on "
        with pytest.raises(LockedError, match=busy):
            resume(path)
        with pytest.raises(LockedError, match=busy):
            train(path, settings(seed=9), overwrite=True)
        with pytest.raises(RunExistsError):
            train(path, settings(seed=9))
        assert files(path) == before

    observer = Meanwhile(act)
    train(path, settings(steps=800), observer=observer)
    assert observer.done
    train(path, settings(steps=200), overwrite=True)
    assert RunDirectory.open(path).settings().steps == 200


def test_another_process_holds_a_run_and_readers_are_let_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run"
    train(path, settings(steps=800))
    with holding(path / "run.lock") as process:
        for words, expected in (
            (["train", "--resume", str(path), "--steps", "900"], 2),
            (["train", "FrozenLake-v1", "--name", str(path), "--overwrite"], 2),
            (["report", str(path)], 0),
            (["replay", "inspect", str(path)], 0),
        ):
            code, said = nser(monkeypatch, capsys, *words)
            assert code == expected, (words, said)
            if expected:
                assert f"{path} is in use by process {process.pid} on " in said
                assert said.count("\n") == 1
    assert RunDirectory.open(path).settings().steps == 800


def nser(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Exit code of a command, and what it said beside its result."""
    monkeypatch.setattr("sys.argv", ["nser", *words])
    try:
        main()
    except SystemExit as stopped:
        return int(stopped.code or 0), capsys.readouterr().err
    return 0, capsys.readouterr().err


def test_another_process_holds_a_study(tmp_path: Path) -> None:
    path = study(tmp_path / "study", [])
    asked = StudySettings(env="FrozenLake-v1", conditions=("uniform", "per"), seeds=1, steps=100)
    with holding(path / "study.lock") as process:
        before = files(path)
        with pytest.raises(LockedError, match=f"process {process.pid}"):
            run_study(asked, path, lambda done, total, text: None)
        assert files(path) == before
    assert StudyDirectory(path).finished() == set()


def test_what_a_kill_left_of_writers_goes_when_the_run_goes_on(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", settings(steps=200))
    left = run.checkpoint.parent / ".state.npz.123.456.part"
    left.write_bytes(b"half a checkpoint")
    resume(run.path)
    assert not left.exists()


@pytest.mark.parametrize("left", ["run.lock", ".config.json.123.456.part"])
def test_a_folder_in_which_a_run_had_not_begun_is_free(tmp_path: Path, left: str) -> None:
    (tmp_path / left).write_text("")
    RunDirectory.create(tmp_path, settings())
    with pytest.raises(RunExistsError):
        RunDirectory.create(tmp_path, settings())


def test_only_numbered_files_are_versions(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", settings())
    for name in ("0002", "10000", "2nd", "9999", "mine"):
        (run.rules / f"{name}.rules").write_text("")
    assert [file.stem for file in run.numbered_rules()] == ["0002", "9999", "10000"]
    run.rewind(0, 2)
    assert sorted(file.stem for file in run.rules.glob("*.rules")) == ["0002", "2nd", "mine"]
