"""A state of arrays and plain scalars as one file: an npz without pickle, its scalars as JSON text beside them."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nser.arrays import read_arrays
from nser.files import atomic_path
from nser.jsons import parse_json

SCALARS = "scalars"


def write_state(state: dict[str, Any], path: str | PathLike[str]) -> None:
    """Write a state beside ``path`` first, then renamed over it. Raises ``WriteError``."""
    arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
    scalars = {name: value for name, value in state.items() if name not in arrays}
    with atomic_path(Path(path)) as beside, beside.open("wb") as file:
        # savez takes any name for an array; the stub thinks that one might be its flag allow_pickle.
        np.savez(file, **{SCALARS: np.array(json.dumps(scalars))}, **arrays)  # type: ignore[arg-type]


def read_state(path: str | PathLike[str]) -> tuple[dict[str, NDArray], Any]:
    """The arrays that ``write_state`` wrote, and what its text of scalars says, both unchecked.

    Raises ``OSError`` where the file can't be opened, ``ValueError`` or ``KeyError`` where it is no such file.
    """
    arrays = read_arrays(Path(path))
    return arrays, parse_json(str(arrays.pop(SCALARS)))
