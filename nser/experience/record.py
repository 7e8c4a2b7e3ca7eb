"""Trajectories made by playing: for data to induce rules from, and to check a vocabulary with.

>>> import gymnasium
>>> played = record(gymnasium.make("CartPole-v1"), lambda state: int(state[2] > 0), episodes=2, seed=1)
>>> len(played.starts), played.observations.shape[1], bool(played.complete.all())
(2, 4, True)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from nser.experience.trajectories import Trajectories, TrajectoryError

Policy = Callable[[Any], Any]
"""`policy(observation) -> action`; for a model of Stable-Baselines3 `lambda seen: model.predict(seen)[0]`."""


def record(
    env: gymnasium.Env[Any, Any],
    policy: Policy | None = None,
    episodes: int | None = None,
    seed: int = 0,
    *,
    steps: int | None = None,
) -> Trajectories:
    """Play whole episodes, or so many steps, and return every transition.

    Arguments:
        policy:   what to do; random actions, seeded too, when None
        episodes: stop after this many
        seed:     of the first reset and of the random actions; later episodes follow from it
        steps:    stop after this many, in the middle of an episode, which is then not `finished`

    Observations of `Dict` and `Tuple` spaces are flattened as gymnasium does it; others keep their shape and type,
    a `Discrete` one becomes a row of one number. Raises `TrajectoryError` without a place to stop.
    """
    ends = [end for end in (episodes, steps) if end is not None]
    if not ends or min(ends) < 1:
        raise TrajectoryError(f"found episodes={episodes} and steps={steps} to record, expected one of them, from 1")
    rows: list[tuple[Any, ...]] = []
    env.action_space.seed(seed)
    observation, _ = env.reset(seed=seed)
    done = 0
    while (steps is None or len(rows) < steps) and (episodes is None or done < episodes):
        seen = as_row(env.observation_space, observation)
        action = env.action_space.sample() if policy is None else policy(observation)
        observation, reward, terminated, truncated, _ = env.step(action)
        after = as_row(env.observation_space, observation)
        over = bool(terminated or truncated)
        rows.append((seen, np.asarray(action), float(reward), after, bool(terminated), over, done))
        if over:
            observation, _ = env.reset()
            done += 1
    columns = list(zip(*rows, strict=True))
    types = (None, None, np.float64, None, np.bool_, np.bool_, np.int64)
    return Trajectories(*(np.array(column, dtype) for column, dtype in zip(columns, types, strict=True)))


def as_row(space: spaces.Space[Any], observation: Any) -> NDArray[Any]:
    """A copy of one observation as an array, in a layout that vocabularies read."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        return np.array(spaces.flatten(space, observation))
    return np.atleast_1d(np.array(observation))
