"""Rollouts for tests, and whether two are the same bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from nser.rollouts import Rollout


def rollout(number: int = 0, version: int = 0, **fields: Any) -> Rollout:
    """A rollout of three prompt and four response tokens, different for every ``number``."""
    given: dict[str, Any] = {
        "prompt_ids": [number, 1, 2],
        "response_ids": [number, 5, 6, 7],
        "response_mask": [True] * 4,
        "behavior_logps": [-0.5, -1.0, -1.5, -2.0],
        "advantage": 1.0,
        "reward": 1.0,
        "policy_version": (version, version),
    }
    return Rollout(**(given | fields))


def random_rollout(rng: np.random.Generator, version: int = 0, **fields: Any) -> Rollout:
    """A rollout of random lengths and numbers."""
    prompt, tokens = int(rng.integers(0, 6)), int(rng.integers(1, 20))
    mask = rng.random(tokens) < 0.7
    mask[rng.integers(tokens)] = True
    given: dict[str, Any] = {
        "prompt_ids": rng.integers(0, 2**31 - 1, prompt),
        "response_ids": rng.integers(0, 2**31 - 1, tokens),
        "response_mask": mask,
        "behavior_logps": -rng.exponential(size=tokens),
        "advantage": float(rng.normal()) if rng.random() < 0.5 else rng.normal(size=tokens),
        "reward": float(rng.normal()),
        "rule_scores": {"a": float(rng.random())},
        "policy_version": (version, version),
        "group": f"g{rng.integers(100)}",
        "task": str(rng.choice(["sums", "maze"])),
        "metadata": {"text": "é" * int(rng.integers(4)), "turns": [1, {"x": None}]},
    }
    return Rollout(**(given | fields))


def content(one: Rollout, uses: bool = True) -> tuple[Any, ...]:
    """Everything in a rollout, to the bit, as something that can be compared."""
    advantage = one.advantage if isinstance(one.advantage, float) else one.advantage.tobytes()
    arrays = (one.prompt_ids, one.response_ids, one.response_mask, one.behavior_logps)
    return (
        *((array.dtype.str, array.tobytes()) for array in arrays),
        advantage,
        one.reward,
        dict(one.rule_scores),
        one.rule_score,
        one.policy_version,
        one.group,
        one.task,
        one.uses if uses else 0,
        one.sampling,
        dict(one.metadata),
    )
