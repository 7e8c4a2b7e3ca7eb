"""Trajectories on disk: one door to every format.

| Format                      | What it is good for                                | Module                        |
|-----------------------------|----------------------------------------------------|-------------------------------|
| `.npz`                      | small and fast; any shape of observation           | `nser.experience.npz`         |
| `.jsonl`                    | to write by hand, to look into, to make elsewhere  | `nser.experience.jsonl`       |
| a Minari dataset (a folder) | data of others; read only, extra `[minari]`        | `nser.experience.minari_data` |

What an agent has in its buffer goes into a file so: `save_trajectories(path, buffer.trajectories())`.
"""

from __future__ import annotations

from pathlib import Path
from zipfile import is_zipfile

from nser.experience.jsonl import load_jsonl, save_jsonl
from nser.experience.minari_data import is_minari, load_minari
from nser.experience.npz import load_npz, save_npz
from nser.experience.trajectories import FIELDS, Trajectories, TrajectoryError

__all__ = ["FIELDS", "load_trajectories", "save_trajectories"]

JSON_SUFFIXES = (".jsonl", ".ndjson")


def save_trajectories(path: Path, trajectories: Trajectories) -> None:
    """Write a file in the format of its suffix, `.npz` or `.jsonl`; the old file stays until the new one is whole.

    Raises `TrajectoryError` for another suffix.
    """
    if path.suffix == ".npz":
        save_npz(path, trajectories)
    elif path.suffix in JSON_SUFFIXES:
        save_jsonl(path, trajectories)
    else:
        raise TrajectoryError(f"can't write {path}: found the suffix {path.suffix!r}, expected .npz or .jsonl")


def load_trajectories(path: Path) -> Trajectories:
    """Read a file or dataset of any of the formats; by its content where the suffix tells nothing.

    Nothing that stands in a file is executed. Raises `TrajectoryError` for what is missing, broken or too large.
    """
    if path.is_dir():
        if is_minari(path):
            return load_minari(path)
        raise TrajectoryError(f"can't read {path}: a folder, and no Minari dataset; expected .npz, .jsonl or a dataset")
    if path.suffix in JSON_SUFFIXES:
        return load_jsonl(path)
    if path.suffix != ".npz" and path.is_file() and not is_zipfile(path):
        return load_jsonl(path)
    return load_npz(path)
