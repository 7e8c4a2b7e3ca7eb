"""Steps a second of the symbolic DoorKey against MiniGrid's own observations.

    python -m tests.bench_envs

Random actions, resets included, one thread, rounds interleaved so that a busy machine slows all alike; trust
the ratios, not the rates. About 20 seconds.
"""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import Any

import gymnasium
import minigrid  # noqa: F401  registers MiniGrid's own environments
import numpy as np
from minigrid.wrappers import FlatObsWrapper, ImgObsWrapper

from nser.envs.doorkey import DoorKey
from nser.envs.seeding import EpisodeSeeds

ROUNDS = 7
ENV_ID = "MiniGrid-DoorKey-6x6-v0"


def environments() -> dict[str, tuple[gymnasium.Env[Any, Any], int]]:
    """Every contender with the steps of one round, chosen so that rounds last about as long."""
    image_only = ImgObsWrapper(gymnasium.make(ENV_ID))  # type: ignore[no-untyped-call]
    return {
        "symbolic": (DoorKey(6), 20_000),
        "symbolic + EpisodeSeeds": (EpisodeSeeds(DoorKey(6), seed=0), 20_000),
        "partial view": (DoorKey(6, partial=True), 1_500),
        "MiniGrid (dict)": (gymnasium.make(ENV_ID), 1_500),
        "MiniGrid ImgObsWrapper": (image_only, 1_500),
        "MiniGrid FlatObsWrapper": (FlatObsWrapper(gymnasium.make(ENV_ID)), 1_500),
    }


def steps_per_second(env: gymnasium.Env[Any, Any], steps: int, seed: int) -> float:
    """Rate of random play, resets included."""
    actions = np.random.default_rng(seed).integers(7, size=steps)
    env.reset(seed=seed)
    start = perf_counter()
    for action in actions:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    return steps / (perf_counter() - start)


def run() -> dict[str, float]:
    """Median steps a second of each contender, and the ratio symbolic : MiniGrid's dictionary."""
    contenders = environments()
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    for seed in range(ROUNDS):
        for name, (env, steps) in contenders.items():
            rates[name].append(steps_per_second(env, steps, seed))
    found = {f"{name}, steps/s": median(values) for name, values in rates.items()}
    pairs = zip(rates["symbolic"], rates["MiniGrid (dict)"], strict=True)
    found["symbolic : MiniGrid (dict)"] = median(ours / theirs for ours, theirs in pairs)
    return found


def main() -> None:
    """Print the table."""
    print(f"{ENV_ID}, random actions, median of {ROUNDS} rounds")
    for name, value in run().items():
        print(f"{name:36} {value:12,.1f}")


if __name__ == "__main__":
    main()
