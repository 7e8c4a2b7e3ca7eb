"""Rollouts and chat transcripts as JSON lines.

A line is an object of one of two kinds, which may be mixed in a file; blank lines are skipped.

A rollout: ``{"prompt_ids": […], "response_ids": […], "response_mask": […], "behavior_logps": […], "advantage": 0.5,
"reward": 1.0, "policy_version": [3, 3], "group": "…", "task": "…", …}``, the fields of ``Rollout``; all but the ids
and log-probs may be left out (then the mask is True everywhere).

A transcript: ``{"messages": [{"role": "user", "content": "…"}, …], "reward": 1.0}``, optionally with ``task``,
``group``, ``advantage``, ``policy_version``, ``rule_scores``. It becomes a rollout without tokens, whose
``metadata["messages"]`` holds the messages.

Other fields of a line go into ``metadata`` under their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nser.rollouts.record import Rollout


def read_rollouts(path: Path) -> Iterator[Rollout]:
    """One rollout after the other, never the whole file; raises ``RolloutError`` naming the line and the field."""
    raise NotImplementedError


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(number, object) of every line, fields in their order; raises ``RolloutError`` naming the line."""
    raise NotImplementedError


def write_rollouts(path: Path, rollouts: Iterable[Rollout]) -> int:
    """Write a line each, beside the old file and then in its place; returns how many."""
    raise NotImplementedError


def rollout_from_dict(found: Mapping[str, Any], where: str = "") -> Rollout:
    """The rollout or transcript of one line's object; ``where`` begins the message of a ``RolloutError``."""
    raise NotImplementedError


def rollout_to_dict(rollout: Rollout) -> dict[str, Any]:
    """JSON-able, back by ``rollout_from_dict`` bit for bit; without tokens in the form of a transcript."""
    raise NotImplementedError
