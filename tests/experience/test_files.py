from __future__ import annotations

import io
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nser.experience.files import load_trajectories, save_trajectories
from nser.experience.npz import load_npz
from nser.experience.trajectories import FIELDS, Trajectories, TrajectoryError
from tests.experience.test_trajectories import recorded


@st.composite
def trajectories(draw: st.DrawFn) -> Trajectories:
    """Any mix of finished and unfinished episodes, of vectors, pictures and both kinds of actions."""
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    finished = draw(st.lists(st.booleans(), min_size=len(lengths), max_size=len(lengths)))
    found = recorded(lengths, draw(st.integers(0, 1000)), finished)
    rows = len(found)
    shape = draw(st.sampled_from([(1,), (3,), (2, 2)]))
    finite = st.floats(-(2.0**100), 2.0**100, width=32)
    numbers = draw(st.lists(finite, min_size=2 * rows * int(np.prod(shape)), max_size=2 * rows * int(np.prod(shape))))
    seen, after = np.array(numbers, np.float32).reshape(2, rows, *shape)
    generator = np.random.default_rng(draw(st.integers(0, 1000)))
    kinds: list[Any] = [generator.integers(5, size=rows), generator.integers(5, size=(rows, 2))]
    kinds.append(generator.normal(size=(rows, 2)).astype(np.float32))
    actions = draw(st.sampled_from(kinds))
    return Trajectories(
        seen, actions, found.rewards * 1e9, after, found.terminated & found.finished, found.finished, found.episodes
    )


@given(trajectories(), st.sampled_from([".npz", ".jsonl", ".ndjson"]))
@settings(max_examples=60, deadline=None)
def test_files_give_back_what_was_written(found: Trajectories, suffix: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"t{suffix}"
        save_trajectories(path, found)
        again = load_trajectories(path)
        assert [at.name for at in Path(folder).iterdir()] == [path.name]
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name), name)
        assert getattr(again, name).dtype == getattr(found, name).dtype, name


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 cut"])
def test_files_that_are_no_archive_are_refused_in_a_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.npz"
    path.write_bytes(content)
    with pytest.raises(TrajectoryError, match=r"can't read .*t\.npz") as caught:
        load_trajectories(path)
    assert "\n" not in str(caught.value)


def test_missing_and_cut_and_incomplete_files(tmp_path: Path) -> None:
    with pytest.raises(TrajectoryError, match="No such file"):
        load_trajectories(tmp_path / "none.npz")
    path = tmp_path / "t.npz"
    save_trajectories(path, recorded([50]))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(TrajectoryError, match="no whole archive"):
        load_trajectories(path)
    np.savez(path, observations=np.zeros(2))
    with pytest.raises(TrajectoryError, match="lacks actions"):
        load_trajectories(path)


def test_a_flipped_bit_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    np.savez(path, **{name: getattr(recorded([50]), name) for name in FIELDS})
    content = bytearray(path.read_bytes())
    content[250] ^= 1
    path.write_bytes(content)
    with pytest.raises(TrajectoryError, match="no whole archive"):
        load_trajectories(path)


def test_a_pickle_inside_a_file_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    np.savez(path, **{name: np.array([object()]) for name in FIELDS})  # type: ignore[arg-type]
    with pytest.raises(TrajectoryError, match="observations holds object; objects are never loaded"):
        load_trajectories(path)


def test_an_archive_that_would_fill_the_memory_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    many = np.zeros((50_000, 20))  # 8 MB of zeros are 8 kB in the file
    arrays = {name: many if "observations" in name else np.zeros(len(many)) for name in FIELDS}
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]
    with pytest.raises(TrajectoryError, match=r"would fill 1[68],\d+,\d+ bytes, expected at most 1,000,000"):
        load_npz(path, max_bytes=1_000_000)


def test_a_header_that_promises_too_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    np.savez(path, **{name: getattr(recorded([3]), name) for name in FIELDS})
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    lie = io.BytesIO()
    header = {"descr": "<f4", "fortran_order": False, "shape": (10**15, 2)}
    np.lib.format.write_array_header_1_0(lie, header)
    members["observations.npy"] = lie.getvalue() + b"few"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(TrajectoryError, match="observations is cut: it promises the shape"):
        load_trajectories(path)


def test_arrays_in_fortran_order_are_read_right(tmp_path: Path) -> None:
    found = recorded([4])
    path = tmp_path / "t.npz"
    np.savez(path, **{name: np.asfortranarray(getattr(found, name)) for name in FIELDS})  # type: ignore[arg-type]
    np.testing.assert_array_equal(load_trajectories(path).observations, found.observations)


def test_content_decides_where_the_suffix_says_nothing(tmp_path: Path) -> None:
    found = recorded([2, 3])
    for suffix in (".npz", ".jsonl"):
        save_trajectories(tmp_path / f"t{suffix}", found)
        plain = (tmp_path / f"t{suffix}").rename(tmp_path / f"plain_{suffix[1:]}")
        assert len(load_trajectories(plain)) == 5


def test_other_suffixes_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TrajectoryError, match=r"found the suffix '\.csv', expected \.npz or \.jsonl"):
        save_trajectories(tmp_path / "t.csv", recorded([1]))
    with pytest.raises(TrajectoryError, match="a folder, and no Minari dataset"):
        load_trajectories(tmp_path)
