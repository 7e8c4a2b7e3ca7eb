"""A nested state in one file: arrays in a NumPy archive, plain values as JSON beside them. Never a pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nser.arrays import read_arrays
from nser.files import atomic_path
from nser.runs.errors import CheckpointError, DiskError

FORMAT = 1
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
    except OSError as error:
        raise DiskError(
            path,
            f"can't write checkpoint {path}: {error.strerror or error}; the one before it is whole, so make room and "
            f"go on with `nser train --resume {path.parent.parent}`",
        ) from error


def read_archive(path: Path) -> dict[str, Any]:
    """The nested state that `write_archive` wrote. Raises `CheckpointError` for a missing, cut or foreign file."""
    try:
        arrays = read_arrays(path)
        content = json.loads(arrays.pop(PLAIN).tobytes().decode())
        found = content["format"]
        state: dict[str, Any] = content["plain"]
        for name, array in arrays.items():
            _put(state, name.split("/"), array)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            path, f"can't read checkpoint {path}: it is missing or cut; expected a file that `nser train` wrote"
        ) from error
    if found != FORMAT:
        raise CheckpointError(
            path, f"checkpoint {path} has format {found}, expected {FORMAT}; resume with the nser that wrote it"
        )
    return state


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
