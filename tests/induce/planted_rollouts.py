"""Rollouts with a planted rule: in every task those that check their work do better, and nothing else matters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from nser.grounding.transcripts import Transcript

FILLERS = ("I think", "so then", "let us see", "well")
EASY, HARD = 0.8, 0.0  # what a prompt pays whatever is done: rewards of different prompts say nothing


def planted(groups: int = 20, each: int = 6, seed: int = 0) -> list[Transcript]:
    """`groups` prompts with `each` rollouts; one that says "let me check" or calls `verify` earns 0.5 more."""
    rng = np.random.default_rng(seed)
    found = []
    for group in range(groups):
        base = EASY if group % 2 else HARD
        for _ in range(each):
            checks, calls = rng.random() < 0.3, rng.random() < 0.3
            reward = base + 0.5 * (checks or calls) + 0.05 * rng.random()
            found.append(Transcript.of_messages(_messages(rng, checks, calls), reward, group=f"g{group}", task="sums"))
    return found


def _messages(rng: np.random.Generator, checks: bool, calls: bool) -> list[dict[str, Any]]:
    words = [str(rng.choice(FILLERS)) for _ in range(int(rng.integers(1, 6)))]
    said = ", ".join([*words, *(["let me check"] if checks else [])])
    other = [{"function": {"name": "search", "arguments": "{}"}}] if rng.random() < 0.5 else []
    used = [*other, *([{"function": {"name": "verify", "arguments": "{}"}}] if calls else [])]
    return [
        {"role": "user", "content": "What is it?"},
        {"role": "assistant", "content": said, "tool_calls": used},
        {"role": "tool", "content": "Error: no" if rng.random() < 0.2 else "done"},
        {"role": "assistant", "content": "It is so."},
    ]


def write(path: Path, rollouts: list[Transcript]) -> Path:
    """The rollouts as a file of JSON lines."""
    path.write_text("".join(json.dumps(rollout.as_dict()) + "\n" for rollout in rollouts))
    return path
