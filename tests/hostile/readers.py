"""Every reader of files: a whole file of each kind, how to damage it, and what is done with what was read."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from nser.experience.files import load_trajectories, save_trajectories
from nser.induce.cassette import Call, Cassette, Reply
from nser.replay import ArrayBuffer, ReplayIndex, preset
from nser.report.page import write_report
from nser.rollouts import RolloutStore, read_rollouts, write_rollouts
from nser.rules.parse import parse_rules
from nser.rules.store import Provenance, Retired, RuleSet, beside_of, load_rules, load_written, save_rules
from nser.runs.archive import fitting, read_archive
from nser.runs.directory import RunDirectory
from nser.runs.edits import RuleEdits
from nser.runs.session import Session
from nser.runs.settings import RunSettings
from nser.runs.train import train
from nser.study.cells import StudyDirectory, read_rows, read_settings
from nser.study.curves import collect
from nser.study.settings import StudySettings
from nser.study.table import make_table
from tests.experience.test_trajectories import recorded
from tests.hostile.mutations import Mutation, damaged_archive, damaged_bytes, damaged_json
from tests.rollouts.making import random_rollout
from tests.study.rows import sample

Files = dict[str, bytes]


@dataclass(frozen=True)
class Reader:
    """`make` writes whole files into a folder; `target` among them is damaged by `damage`, then `read` reads them."""

    name: str
    make: Callable[[Path], None]
    target: str
    damage: Mutation
    read: Callable[[Path], Any]
    examples: int = 60

    def files(self) -> Files:
        """The whole files by their names, made once."""
        return _made(self.make)


@cache
def _made(make: Callable[[Path], None]) -> Files:
    with TemporaryDirectory() as made:
        folder = Path(made)
        make(folder)
        return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def _trajectories(name: str) -> Callable[[Path], None]:
    return lambda folder: save_trajectories(folder / name, recorded([2, 3], 1, [True, False]))


def _episodes(folder: Path) -> None:
    line = {"observations": [{"a": [0, 1], "b": 2}] * 3, "actions": [[0.5], [1]], "rewards": [0, 1], "terminated": True}
    (folder / "t.jsonl").write_text(json.dumps(line) + "\n" + json.dumps({**line, "episode": 3}) + "\n")


def _rules(folder: Path) -> None:
    there = "forall t in step:"
    text = f'rule a [0.5]: {there} p(t) & d(t, key) < ?2.5 -> good(t)\nrule b: {there} s(t, "é") -> ~good(t)'
    known = Provenance("symbolic", 1200, 0.04, 0.5, 0.9, 0.2, 0.1, 0.3, 55, "ab", "cd", "kept")
    left = Retired("c", "rule c: forall t in step: p(t) -> good(t)", "R700", "it left", "symbolic", 12)
    save_rules(folder / "0003.rules", RuleSet(parse_rules(text).rules, 3, {"a": known}, retired=(left,)))


def _read_rules(folder: Path) -> None:
    found = load_rules(folder / "0003.rules")
    assert all(str(problem).isprintable() for problem in found.problems)
    load_written(folder / "0003.rules")
    beside_of(folder / "0003.rules")
    save_rules(folder / "again.rules", RuleSet(found.rules, found.version, found.provenance, retired=found.retired))


def _read_edits(folder: Path) -> None:
    from nser.envs.make import make_env, vocabulary_of

    RuleEdits(folder).take(None, vocabulary_of(make_env("FrozenLake-v1")), 10)


def _index(folder: Path) -> None:
    index = ReplayIndex(5, preset("nser"), seed=1)
    for _ in range(3):
        index.insert(2, np.ones(2))
    index.save(folder / "index.npz")


def _read_index(folder: Path) -> None:
    index = ReplayIndex.load(folder / "index.npz")
    if len(index):
        index.draw(3)


def _buffer(folder: Path) -> None:
    buffer = ArrayBuffer(4, (2,), law=preset("per"))
    for step in range(6):
        buffer.add(np.full(2, step), 1, 0.5, np.full(2, step + 1), step == 3)
    buffer.save(folder / "buffer.npz")


def _store(folder: Path) -> None:
    rng = np.random.default_rng(0)
    store = RolloutStore("nser", shard_bytes=1000)
    for version in range(4):
        store.advance(version)
        store.admit([random_rollout(rng, version) for _ in range(3)])
    store.save(folder / "store.npz")


def _read_store(folder: Path) -> None:
    store = RolloutStore.load(folder / "store.npz")
    for rollout in store.rollouts(store.live_slots()):
        assert len(rollout.response_ids) == len(rollout.response_mask)
        dict(rollout.metadata)
    store.draw(3)
    store.metrics()


def _rollouts(folder: Path) -> None:
    rng = np.random.default_rng(0)
    write_rollouts(folder / "r.jsonl", [random_rollout(rng) for _ in range(2)])
    line = {"messages": [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}], "reward": 1}
    with (folder / "r.jsonl").open("a") as stream:
        stream.write(json.dumps({**line, "policy_version": 3, "rule_scores": {"a": 0.5}, "sampling": {"top_k": 3}}))


CALL = Call("m", ({"role": "user", "content": "rules?"},))


def _cassette(folder: Path) -> None:
    Cassette(folder).record(CALL, Reply("rule a: …"))


TINY = RunSettings(
    env="FrozenLake-v1", steps=400, seed=3, net_arch=(8,), buffer_size=300, learning_starts=50, batch_size=16,
    induce_every=100, log_every=100, eval_every=200, eval_episodes=1, final_episodes=1, checkpoint_every=100,
)  # fmt: skip


def _run(folder: Path) -> None:
    train(folder / "run", TINY)


def _read_run(folder: Path) -> None:
    run = RunDirectory.open(folder / "run")
    run.settings()
    run.rewind(200, 1)


def _read_page(folder: Path) -> None:
    write_report(RunDirectory.open(folder / "run"))


def _read_checkpoint(folder: Path) -> None:
    path = folder / "run" / "checkpoint" / "state.npz"
    state = read_archive(path)
    session = Session(TINY)
    with fitting(path):
        session.load_state(state["session"], None)
        session.buffer.sample(4)


def _study(folder: Path) -> None:
    settings = StudySettings(env="MiniGrid-DoorKey-6x6-v0", conditions=("uniform", "per"), seeds=2, steps=4000)
    study = StudyDirectory(folder)
    study.open(settings)
    study.append(sample({"uniform": 0.3, "per": 0.5}, 2))


def _read_study(folder: Path) -> None:
    read_settings(folder)
    study = StudyDirectory(folder)
    study.finished()
    make_table(collect(read_rows(folder)))
    study.append([])


def _minari(folder: Path) -> None:
    """Two episodes; Minari writes where an environment variable says."""
    import minari
    from minari.data_collector import EpisodeBuffer

    episodes = [
        EpisodeBuffer(
            observations=list(range(steps + 1)),
            actions=[1] * steps,
            rewards=[0.5] * steps,
            terminations=[False] * (steps - 1) + [True],
            truncations=[False] * steps,
        )
        for steps in (2, 3)
    ]
    described = {"algorithm_name": "a", "author": "b", "author_email": "c@example.org"}
    described |= {"code_permalink": "https://example.org", "description": "d"}
    space = spaces.Discrete(9)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(action="ignore"):  # of what it doesn't know
        patch.setenv("MINARI_DATASETS_PATH", str(folder))
        minari.create_dataset_from_buffers(
            "tests/two-v0", episodes, observation_space=space, action_space=space, **described
        )


def _read_minari(folder: Path) -> Any:
    return load_trajectories(folder / "tests" / "two-v0")


MINARI = (
    Reader("minari", _minari, "tests/two-v0/data/main_data.hdf5", damaged_bytes, _read_minari),
    Reader("minari-metadata", _minari, "tests/two-v0/data/metadata.json", damaged_json, _read_minari),
)
READERS = (
    Reader("npz", _trajectories("t.npz"), "t.npz", damaged_archive, lambda f: load_trajectories(f / "t.npz")),
    Reader("jsonl", _trajectories("t.jsonl"), "t.jsonl", damaged_json, lambda f: load_trajectories(f / "t.jsonl")),
    Reader("episodes", _episodes, "t.jsonl", damaged_json, lambda f: load_trajectories(f / "t.jsonl")),
    Reader("rules", _rules, "0003.rules", damaged_bytes, _read_rules),
    Reader("provenance", _rules, "0003.json", damaged_json, _read_rules),
    Reader("edits", _rules, "0003.json", damaged_json, _read_edits),
    Reader("index", _index, "index.npz", damaged_archive, _read_index, 150),
    Reader("buffer", _buffer, "buffer.npz", damaged_archive, lambda f: ArrayBuffer.load(f / "buffer.npz"), 150),
    Reader("store", _store, "store.npz", damaged_archive, _read_store, 150),
    Reader("rollouts", _rollouts, "r.jsonl", damaged_json, lambda f: list(read_rollouts(f / "r.jsonl"))),
    Reader("cassette", _cassette, f"{CALL.key}.json", damaged_json, lambda f: Cassette(f).find(CALL)),
    Reader("config", _run, "run/config.json", damaged_json, _read_run),
    Reader("metrics", _run, "run/metrics.jsonl", damaged_json, _read_run),
    Reader("page", _run, "run/metrics.jsonl", damaged_json, _read_page, 4),
    Reader("checkpoint", _run, "run/checkpoint/state.npz", damaged_archive, _read_checkpoint, 60),
    Reader("study", _study, "study.json", damaged_json, _read_study, 40),
    Reader("cells", _study, "evaluations.jsonl", damaged_json, _read_study, 40),
    *(MINARI if find_spec("minari") else ()),
)
