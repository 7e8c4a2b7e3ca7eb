"""Greedy evaluation on fresh episodes, all of them side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray


class Policy(Protocol):
    """What SB3's models offer."""

    def predict(self, observation: Any, *, deterministic: bool) -> tuple[NDArray, Any]:
        """Actions for a batch of observations."""


@dataclass(frozen=True)
class Evaluation:
    """Result of greedy episodes.

    episodes: how many;  mean_return, mean_length: over them;  success: share in [0, 1], None where the environment
    has no notion of it
    """

    episodes: int
    mean_return: float
    mean_length: float
    success: float | None


def evaluate(policy: Policy, make: Callable[[], gymnasium.Env[Any, Any]], episodes: int, seed: int) -> Evaluation:
    """Play `episodes` greedy episodes on layouts seeded by (seed, number), none of which training has seen.

    All environments step together, so that the network is asked once for all that still run.
    """
    seeds = np.random.SeedSequence(seed).generate_state(episodes)
    envs = [make() for _ in range(episodes)]
    observations = [env.reset(seed=int(s))[0] for env, s in zip(envs, seeds, strict=True)]
    returns, lengths = np.zeros(episodes), np.zeros(episodes, np.int64)
    successes: list[bool | None] = [None] * episodes
    running = list(range(episodes))
    while running:
        actions, _ = policy.predict(np.stack([observations[i] for i in running]), deterministic=True)
        still = []
        for i, action in zip(running, actions, strict=True):
            observations[i], reward, terminated, truncated, info = envs[i].step(action)
            returns[i] += float(reward)
            lengths[i] += 1
            if terminated or truncated:
                successes[i] = info.get("is_success")
            else:
                still.append(i)
        running = still
    for env in envs:
        env.close()
    known = [s for s in successes if s is not None]
    return Evaluation(
        episodes,
        float(returns.mean()) if episodes else 0.0,
        float(lengths.mean()) if episodes else 0.0,
        float(np.mean(known)) if known else None,
    )
