"""Made-up rollouts for the converters' tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from nser.rollouts import Rollout


def rollout(number: int = 0, prompt: int = 3, response: int = 4, version: int = 0, **fields: Any) -> Rollout:
    """A rollout whose tokens, log-probs and advantage differ from those of every other number."""
    rng = np.random.default_rng(number)
    mask = np.ones(response, bool)
    values: dict[str, Any] = {
        "prompt_ids": rng.integers(5, 90, prompt, dtype=np.int32),
        "response_ids": rng.integers(5, 90, response, dtype=np.int32),
        "response_mask": mask,
        "behavior_logps": -rng.random(response, dtype=np.float32),
        "advantage": float(np.float32(rng.normal())),
        "reward": float(number % 2),
        "policy_version": (version, version),
        "group": f"g{number // 2}",
        "task": "sums",
    }
    return Rollout(**(values | fields))


@st.composite
def rollouts(draw: st.DrawFn, per_token: bool = True) -> Rollout:
    """Any rollout: tools in the middle, one token, advantages per token."""
    mask = np.array(draw(st.lists(st.booleans(), min_size=1, max_size=6)))
    mask[0] = True
    made = rollout(draw(st.integers(0, 10**6)), draw(st.integers(1, 5)), len(mask))
    shaped = per_token and draw(st.booleans())
    advantages = np.where(mask, np.random.default_rng(len(mask)).normal(size=len(mask)), 0).astype(np.float32)
    return rollout(
        draw(st.integers(0, 10**6)),
        len(made.prompt_ids),
        len(mask),
        response_mask=mask,
        behavior_logps=np.where(mask, made.behavior_logps, np.float32(0)),
        advantage=advantages if shaped else made.advantage,
    )


def same(left: Rollout, right: Rollout) -> bool:
    """Whether two rollouts agree in all that a trainer learns from."""
    arrays = ("prompt_ids", "response_ids", "response_mask", "behavior_logps")
    return (
        all(np.array_equal(getattr(left, name), getattr(right, name)) for name in arrays)
        and np.array_equal(spread_of(left), spread_of(right))
        and (left.reward, left.policy_version, left.task) == (right.reward, right.policy_version, right.task)
    )


def spread_of(one: Rollout) -> Any:
    return np.where(one.response_mask, np.float32(one.advantage), 0)
