"""Checkpoints of a store: every bit, whole or not at all, and a sentence for every other file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nser.replay import preset
from nser.rollouts import RolloutStore, StoreSettings, StoreStateError, store_preset
from tests.rollouts.making import content, random_rollout

SETTINGS = {
    "trajectories": StoreSettings(capacity=30, law=preset("nser", tau=4.0, max_age=6)),
    "turns": StoreSettings(capacity=30, unit="turn", law=preset("rollout-grpo", max_age=6)),
    "stratified": StoreSettings(capacity=30, law=preset("freshper"), replace=True, signal="reward", zero_signal=None),
}


def go_on(store: RolloutStore, steps: int, seed: int) -> list[Any]:
    """What a store does in some steps of a training loop, bit by bit."""
    rng = np.random.default_rng(seed)
    said: list[Any] = []
    for _ in range(steps):
        version = store.version + 1
        store.advance(version)
        drawn = store.draw(6)
        said += [content(one) for one in drawn.rollouts]
        said += [drawn.weights.tobytes(), drawn.draw.slots.tobytes(), drawn.draw.probabilities.tobytes()]
        store.update(drawn, rng.random(len(drawn)))
        store.admit([random_rollout(rng, version - int(rng.integers(2)) if version else 0) for _ in range(4)])
        store.relate(store.live_slots()[:3], rng.random(3), version)
    return said


def same(one: dict[str, Any], two: dict[str, Any]) -> bool:
    return one.keys() == two.keys() and all(
        np.array_equal(value, two[name]) if isinstance(value, np.ndarray) else value == two[name]
        for name, value in one.items()
    )


def lived(name: str = "trajectories", steps: int = 25, directory: Path | None = None) -> RolloutStore:
    store = RolloutStore(SETTINGS[name], seed=5, directory=directory, shard_bytes=1000)
    go_on(store, steps, seed=1)
    return store


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("name", SETTINGS)
def test_an_interrupted_store_goes_on_bit_for_bit(name: str, mapped: bool, tmp_path: Path) -> None:
    directory = tmp_path / "shards" if mapped else None
    if directory:
        directory.mkdir()
    for steps in (0, 1, 25):
        store = lived(name, steps, directory)
        store.save(tmp_path / "store.npz")
        state = store.state_dict()
        loaded = RolloutStore.load(tmp_path / "store.npz", directory)
        other = lived(name, 3)
        other.load_state_dict(state)
        assert same(loaded.state_dict(), state)
        assert same(other.state_dict(), state | {"others": other.state_dict()["others"]})
        expected = go_on(store, 20, seed=2)
        assert go_on(loaded, 20, seed=2) == expected
        assert go_on(other, 20, seed=2) == expected
        assert same(loaded.state_dict(), store.state_dict()), "where records lie is part of the store, too"


def test_counters_and_version_come_back() -> None:
    store = lived()
    other = RolloutStore(SETTINGS["trajectories"], shard_bytes=1000)
    other.load_state_dict(store.state_dict())
    # Full shards come back without the space that no record fitted into.
    spared = store.metrics().bytes_allocated - other.metrics().bytes_allocated
    assert 0 <= spared < 1000 * 8
    assert replace(other.metrics(), bytes_allocated=0) == replace(store.metrics(), bytes_allocated=0)
    assert other.version == 25
    assert not other.warming_up


def test_a_state_is_a_copy() -> None:
    store = lived()
    state = store.state_dict()
    kept = {name: value.copy() for name, value in state.items() if isinstance(value, np.ndarray)}
    go_on(store, 10, 3)
    other = RolloutStore(SETTINGS["trajectories"])
    other.load_state_dict(state)
    go_on(other, 10, 3)
    assert all(np.array_equal(state[name], value) for name, value in kept.items())


def test_a_state_is_flat_and_needs_no_pickle() -> None:
    for value in lived().state_dict().values():
        if isinstance(value, np.ndarray):
            assert not value.dtype.hasobject
        else:
            json.dumps(value, allow_nan=False)


def changed(rows: np.ndarray, field: str, value: Any) -> np.ndarray:
    other = rows.copy()
    other[field] = value
    return other


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("format", "torch"),
        ("format_version", 2),
        ("settings", "{"),
        ("settings", json.dumps({"capacity": -1})),
        ("settings", json.dumps(store_preset("freshper").to_dict())),
        ("counters", "{}["),
        ("counters", json.dumps({"other": 1})),
        ("counters", json.dumps({"age_counts": [0] * 15 + [[None]]})),
        ("counters", json.dumps({"age_counts": [0] * 3})),
        ("counters", json.dumps({"admitted": {"maze": "six"}})),
        ("counters", json.dumps({"drawn": 1.5})),
        ("others", json.dumps({"rng": {}})),
        ("others", "[]"),
        ("rows", np.zeros(3)),
        ("rows", lambda rows: rows[:3]),
        ("rows", lambda rows: changed(rows, "offset", -1)),
        ("rows", lambda rows: changed(rows, "offset", 10**6)),
        ("rows", lambda rows: changed(rows, "prompt", 10**6)),
        ("rows", lambda rows: changed(rows, "stop", 10**6)),
        ("rows", lambda rows: changed(rows, "start", -1)),
        ("rows", lambda rows: changed(rows, "shard", 10**6)),
        ("index.clock", -1),
        ("index.signal", np.zeros(3)),
        ("index.rng", "{}"),
        ("shard.x", np.zeros(3, np.int32)),
        ("shard.1", np.zeros(3)),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(field: str, value: Any) -> None:
    store, state = lived(), lived(steps=20).state_dict()
    before = store.state_dict()
    state[field] = value(state[field]) if callable(value) else value
    with pytest.raises(
        StoreStateError, match=r"state of a rollout store, .*: found .*, expected .*nothing was changed"
    ):
        store.load_state_dict(state)
    assert same(store.state_dict(), before)


@pytest.mark.parametrize("name", ["format", "settings", "rows", "counters", "others", "index.birth"])
def test_a_state_that_lacks_something_changes_nothing(name: str) -> None:
    store, state = lived(), lived(steps=20).state_dict()
    before = store.state_dict()
    del state[name]
    with pytest.raises(StoreStateError, match="found 'nothing'"):
        store.load_state_dict(state)
    assert same(store.state_dict(), before)


def test_a_shard_that_is_missing_is_named() -> None:
    state = lived().state_dict()
    name = next(name for name in state if name.startswith("shard."))
    del state[name]
    with pytest.raises(StoreStateError, match=name):
        RolloutStore(SETTINGS["trajectories"]).load_state_dict(state)


def test_a_cut_or_foreign_file_is_told_in_a_sentence(tmp_path: Path) -> None:
    path, other = tmp_path / "store.npz", tmp_path / "other.npz"
    lived().save(path)
    whole = path.read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        other.write_bytes(whole[:length])
        with pytest.raises(StoreStateError, match=r"whole npz written by RolloutStore\.save"):
            RolloutStore.load(other)
    np.savez(other, a=np.zeros(3))
    with pytest.raises(StoreStateError, match="a whole npz"):
        RolloutStore.load(other)
    np.savez(other, scalars=np.array("{}"))
    with pytest.raises(StoreStateError, match="settings"):
        RolloutStore.load(other)
    with pytest.raises(FileNotFoundError):
        RolloutStore.load(tmp_path / "missing")


def test_a_flipped_byte_is_found(tmp_path: Path) -> None:
    path = tmp_path / "store.npz"
    lived().save(path)
    broken = bytearray(path.read_bytes())
    broken[len(broken) // 2] ^= 255
    path.write_bytes(broken)
    with pytest.raises(StoreStateError, match="a whole npz"):
        RolloutStore.load(path)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.npz"
    store = lived()
    store.save(path)
    before = path.read_bytes()
    go_on(store, 3, 0)

    def fail(file: Any, **arrays: Any) -> None:
        file.write(b"half a file")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        store.save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["store.npz"]


def test_a_store_that_was_emptied_by_age_goes_on_in_the_slot_where_it_stood() -> None:
    store = RolloutStore(StoreSettings(capacity=3, law=preset("uniform", max_age=2)), shard_bytes=64)
    store.admit([random_rollout(np.random.default_rng(0), 0)])
    store.advance(3)
    assert len(store) == 0
    other = RolloutStore(store.settings, shard_bytes=64)
    other.load_state_dict(store.state_dict())
    rng = np.random.default_rng(1)
    for count in (3, 1, 2):
        other.admit([random_rollout(rng, 3) for _ in range(count)])
        assert len(other.rollouts(other.live_slots())) == 3
    other.advance(6)
    assert other.metrics().bytes == 0
