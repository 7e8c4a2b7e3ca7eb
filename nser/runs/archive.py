"""A nested state in one file: arrays in a NumPy archive, plain values as JSON beside them. Never a pickle."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nser.arrays import read_arrays
from nser.errors import NserError
from nser.files import WriteError, atomic_path
from nser.jsons import parse_json
from nser.runs.errors import CheckpointError, DiskError

FORMAT = 2  # 1 held the network as a file of torch within the file
PLAIN = "plain.json"


def write_archive(path: Path, state: Mapping[str, Any]) -> None:
    """Write nested mappings of arrays and JSON values; the old file stays until the new one is whole on the disk.

    Raises `DiskError` where the disk refuses (full, read-only); the old file is then untouched.
    """
    arrays: dict[str, NDArray] = {}
    plain = _split(state, "", arrays)
    text = json.dumps({"format": FORMAT, "plain": plain}, allow_nan=True)
    try:
        with atomic_path(path) as beside, beside.open("wb") as stream:
            np.savez(stream, allow_pickle=False, **arrays, **{PLAIN: np.frombuffer(text.encode(), np.uint8)})
    except WriteError as error:
        raise DiskError(
            path,
            f"can't write checkpoint {path}: {error.strerror}; the one before it is whole, so make room and "
            f"go on with `nser train --resume {path.parent.parent}`",
        ) from error


def read_archive(path: Path) -> dict[str, Any]:
    """The nested state that `write_archive` wrote. Raises `CheckpointError` for a missing, cut or foreign file."""
    try:
        arrays = read_arrays(path)
        content = parse_json(arrays.pop(PLAIN).tobytes())
        found = content["format"]
        state: dict[str, Any] = content["plain"]
        for name, array in arrays.items():
            _put(state, name.split("/"), array)
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise CheckpointError(
            path, f"can't read checkpoint {path}: it is missing or cut; expected a file that `nser train` wrote"
        ) from error
    if found != FORMAT:
        raise CheckpointError(
            path, f"checkpoint {path} has format {found}, expected {FORMAT}; resume with the nser that wrote it"
        )
    return state


@contextmanager
def fitting(path: Path) -> Iterator[None]:
    """Whatever goes wrong while the state of `path` is loaded is a `CheckpointError`, for it fits no run of ours."""
    try:
        yield
    except NserError as error:
        raise CheckpointError(path, f"checkpoint {path} does not fit its run: {error}") from error
    except Exception as error:  # of a state that somebody made up, every part fails in a way of its own
        said = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise CheckpointError(
            path, f"checkpoint {path} does not fit its run ({said}); expected both as one `nser train` wrote them"
        ) from error


def _split(state: Mapping[str, Any], prefix: str, arrays: dict[str, NDArray]) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for key, value in state.items():
        if isinstance(value, np.ndarray):
            arrays[f"{prefix}{key}"] = value
        elif isinstance(value, Mapping):
            plain[key] = _split(value, f"{prefix}{key}/", arrays)
        else:
            plain[key] = value.item() if isinstance(value, np.generic) else value
    return plain


def _put(state: dict[str, Any], keys: list[str], value: NDArray) -> None:
    for key in keys[:-1]:
        state = state[key]
    state[keys[-1]] = value
