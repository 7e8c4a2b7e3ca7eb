"""Scores of recorded transitions as a file: an .npz of arrays, or a .parquet table with a row for each transition."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from nser.cli.inputs import InputError
from nser.files import atomic_path

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nser.experience.trajectories import Trajectories

SUFFIXES = (".npz", ".parquet")


def check_scores_path(path: Path) -> None:
    """Raise `InputError` for a name of another kind, or one that needs a package that is not there."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"found -o {path}, expected a name that ends in {' or '.join(SUFFIXES)}")
    if path.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise InputError(f"found -o {path}, but no pyarrow, which writes parquet: pip install 'nser[parquet]', or .npz")


def write_scores(
    path: Path,
    scores: NDArray[np.float32],
    firings: NDArray[np.float32],
    rules: Sequence[str],
    trajectories: Trajectories,
) -> None:
    """Write scores [N] and firings [N, R], with the episode of each transition and its step there, from 0.

    An .npz holds `scores firings rules episodes steps`; a .parquet the columns `episode step score` and
    `firing_NAME` for each rule. Never half a file; raises `WriteError` where none can be written.
    """
    write = _npz if path.suffix == ".npz" else _parquet
    with atomic_path(path) as beside:
        write(beside, scores, firings, rules, trajectories)


def _npz(
    path: Path,
    scores: NDArray[np.float32],
    firings: NDArray[np.float32],
    rules: Sequence[str],
    trajectories: Trajectories,
) -> None:
    import numpy as np

    with path.open("wb") as stream:  # given a path, NumPy would put its own ending to it
        np.savez_compressed(
            stream,
            scores=scores,
            firings=firings,
            rules=np.array(rules),
            episodes=trajectories.episodes,
            steps=_steps(trajectories),
        )


def _parquet(
    path: Path,
    scores: NDArray[np.float32],
    firings: NDArray[np.float32],
    rules: Sequence[str],
    trajectories: Trajectories,
) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    columns = {"episode": trajectories.episodes, "step": _steps(trajectories), "score": scores}
    columns |= {f"firing_{name}": firings[:, place] for place, name in enumerate(rules)}
    parquet.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), path)


def _steps(trajectories: Trajectories) -> NDArray[np.int64]:
    """[N] the place of each transition in its episode, from 0."""
    import numpy as np

    return np.arange(len(trajectories)) - trajectories.starts[trajectories.numbers]
