"""The folder of a run: where everything lies, and how it is written so that a kill at any moment loses nothing.

config.json      settings, versions of the packages, the command
metrics.jsonl    one JSON object a line, in the order of steps
rules/N.rules    the rule sets, text, with N.json beside each: who proposed what, and the figures
replies/         recorded calls of language models
checkpoint/      agent, buffer, index and counters, in one file
report.html      the page
"""

from __future__ import annotations

import json
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nser.files import write_text
from nser.rules.store import RuleSet, beside_of, load_rules, load_written, save_rules
from nser.runs.errors import DiskError, NoRunError, RunError, RunExistsError
from nser.runs.settings import RunSettings

RECORDED = ("nser", "torch", "numpy", "numba", "gymnasium", "minigrid", "stable_baselines3")


@dataclass(frozen=True)
class RunDirectory:
    """One run on disk."""

    path: Path

    @classmethod
    def create(cls, path: Path, settings: RunSettings, *, overwrite: bool = False) -> RunDirectory:
        """A new run's folder with its configuration. Raises `RunExistsError` where one is already."""
        if path.exists() and any(path.iterdir() if path.is_dir() else [path]):
            if not overwrite:
                raise RunExistsError(path)
            _require_run(path)
            shutil.rmtree(path)
        run = cls(path)
        try:
            for folder in (path, run.rules, run.checkpoint.parent, path / "replies"):
                folder.mkdir(parents=True, exist_ok=True)
            write_text(run.config, json.dumps(_config(settings), indent=2) + "\n")
            run.metrics.touch()
        except OSError as error:
            raise DiskError(path, f"can't write run directory {path}: {error.strerror or error}") from error
        return run

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """An existing run. Raises `NoRunError` where there is none."""
        _require_run(path)
        return cls(path)

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
            return RunSettings.model_validate(json.loads(self.config.read_text(encoding="utf-8"))["settings"])
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
        files = sorted(self.rules.glob("[0-9]*.rules"))
        return load_rules(files[-1]) if files else None

    def read_metrics(self) -> list[dict[str, Any]]:
        """Every whole line of the metrics; a line that a kill cut short is left out."""
        return list(_whole_lines(self.metrics))

    def rewind(self, step: int, rules_version: int) -> None:
        """Forget what was written after a checkpoint was taken: the run will write it again.

        A rule file that a person has edited since is no such thing: it is kept as `edited-N.rules`, and taken.
        """
        kept = [json.dumps(line) for line in _whole_lines(self.metrics) if line["step"] <= step]
        write_text(self.metrics, "".join(line + "\n" for line in kept))
        for file in self.rules.glob("[0-9]*.rules"):
            if int(file.stem) > rules_version:
                written = beside_of(file).get("written")
                if written is not None and file.read_text(encoding="utf-8", errors="replace") != written:
                    aside = file.with_name(f"edited-{file.name}")
                    file.with_suffix(".json").rename(aside.with_suffix(".json"))
                    file.rename(aside)
                else:
                    file.unlink()
                    file.with_suffix(".json").unlink(missing_ok=True)


class MetricsLog:
    """Appends lines to `metrics.jsonl`, each flushed as it is written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stream = path.open("a", encoding="utf-8")

    def write(self, kind: str, step: int, **values: Any) -> None:
        """One line; `kind` is train, eval, rules, edit or done. Raises `DiskError` where the disk refuses."""
        try:
            self._stream.write(json.dumps({"kind": kind, "step": step, **values}) + "\n")
            self._stream.flush()
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
        "command": " ".join(["nser", *sys.argv[1:]]),
    }


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide a run."""
    return {"python": platform.python_version(), **{name: _version(name) for name in RECORDED}}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _whole_lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict) and "step" in found:
            yield found
