"""Trajectories as JSON lines: to write by hand, to look into, to make with any other tool.

Two kinds of lines may stand in a file, also mixed; blank lines are skipped.

A transition a line:

    {"episode": 3, "observation": [0.1, 2], "action": 1, "reward": 0.5, "next_observation": [0.2, 2],
     "terminated": false, "truncated": true}

An episode a line, with one observation more than there are actions:

    {"observations": [[0.1, 2], [0.2, 2]], "actions": [1], "rewards": [0.5], "terminated": false, "truncated": true}

- `observation` is a number, a list (of lists) of numbers, or a dictionary of these, which is flattened in the order
  of its sorted keys; all observations of a file have the same parts. They are read as float32.
- `action` is a whole number for a discrete action space, a list of numbers otherwise; read as float32 unless all
  are whole.
- `terminated` is true where the environment ended here, `truncated` where something else cut the episode. Both are
  false by default; an episode that ends without either is read as one that is still running.
- `episode` is a whole number. The lines of one episode stand together. Without it an episode ends where it is
  terminated or truncated.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder:
...     path = Path(folder) / "mine.jsonl"
...     line = '{"observations": [[0], [1], [2]], "actions": [1, 1], "rewards": [0, 1], "terminated": true}'
...     _ = path.write_text(line)
...     [(len(episode), episode.returns.tolist()) for episode in iterate_jsonl(path)]
[(2, [1.0])]
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nser.experience.lines import MAX_LINE, LineParser, Row
from nser.experience.trajectories import Trajectories, TrajectoryError, joined
from nser.files import atomic_path

MAX_ROWS = 10**8  # transitions of a file that is read as a whole


def save_jsonl(path: Path, trajectories: Trajectories) -> None:
    """Write a transition a line, beside the old file first and then in its place.

    Raises `TrajectoryError` for values that are not finite, which JSON can't tell.
    """
    with atomic_path(path) as beside, beside.open("w", encoding="utf-8") as stream:
        for episode in trajectories.iterate():
            for i in range(len(episode)):
                ended = bool(episode.terminated[i])
                line = {
                    "episode": int(episode.episodes[i]),
                    "observation": episode.observations[i].tolist(),
                    "action": episode.actions[i].tolist(),
                    "reward": float(episode.rewards[i]),
                    "next_observation": episode.next_observations[i].tolist(),
                    "terminated": ended,
                    "truncated": bool(episode.finished[i]) and not ended,
                }
                try:
                    stream.write(json.dumps(line, allow_nan=False) + "\n")
                except ValueError as error:
                    raise TrajectoryError(
                        f"found a value that is not finite in transition {i} of episode "
                        f"{line['episode']}, expected finite numbers"
                    ) from error


def load_jsonl(path: Path) -> Trajectories:
    """Read a whole file. Raises `TrajectoryError` with the number of the line that is wrong."""
    episodes, rows = [], 0
    for episode in iterate_jsonl(path):
        episodes.append(episode)
        rows += len(episode)
        if rows > MAX_ROWS:
            raise TrajectoryError(f"{path} holds more than {MAX_ROWS:,} transitions; read it with iterate_jsonl")
    if not episodes:
        raise TrajectoryError(f"{path} holds no transitions; expected a transition or an episode a line")
    return joined(episodes)


def iterate_jsonl(path: Path) -> Iterator[Trajectories]:
    """One episode after the other, never more than one in memory.

    Raises `TrajectoryError` with the number of the line that is wrong, when it is reached.
    """
    reader = _Reader(path)
    try:
        with path.open(encoding="utf-8") as stream:
            number = 0
            while line := stream.readline(MAX_LINE + 1):
                number += 1
                if line.strip():
                    yield from reader.take(number, line)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise TrajectoryError(f"can't read {path}: {reason}; expected JSON lines of trajectories") from error
    yield from reader.end()


class _Reader:
    """Collects transitions until an episode is whole."""

    def __init__(self, path: Path) -> None:
        self.lines = LineParser(path)
        self.rows: list[Row] = []
        self.label: int | None = None  # the episode of the rows that are being collected
        self.seen: set[int] = set()
        self.count = 0

    def take(self, number: int, line: str) -> Iterator[Trajectories]:
        """The episodes that this line completes."""
        found = self.lines.parse(number, line)
        label = self.lines.label(found)
        whole = "observations" in found
        if whole or (self.rows and (label != self.label or self.rows[-1].finished)):
            yield from self.end()
        if not self.rows and label is not None:
            if label in self.seen:
                self.lines.refuse("episode", label, "its lines to stand together; sort the file by episode")
            self.seen.add(label)
        self.label = label
        if whole:
            self.rows = self.lines.episode(found)
            yield from self.end()
        else:
            self.rows.append(self.lines.transition(found))

    def end(self) -> Iterator[Trajectories]:
        """What was collected, as one episode."""
        if not self.rows:
            return
        seen, actions, rewards, after, terminated, finished = zip(*self.rows, strict=True)
        label = self.count if self.label is None else self.label
        self.rows, self.label, self.count = [], None, self.count + 1
        taken = np.stack(actions)  # whole and other numbers may be mixed
        yield Trajectories(
            np.stack(seen),
            taken if taken.dtype.kind == "i" else taken.astype(np.float32),
            np.array(rewards, np.float64),
            np.stack(after),
            np.array(terminated, np.bool_),
            np.array(finished, np.bool_),
            np.full(len(seen), label, np.int64),
        )
