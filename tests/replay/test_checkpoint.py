import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nser.replay import PRESETS, CheckpointError, Law, ReplayIndex, linear

LAWS = {
    **PRESETS,
    "everything": Law(
        tau=9.0, max_age=25, eta=linear(0.0, 8.0, 60), mix=0.9, normalise="buffer", correct="full", beta=0.5
    ),
    "steep": Law(alpha=1.0, tau=0.1),
}


def lived(law: Law, capacity: int = 37, steps: int = 60) -> ReplayIndex:
    index, rng = ReplayIndex(capacity, law, seed=5), np.random.default_rng(1)
    for step in range(steps):
        n = int(rng.integers(1, 5))
        slots = index.insert(n, None if step % 4 == 0 else rng.random(n))
        index.relate(slots, rng.random(n), version=step)
        index.update(index.draw(8), rng.random(8))
        index.tick()
    return index


def go_on(index: ReplayIndex) -> list[bytes]:
    """What the index does next, bit by bit."""
    rng, said = np.random.default_rng(2), []
    for step in range(40):
        draw = index.draw(8, replace=step % 5 > 0)
        said += [getattr(draw, name).tobytes() for name in ("slots", "generations", "weights", "probabilities", "ages")]
        index.update(draw, rng.random(len(draw)))
        slots = index.insert(2)
        index.relate(slots, rng.random(2), version=step)
        if step % 3 == 2:
            index.tick()
    return said


@pytest.mark.parametrize("name", LAWS)
def test_a_restored_index_goes_on_bit_for_bit(name: str, tmp_path: Path) -> None:
    for steps in (0, 5, 60):
        index = lived(LAWS[name], steps=steps)
        state = index.state_dict()
        index.save(tmp_path / "index")
        restored = lived(LAWS[name], steps=9)
        restored.load_state_dict(state)
        loaded = ReplayIndex.load(tmp_path / "index")
        if steps == 0:
            index.insert(3), restored.insert(3), loaded.insert(3)
        expected = go_on(index)
        assert go_on(restored) == expected
        assert go_on(loaded) == expected


def test_a_state_is_flat_and_needs_no_pickle() -> None:
    state = lived(LAWS["everything"]).state_dict()
    for value in state.values():
        if isinstance(value, np.ndarray):
            assert value.dtype in (np.int64, np.float64)
        else:
            json.dumps(value, allow_nan=False)


def test_a_state_is_a_copy() -> None:
    index = lived(Law())
    state = index.state_dict()
    kept = {name: value.copy() for name, value in state.items() if isinstance(value, np.ndarray)}
    go_on(index)
    other = ReplayIndex(37, Law())
    other.load_state_dict(state)
    go_on(other)
    assert all(np.array_equal(state[name], value) for name, value in kept.items())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("format", "torch"),
        ("format_version", 99),
        ("capacity", 38),
        ("clock", -1),
        ("clock", 0),
        ("head", 0),
        ("size", 99),
        ("inserted", 1.5),
        ("origin", 10**9),
        ("offset", math.nan),
        ("rng", "{}"),
        ("rng", "none"),
        ("law", "{}"),
        ("law", "["),
        ("law", json.dumps({"alpha": -1})),
        ("signal", np.zeros(3)),
        ("signal", np.full(37, math.nan)),
        ("relevance", np.full(37, 2.0)),
        ("weight", np.zeros(37, np.float32)),
        ("birth", [1, 2]),
        ("generation", np.zeros(37, np.int64)),
        ("version", None),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(field: str, value: Any) -> None:
    law = LAWS["everything"]
    index, state = lived(law), lived(law, steps=50).state_dict()
    state[field] = value
    with pytest.raises(CheckpointError, match=rf"checkpoint field (law\.)?{field}|field law|field birth|field origin"):
        index.load_state_dict(state)
    del state[field]
    with pytest.raises(CheckpointError, match=f"{field}: found 'nothing'"):
        index.load_state_dict(state)
    assert go_on(index) == go_on(lived(law))


def test_another_law_is_named_by_its_field() -> None:
    with pytest.raises(CheckpointError, match=r"law\.tau: found 9\.0, expected 'inf'"):
        ReplayIndex(37, Law()).load_state_dict(lived(Law(tau=9.0)).state_dict())


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "index.npz"
    index = lived(Law())
    index.save(path)
    before = path.read_bytes()
    go_on(index)

    def fail(file: Any, **arrays: Any) -> None:
        file.write(b"half a file")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        index.save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["index.npz"]


def test_another_file_is_refused(tmp_path: Path) -> None:
    text, other = tmp_path / "text", tmp_path / "other.npz"
    text.write_text("no archive")
    np.savez(other, a=np.zeros(3))
    for path in (text, other):
        with pytest.raises(CheckpointError, match=r"ReplayIndex\.save"):
            ReplayIndex.load(path)
    with pytest.raises(FileNotFoundError):
        ReplayIndex.load(tmp_path / "missing")
