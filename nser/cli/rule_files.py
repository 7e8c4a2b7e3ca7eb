"""Where a command takes a rule file, a run will do: its newest rules are meant."""

from __future__ import annotations

from pathlib import Path

from nser.errors import NserError
from nser.rules.store import RuleSet, load_rules


class NoRulesError(NserError):
    """A run that has no rules yet."""


def read_rules(path: Path) -> RuleSet:
    """The rules of a file, or the newest ones of a run directory. Raises `RuleFileError`, `NoRulesError`."""
    if not path.is_dir():
        return load_rules(path)
    files = sorted((path / "rules").glob("[0-9]*.rules"))
    if not files:
        raise NoRulesError(f"found no rules in {path}, expected a .rules file or a run that has found some; train on")
    return load_rules(files[-1])
