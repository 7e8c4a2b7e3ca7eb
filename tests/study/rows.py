"""Rows of evaluations as a study writes them, without running one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nser.study.cells import StudyDirectory
from nser.study.settings import StudySettings

ENV = "MiniGrid-DoorKey-6x6-v0"
STEPS = (1000, 2000, 3000, 4000)


def row(condition: str, seed: int, step: int, success: float | None, **other: Any) -> dict[str, Any]:
    """One evaluation."""
    values = {
        "environment": ENV,
        "condition": condition,
        "ratio": 0.25,
        "seed": seed,
        "step": step,
        "success": success,
        "return": 0.9 * (success or 0.0),
        "length": 20.0,
        "train_success": None,
        "train_episodes": 3,
        "updates": step // 4,
        "rules": 2,
        "rule_share": 0.3,
        "cpu_seconds": step / 1000,
    }
    return values | other


def cell(condition: str, seed: int, curve: Sequence[float | None], **other: Any) -> list[dict[str, Any]]:
    """All evaluations of a seed, at `STEPS`."""
    return [row(condition, seed, step, value, **other) for step, value in zip(STEPS, curve, strict=False)]


def sample(conditions: dict[str, float], seeds: int, ratio: float = 0.25) -> list[dict[str, Any]]:
    """Rising curves around a level a condition; what a seed has in common is in all of them."""
    rng = np.random.default_rng(7)
    common = rng.normal(0, 0.1, size=seeds)
    found = []
    for condition, level in conditions.items():
        for seed in range(seeds):
            top = level + common[seed] + rng.normal(0, 0.03)
            curve = [float(np.clip(top * share, 0, 1)) for share in (0.1, 0.4, 0.8, 1.0)]
            found += cell(condition, seed, curve, ratio=ratio)
    return found


def study(path: Path, rows: list[dict[str, Any]], **settings: Any) -> Path:
    """A study directory that holds these rows."""
    path.mkdir(parents=True, exist_ok=True)
    found = StudyDirectory(path)
    given = {"env": ENV, "conditions": ("uniform", "per", "induced"), "seeds": 12, "steps": 4000, "eval_every": 1000}
    found.open(StudySettings.model_validate(given | settings))
    found.append(rows)
    return path
