"""What each part of a run cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nser.jsons import read_json
from nser.report.curves import Line
from nser.runs.directory import RunDirectory

WORDS = {
    "environment": "steps of the environment, observations made symbolic",
    "acting": "choosing actions and storing transitions",
    "learning": "drawing batches, gradient steps, errors back to the index",
    "scoring": "rules evaluated on stored transitions",
    "induction": "finding rules in episodes, and checking them",
    "evaluation": "greedy episodes that nothing is learnt from",
    "other": "setting up, figures for this page, checkpoints",
    "models": "language and vision models, on threads of their own while the agent went on",
}
BESIDE = "models"


@dataclass(frozen=True)
class Cost:
    """Seconds of a part; `share` of the whole in [0, 1], None for what ran beside it."""

    part: str
    seconds: float
    share: float | None
    what: str


def costs_of(metrics: Iterable[Line]) -> list[Cost]:
    """The parts by the newest line that tells them, the dearest first; empty for a run that told none."""
    told = [line["cost"] for line in metrics if line.get("cost")]
    if not told:
        return []
    seconds: dict[str, float] = told[-1]
    whole = sum(value for part, value in seconds.items() if part != BESIDE)
    parts = [
        Cost(part, value, None if part == BESIDE else value / whole if whole else 0.0, WORDS.get(part, ""))
        for part, value in seconds.items()
        if value or part != BESIDE
    ]
    return sorted(parts, key=lambda cost: (cost.share is None, -cost.seconds))


@dataclass(frozen=True)
class Calls:
    """Calls of language models that were recorded, and the tokens that the answers tell of."""

    count: int
    prompt_tokens: int
    completion_tokens: int


def calls_of(run: RunDirectory) -> Calls:
    """Recorded calls of a run; files that can't be read are counted as calls without tokens."""
    files = sorted((run.path / "replies").glob("*.json"))
    tokens = [_tokens(file) for file in files]
    return Calls(len(files), sum(one for one, _ in tokens), sum(other for _, other in tokens))


def _tokens(file: Path) -> tuple[int, int]:
    try:
        reply = read_json(file)["reply"]
        return int(reply["prompt_tokens"]), int(reply["completion_tokens"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0, 0
