"""Trajectories on disk: a NumPy archive without pickled objects."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np

from nser.arrays import read_arrays
from nser.experience.trajectories import Trajectories, TrajectoryError
from nser.files import atomic_path

FIELDS = tuple(item.name for item in fields(Trajectories))


def save_trajectories(path: Path, trajectories: Trajectories) -> None:
    """Write an `.npz` with one array for each field, beside the old file first and then in its place."""
    with atomic_path(path) as beside, beside.open("wb") as stream:
        np.savez_compressed(stream, **{name: getattr(trajectories, name) for name in FIELDS})


def load_trajectories(path: Path) -> Trajectories:
    """Read what `save_trajectories` wrote; never executes what stands in the file.

    Raises `TrajectoryError` for a file that is missing, cut, of another kind, or lacks a field.
    """
    try:
        arrays = read_arrays(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "no whole NumPy archive"
        raise TrajectoryError(f"can't read {path}: {reason}; expected an .npz of trajectories") from error
    missing = [name for name in FIELDS if name not in arrays]
    if missing:
        raise TrajectoryError(f"{path} lacks {', '.join(missing)}; expected the arrays {', '.join(FIELDS)}")
    return Trajectories(**{name: arrays[name] for name in FIELDS})
