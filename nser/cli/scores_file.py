"""Scores of recorded transitions as a file: an .npz of arrays, or a .parquet table with a row for each transition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Scored:
    """Recorded transitions with scores [N] and firings [N, R], and the names of the R rules."""

    trajectories: Trajectories
    rules: Sequence[str]
    firings: NDArray[np.float32]
    scores: NDArray[np.float32]

    @property
    def steps(self) -> NDArray[np.int64]:
        """[N] the place of each transition in its episode, from 0."""
        import numpy as np

        return np.arange(len(self.scores)) - self.trajectories.starts[self.trajectories.numbers]


def write_scores(path: Path, scored: Scored) -> None:
    """Write scores and firings with the episode of each transition and its step there, from 0.

    An .npz holds `scores firings rules episodes steps`; a .parquet the columns `episode step score` and
    `firing_NAME` for each rule. Never half a file; raises `WriteError` where none can be written.
    """
    write = _npz if path.suffix == ".npz" else _parquet
    with atomic_path(path) as beside:
        write(beside, scored)


def _npz(path: Path, scored: Scored) -> None:
    import numpy as np

    with path.open("wb") as stream:  # given a path, NumPy would put its own ending to it
        np.savez_compressed(
            stream,
            scores=scored.scores,
            firings=scored.firings,
            rules=np.array(scored.rules),
            episodes=scored.trajectories.episodes,
            steps=scored.steps,
        )


def _parquet(path: Path, scored: Scored) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    columns = {"episode": scored.trajectories.episodes, "step": scored.steps, "score": scored.scores}
    columns |= {f"firing_{name}": scored.firings[:, place] for place, name in enumerate(scored.rules)}
    parquet.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), path)
