"""The directory of a study: its settings, and a line for every evaluation of every finished cell.

study.json          settings, versions of the packages, the command line
evaluations.jsonl   one JSON object a line, the keys of `ROW`; whole cells only, so that what is there is done
study.lock          held by the process that runs the study
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nser.files import atomic_path, write_text, writing
from nser.jsons import read_json, read_objects
from nser.lock import locked
from nser.runs.directory import versions
from nser.study.errors import DifferentStudyError, NoStudyError
from nser.study.settings import EXTENDABLE, StudySettings

Row = dict[str, Any]
LOCK = "study.lock"

ROW = (
    "environment", "condition", "ratio", "seed", "step", "success", "return", "length", "train_success",
    "train_episodes", "updates", "rules", "rule_share", "cpu_seconds",
)  # fmt: skip
"""Keys of a row.

| Key            | Unit                                                                                              |
|----------------|---------------------------------------------------------------------------------------------------|
| environment    | id                                                                                                |
| condition      | canonical name, see `nser.study.conditions`                                                       |
| ratio          | updates per environment step                                                                      |
| seed           | whole number; equal seeds are paired over conditions                                              |
| step           | environment steps taken                                                                           |
| success        | share of the greedy episodes that succeed, in [0, 1]; null where the environment knows no success |
| return, length | means over the greedy episodes                                                                    |
| train_success  | share of the training episodes that ended since the row before, null if none did                  |
| train_episodes | how many these were                                                                               |
| updates        | gradient updates so far                                                                           |
| rules          | rules in force                                                                                    |
| rule_share     | share of expected draws owed to relevance, in [0, 1]                                              |
| cpu_seconds    | the cell's part of its stack's processor time so far                                              |
"""


@dataclass(frozen=True, order=True)
class Cell:
    """What is run once: a condition by its canonical name, an update ratio and a seed."""

    condition: str
    ratio: float
    seed: int


class StudyDirectory:
    """One study on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "study.json"
        self.evaluations = path / "evaluations.jsonl"

    def open(self, settings: StudySettings) -> None:
        """Begin a study, or go on with the one that is there; conditions, ratios and seeds may be added to it.

        Raises `DifferentStudyError` where any other setting differs.
        """
        if self.config.exists():
            there = read_settings(self.path)
            differing = {
                name: (getattr(there, name), getattr(settings, name))
                for name in StudySettings.model_fields
                if name not in EXTENDABLE and getattr(there, name) != getattr(settings, name)
            }
            if differing:
                raise DifferentStudyError(self.path, differing)
            settings = _extended(there, settings)
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        content = {
            "settings": settings.model_dump(mode="json"),
            "versions": versions(),
            "command": shlex.join(["nser", *sys.argv[1:]]),
        }
        write_text(self.config, json.dumps(content, indent=2) + "\n")

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Keeps other processes from running this study meanwhile. Raises `LockedError` where one does."""
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        with locked(self.path / LOCK):
            yield

    def finished(self) -> set[Cell]:
        """The cells that are done."""
        return {Cell(row["condition"], row["ratio"], row["seed"]) for row in read_rows(self.path)}

    def append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Put whole cells to the file, all or nothing. Raises `WriteError`, and what is there stays."""
        before = self.evaluations.read_bytes() if self.evaluations.exists() else b""
        if before and not before.endswith(b"\n"):
            before += b"\n"  # a line that somebody cut is lost, the next one is not
        new = "".join(json.dumps(dict(row)) + "\n" for row in rows)
        with atomic_path(self.evaluations) as beside:
            beside.write_bytes(before + new.encode())


def read_settings(path: Path) -> StudySettings:
    """The settings of the study in a directory. Raises `NoStudyError`."""
    try:
        return StudySettings.model_validate(read_json(path / "study.json")["settings"])
    except FileNotFoundError as error:
        raise NoStudyError(path, "found no study.json") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NoStudyError(path, f"can't read its study.json ({str(error).splitlines()[0]})") from error


def read_rows(path: Path) -> list[Row]:
    """Every row of the study in a directory, in the order of writing; none where no cell is done yet.

    A line that is no whole row is left out, and so is not counted as done. Raises `NoStudyError` for a file that can't
    be read.
    """
    file = path / "evaluations.jsonl"
    try:
        return [row for row in read_objects(file) if _is_row(row)] if file.exists() else []
    except OSError as error:
        raise NoStudyError(path, f"can't read its {file.name} ({error.strerror})") from error


def _is_row(row: Row) -> bool:
    """Whether there is every key, and a cell can be told from it."""
    whole = all(key in row for key in ROW)
    return whole and isinstance(row["condition"], str) and _is_number(row["ratio"]) and _is_number(row["seed"])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _extended(there: StudySettings, asked: StudySettings) -> StudySettings:
    """The settings of a study that holds what it held and what was asked for now."""
    return asked.model_copy(
        update={
            "conditions": tuple(dict.fromkeys((*there.conditions, *asked.conditions))),
            "ratios": tuple(dict.fromkeys((*there.ratios, *asked.ratios))),
            "seeds": max(there.seeds, asked.seeds),
        }
    )
