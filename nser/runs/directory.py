"""The folder of a run: where everything lies, and how it is written so that a kill at any moment loses nothing.

config.json      settings, versions of the packages, the command
metrics.jsonl    one JSON object a line, in the order of steps
rules/N.rules    the rule sets, text, with N.json beside each: who proposed what, and the figures
replies/         recorded calls of language models
checkpoint/      agent, buffer, index and counters, in one file
report.html      the page
run.lock         held by the process that trains
"""

from __future__ import annotations

import json
import platform
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nser.files import remove_parts, write_text, writing
from nser.jsons import read_json, read_objects
from nser.lock import locked
from nser.rules.errors import RuleFileError
from nser.rules.store import RuleSet, beside_of, load_rules, load_written, read_text, save_rules
from nser.runs.errors import DiskError, NoRunError, RunError, RunExistsError
from nser.runs.settings import RunSettings

LOCK = "run.lock"
RECORDED = ("nser", "torch", "numpy", "numba", "gymnasium", "minigrid", "stable_baselines3")


@dataclass(frozen=True)
class RunDirectory:
    """One run on disk."""

    path: Path

    @classmethod
    def create(cls, path: Path, settings: RunSettings, *, overwrite: bool = False) -> RunDirectory:
        """A new run's folder with its configuration.

        Raises `RunExistsError` where one is already, `NoRunError` where something else would be overwritten, and
        `WriteError`. Killed in the middle, it leaves what it can make a run of when it is called again.
        """
        cls.require_free(path, overwrite=overwrite)
        run = cls(path)
        with writing(path):
            path.mkdir(parents=True, exist_ok=True)
            _clear(path)
            write_text(run.config, json.dumps(_config(settings), indent=2) + "\n")
        run.make_folders()
        return run

    @classmethod
    def require_free(cls, path: Path, *, overwrite: bool = False) -> None:
        """Raise what `create` would raise of what is there, nothing touched."""
        if path.exists() and not (path.is_dir() and all(_is_left(child) for child in path.iterdir())):
            if not overwrite:
                raise RunExistsError(path)
            _require_run(path)

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """An existing run. Raises `NoRunError` where there is none."""
        _require_run(path)
        return cls(path)

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Keeps other processes from training in this folder meanwhile; readers need no leave.

        Raises `LockedError` where another process does, and `WriteError`.
        """
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        with locked(self.path / LOCK):
            for written in (self.config, self.metrics, self.checkpoint):
                remove_parts(written)
            yield

    def make_folders(self) -> None:
        """The folders in the run's own."""
        for folder in (self.rules, self.checkpoint.parent, self.path / "replies"):
            with writing(folder):
                folder.mkdir(exist_ok=True)

    @property
    def config(self) -> Path:
        """Settings and versions."""
        return self.path / "config.json"

    @property
    def metrics(self) -> Path:
        """The figures over time."""
        return self.path / "metrics.jsonl"

    @property
    def rules(self) -> Path:
        """Folder of the rule sets."""
        return self.path / "rules"

    @property
    def checkpoint(self) -> Path:
        """The one checkpoint file."""
        return self.path / "checkpoint" / "state.npz"

    @property
    def report(self) -> Path:
        """The page."""
        return self.path / "report.html"

    def settings(self) -> RunSettings:
        """What the run was started with. Raises `RunError` for a configuration that can't be read."""
        try:
            return RunSettings.model_validate(read_json(self.config)["settings"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            reason = str(error).splitlines()[0] if isinstance(error, ValidationError) else "no settings in it"
            raise RunError(self.config, f"can't read {self.config}: {reason}; expected what nser wrote") from error

    def save_rules(self, ruleset: RuleSet) -> None:
        """Write a version of the rules; an older one is never touched."""
        save_rules(self.rules / f"{ruleset.version:04d}.rules", ruleset)

    def load_rules(self, number: int) -> RuleSet:
        """The rules of a version as they were in force, whatever a person made of its file since."""
        return load_written(self.rules / f"{number:04d}.rules")

    def newest_rules(self) -> RuleSet | None:
        """The rules of the latest version, if any were found yet."""
        files = self.numbered_rules()
        return load_rules(files[-1]) if files else None

    def numbered_rules(self) -> list[Path]:
        """The files of all versions, oldest first; files of other names are a person's own."""
        return sorted((file for file in self.rules.glob("*.rules") if file.stem.isdecimal()), key=_number)

    def read_metrics(self) -> list[dict[str, Any]]:
        """Every whole line of the metrics, none before the first; a line that a kill cut short is left out.

        Raises `RunError` where they can't be read.
        """
        try:
            return [line for line in read_objects(self.metrics) if _is_line(line)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise RunError(self.metrics, f"can't read {self.metrics}: {error.strerror}; expected a file") from error

    def rewind(self, step: int, rules_version: int) -> None:
        """Forget what was written after a checkpoint was taken: the run will write it again.

        A rule file that a person has edited since is no such thing: it is kept as `edited-N.rules`, and taken.
        """
        kept = [json.dumps(line) for line in self.read_metrics() if line["step"] <= step]
        write_text(self.metrics, "".join(line + "\n" for line in kept))
        for file in self.numbered_rules():
            if _number(file) > rules_version:
                with writing(file):
                    _forget(file)


class MetricsLog:
    """Appends lines to `metrics.jsonl`, each given to the system at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with writing(path):
            # Unbuffered: what a full disk refused must not be tried again when the file is closed.
            self._stream = path.open("ab", buffering=0)

    def write(self, kind: str, step: int, **values: Any) -> None:
        """One line; `kind` is train, eval, rules, edit or done. Raises `DiskError` where the disk refuses."""
        line = (json.dumps({"kind": kind, "step": step, **values}) + "\n").encode()
        try:
            while line:  # a disk that is nearly full takes a part
                line = line[self._stream.write(line) :]
        except OSError as error:
            raise DiskError(
                self.path,
                f"can't write {self.path}: {error.strerror or error}; make room and go on with "
                f"`nser train --resume {self.path.parent}`",
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def _require_run(path: Path) -> None:
    if not (path / "config.json").is_file():
        raise NoRunError(path, "config.json")


def _config(settings: RunSettings) -> dict[str, Any]:
    return {
        "settings": settings.model_dump(mode="json"),
        "versions": versions(),
        "command": shlex.join(["nser", *sys.argv[1:]]),
    }


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide a run."""
    return {"python": platform.python_version(), **{name: _version(name) for name in RECORDED}}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _is_line(found: dict[str, Any]) -> bool:
    return type(found.get("step")) is int and isinstance(found.get("kind"), str)


def _number(file: Path) -> int:
    return int(file.stem)


def _is_left(child: Path) -> bool:
    """Whether a file is all that a kill left of a run that had not begun."""
    return child.name == LOCK or (child.name.startswith(".config.json.") and child.suffix == ".part")


def _clear(path: Path) -> None:
    """Remove a run but for its lock; its configuration last, so that it stays a run as long as it is there."""
    for child in sorted(path.iterdir(), key=lambda child: child.name == "config.json"):
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child)
        elif child.name != LOCK:
            child.unlink()


def _forget(file: Path) -> None:
    """Remove a rule file, or put it aside where a person has edited it."""
    written = beside_of(file).get("written")
    if written is None or _text(file) == written:
        file.unlink()
        file.with_suffix(".json").unlink(missing_ok=True)
        return
    aside = file.with_name(f"edited-{file.name}")
    file.with_suffix(".json").rename(aside.with_suffix(".json"))
    file.rename(aside)


def _text(file: Path) -> str | None:
    try:
        return read_text(file)
    except RuleFileError:
        return None
