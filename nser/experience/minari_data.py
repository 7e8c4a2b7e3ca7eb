"""Offline datasets in Minari's format, as trajectories.

    minari download D4RL/door/human-v2       # by Minari's own tool; nser downloads nothing
    nser vocab check ENV ~/.minari/datasets/D4RL/door/human-v2

Needs `pip install nser[minari]`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from nser.experience.record import as_row
from nser.experience.trajectories import Trajectories, TrajectoryError, joined
from nser.jsons import read_json

METADATA = "metadata.json"
# What h5py and Minari raise on a damaged file.
FAULTS = (
    OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, AssertionError, ImportError, RuntimeError,
    MemoryError, OverflowError,
)  # fmt: skip
MAX_ROWS = 10**8  # transitions of a dataset that is read as a whole


def is_minari(path: Path) -> bool:
    """Whether a folder is a Minari dataset: the one with its id, or `data` in it."""
    return any((folder / METADATA).is_file() for folder in (path, path / "data"))


def load_minari(path: Path) -> Trajectories:
    """Read a dataset from its folder; observations as `nser.experience.record` tells them.

    An environment is never made: a dataset that doesn't tell its spaces is refused. Raises `TrajectoryError` for that,
    for a broken or very large dataset, for spaces without numbers, and without Minari.
    """
    folder = path if (path / METADATA).is_file() else path / "data"
    try:
        from minari import MinariDataset
    except ImportError as error:
        raise TrajectoryError(f"{path} is a Minari dataset; to read it, `pip install nser[minari]`") from error
    try:
        metadata = read_json(folder / METADATA)
        if not {"observation_space", "action_space"} <= metadata.keys():
            # Minari would make the environment that the file names, and so run code that somebody else chose.
            raise TrajectoryError(f"{path} doesn't tell its spaces, expected observation_space and action_space")
        dataset = MinariDataset(folder)
        if dataset.total_steps > MAX_ROWS:
            raise TrajectoryError(f"{path} holds {dataset.total_steps:,} steps, expected at most {MAX_ROWS:,}")
        space = dataset.observation_space
        episodes = [_episode(space, number, episode) for number, episode in enumerate(dataset.iterate_episodes())]
    except TrajectoryError:
        raise
    except FAULTS as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise TrajectoryError(f"can't read {path}: {said:.300}; expected a whole Minari dataset") from error
    if not episodes:
        raise TrajectoryError(f"{path} holds no episodes")
    return joined(episodes)


def _episode(space: spaces.Space[Any], number: int, episode: Any) -> Trajectories:
    length = len(episode)
    seen = _rows(space, episode.observations, length + 1)
    ended = np.asarray(episode.terminations, np.bool_)
    over = ended | np.asarray(episode.truncations, np.bool_)
    actions = np.asarray(episode.actions)
    for name, array in (("observations", seen), ("actions", actions)):
        if array.dtype.kind not in "iufb":
            raise TrajectoryError(f"found {name} of type {array.dtype}, expected numbers")
    return Trajectories(
        seen[:-1],
        actions,
        np.asarray(episode.rewards, np.float64),
        seen[1:],
        ended,
        over,
        np.full(length, number, np.int64),
    )


def _rows(space: spaces.Space[Any], values: Any, rows: int) -> NDArray:
    """[rows, …] observations of an episode."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        return np.stack([as_row(space, _at(values, row)) for row in range(rows)])
    table = np.asarray(values)
    return table[:, None] if table.ndim == 1 else table


def _at(values: Any, row: int) -> Any:
    """One observation out of Minari's columns."""
    if isinstance(values, dict):
        return {key: _at(inner, row) for key, inner in values.items()}
    if isinstance(values, tuple):
        return tuple(_at(inner, row) for inner in values)
    return values[row]
