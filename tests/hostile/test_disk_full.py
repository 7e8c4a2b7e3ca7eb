"""A disk that is full, at every writer and every moment: one sentence, exit code 1, and what was whole stays whole.

The kernel itself refuses: a limit on the size of files fails a write in the middle, whoever makes it.
"""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nser.cli.scores_file import Scored, write_scores
from nser.errors import NserError
from nser.experience.files import save_trajectories
from nser.files import WriteError
from nser.induce.cassette import Call, Cassette, Reply
from nser.lock import locked
from nser.replay import ArrayBuffer, ReplayIndex
from nser.report.page import write_report
from nser.rollouts import RolloutStore, write_rollouts
from nser.rules.parse import parse_rules
from nser.rules.store import RuleSet, save_rules
from nser.runs.archive import write_archive
from nser.runs.directory import MetricsLog, RunDirectory
from nser.runs.edits import RuleEdits
from nser.study.cells import StudyDirectory
from nser.study.outputs import write_outputs
from nser.study.settings import StudySettings
from tests.experience.test_trajectories import recorded
from tests.hostile.readers import TINY
from tests.rollouts.making import rollout
from tests.study.rows import sample

RULES = RuleSet(parse_rules("rule a: forall t in step: p(t) -> good(t)").rules, 1)
STUDY = StudySettings(env="MiniGrid-DoorKey-6x6-v0", conditions=("per", "uniform"), seeds=2, steps=4000)


def index(folder: Path) -> None:
    found = ReplayIndex(9, seed=1)
    found.insert(5)
    found.save(folder / "index.npz")


def buffer(folder: Path) -> None:
    found = ArrayBuffer(4, (2,))
    found.add(np.zeros(2), 1, 0.5, np.zeros(2), False)
    found.save(folder / "buffer.npz")


def store(folder: Path) -> None:
    found = RolloutStore("nser")
    found.admit([rollout(n) for n in range(3)])
    found.save(folder / "store.npz")


def scores(name: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        data = recorded([3, 4])
        write_scores(folder / name, Scored(data, ["a"], np.zeros((7, 1), np.float32), np.zeros(7, np.float32)))

    return write


def study(folder: Path) -> None:
    found = StudyDirectory(folder)
    found.open(STUDY)
    if not found.evaluations.exists():
        found.append(sample({"per": 0.3, "uniform": 0.5}, 2))
    found.append([])


def report(folder: Path) -> None:
    if not (folder / "run").exists():
        RunDirectory.create(folder / "run", TINY)
    write_report(RunDirectory.open(folder / "run"))


def rewound(folder: Path) -> None:
    run = RunDirectory(folder)
    if not run.metrics.exists():
        run.metrics.write_text('{"kind": "train", "step": 1}\n')
    run.rewind(1, 0)


WRITERS: dict[str, Callable[[Path], Any]] = {
    "npz": lambda folder: save_trajectories(folder / "t.npz", recorded([3, 4])),
    "jsonl": lambda folder: save_trajectories(folder / "t.jsonl", recorded([3, 4])),
    "rules": lambda folder: save_rules(folder / "1.rules", RULES),
    "index": index,
    "buffer": buffer,
    "store": store,
    "rollouts": lambda folder: write_rollouts(folder / "r.jsonl", [rollout(1), rollout(2)]),
    "cassette": lambda folder: Cassette(folder).record(Call("m", ()), Reply("yes")),
    "archive": lambda folder: write_archive(folder / "state.npz", {"a": {"b": np.arange(9)}, "c": 3}),
    "config": lambda folder: RunDirectory.create(folder / "run", TINY, overwrite=(folder / "run").exists()),
    "rewound metrics": rewound,
    "report": report,
    "study": study,
    "scores": scores("s.npz"),
    "parquet scores": scores("s.parquet"),
}


@contextmanager
def limited(size: int) -> Iterator[None]:
    """No file grows beyond `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check(error: NserError) -> None:
    assert error.exit_code == 1
    assert "\n" not in str(error)
    assert "can't write" in str(error)


@pytest.mark.parametrize("name", WRITERS)
def test_a_write_that_is_refused_anywhere_leaves_what_was_whole(name: str, tmp_path: Path) -> None:
    write = WRITERS[name]
    write(tmp_path)
    whole = contents(tmp_path)
    largest = max(map(len, whole.values()))
    for size in (0, 1, largest // 2, largest - 1):
        with limited(size), pytest.raises(NserError) as caught:
            write(tmp_path)
        check(caught.value)
        if name != "config":  # what is overwritten is gone, as was asked for
            assert contents(tmp_path) == whole
    write(tmp_path)


@pytest.mark.parametrize("name", WRITERS)
def test_every_call_may_be_the_one_that_fails(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The k-th of all flushes to the disk and renames, for every k."""
    write = WRITERS[name]
    write(tmp_path)
    whole = contents(tmp_path)
    failed = 0
    while True:
        left = [failed]
        for call in ("fsync", "replace"):
            monkeypatch.setattr(os, call, failing(getattr(os, call), left))
        try:
            write(tmp_path)
            break
        except NserError as error:
            check(error)
        finally:
            monkeypatch.undo()
        if name != "config":
            assert contents(tmp_path) == whole
        failed += 1
    assert failed >= 2


def failing(real: Callable[..., Any], left: list[int]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        left[0] -= 1
        if left[0] == -1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*args, **kwargs)

    return call


def test_pictures_and_tables_of_a_study(tmp_path: Path) -> None:
    study(tmp_path)
    write_outputs(tmp_path)
    names = set(contents(tmp_path))
    for size in (100, 20_000):
        with limited(size), pytest.raises(WriteError) as caught:
            write_outputs(tmp_path)
        check(caught.value)
        assert set(contents(tmp_path)) == names
    write_outputs(tmp_path)


def test_metrics_keep_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path)
    log.write("train", 1, text="x" * 100)
    size = path.stat().st_size
    with limited(size + 50), pytest.raises(NserError, match="go on with `nser train --resume") as caught:
        log.write("train", 2, text="x" * 100)
    check(caught.value)
    log.close()
    assert [line["step"] for line in RunDirectory(tmp_path).read_metrics()] == [1]


def test_an_edit_that_can_not_be_noted(tmp_path: Path) -> None:
    from nser.envs.make import make_env, vocabulary_of

    (tmp_path / "mine.rules").write_text("rule a: forall t in step: ~action_is(t, left) -> good(t)")
    vocabulary = vocabulary_of(make_env("FrozenLake-v1"))
    edits = RuleEdits(tmp_path)
    with limited(10), pytest.raises(WriteError) as caught:
        edits.take(None, vocabulary, 3)
    check(caught.value)
    ruleset, _ = edits.take(None, vocabulary, 3)
    assert ruleset is not None


def test_a_store_without_room_for_a_shard_is_as_it_was(tmp_path: Path) -> None:
    found = RolloutStore("nser", directory=tmp_path, shard_bytes=4096)
    found.admit([rollout(1)])
    with limited(4095), pytest.raises(WriteError) as caught:
        found.admit([rollout(n, metadata={"text": "x" * 3000}) for n in range(2, 6)])
    check(caught.value)
    assert len(found) == 1
    assert len(found.admit([rollout(2)]).slots) == 1


def test_a_lock_needs_no_room(tmp_path: Path) -> None:
    with limited(0), locked(tmp_path / "run.lock"):
        pass
