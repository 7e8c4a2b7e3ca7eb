"""Trajectories as a NumPy archive: one array for each field, no pickled objects, sizes checked before reading."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nser.arrays import read_arrays
from nser.experience.trajectories import FIELDS, Trajectories, TrajectoryError
from nser.files import atomic_path

MAX_BYTES = 2**33  # of all arrays together; what an archive declares is checked against it before anything is read
EXPECTED = "an .npz of trajectories"
WORDS = {"biuf": "numbers", "iuf": "numbers", "iu": "whole numbers", "biu": "true and false"}
KINDS = {"rewards": "iuf", "episodes": "iu", "terminated": "biu", "finished": "biu"}  # of what is one number a row


def save_npz(path: Path, trajectories: Trajectories) -> None:
    """Write the archive beside the old file first and then in its place. Raises `WriteError`."""
    with atomic_path(path) as beside, beside.open("wb") as stream:
        np.savez_compressed(stream, **{name: getattr(trajectories, name) for name in FIELDS})


def load_npz(path: Path, max_bytes: int = MAX_BYTES) -> Trajectories:
    """Read what `save_npz` wrote; never executes what stands in the file.

    Raises `TrajectoryError` for a file that is missing, cut, of another kind, lacks a field, or would fill more than
    `max_bytes`, whatever little room it takes on the disk.
    """
    try:
        arrays = read_arrays(path, FIELDS, max_bytes)
    except OSError as error:
        raise TrajectoryError(f"can't read {path}: {error.strerror or error}; expected {EXPECTED}") from error
    except ValueError as error:
        raise TrajectoryError(f"can't read {error}; expected {EXPECTED} with {', '.join(FIELDS)}") from error
    for name, array in arrays.items():
        kinds = KINDS.get(name, "biuf")
        if array.dtype.kind not in kinds:
            raise TrajectoryError(f"{path} holds {array.dtype} in {name}, expected {WORDS[kinds]}")
        if array.ndim < 1 or (name in KINDS and array.ndim > 1):
            raise TrajectoryError(f"{path} holds the shape {array.shape} in {name}, expected a row for each transition")
    if arrays["observations"].shape != arrays["next_observations"].shape:
        raise TrajectoryError(
            f"{path} holds next_observations of the shape {arrays['next_observations'].shape}, expected "
            f"{arrays['observations'].shape}, that of observations"
        )
    types = {"terminated": np.bool_, "finished": np.bool_, "episodes": np.int64}
    return Trajectories(**{name: array.astype(types.get(name, array.dtype)) for name, array in arrays.items()})
