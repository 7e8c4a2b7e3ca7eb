"""The environment of a run: symbolic, counted, told what success is, and resumable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
from gymnasium import spaces
from gymnasium.wrappers import FlattenObservation, TimeLimit
from stable_baselines3.common.monitor import Monitor

from nser.envs.make import make_env
from nser.envs.seeding import EpisodeSeeds
from nser.runs.errors import UnsuitedEnvironmentError

NUMERIC = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
UNENDING = 1_000  # steps after which an episode of a world without a time limit is cut


class SuccessInfo(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Put `is_success` into the last info of every episode where the environment has a notion of it.

    In this order: the environment's own `is_success`; for a MiniGrid world, whether it ended with a reward; the
    return threshold of the environment's registration. Elsewhere infos stay as they are.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        base: Any = env.unwrapped
        self._goal_world = hasattr(base, "agent_dir") and hasattr(base, "grid")  # no import of MiniGrid for others
        self._threshold = env.spec.reward_threshold if env.spec is not None else None
        self._total = 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """A new episode: nothing earned yet."""
        self._total = 0.0
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """The environment's step, with the verdict at the end."""
        observation, reward, terminated, truncated, info = super().step(action)
        self._total += float(reward)
        if (terminated or truncated) and "is_success" not in info:
            if self._goal_world:
                info["is_success"] = bool(terminated and self._total > 0)
            elif self._threshold is not None:
                info["is_success"] = self._total >= self._threshold
        return observation, reward, terminated, truncated, info


def evaluation_env(env_id: str) -> gymnasium.Env[Any, Any]:
    """An environment for greedy episodes, all of which end, with one array as its observation.

    Raises `UnknownEnvironmentError`, and `UnsuitedEnvironmentError` for observations that hold more than numbers.
    """
    return SuccessInfo(_ending(_one_array(make_env(env_id), env_id)))


def training_env(env_id: str, seed: int, *, renders: bool = False) -> EpisodeSeeds[Any, Any]:
    """The same for learning: episodes counted and seeded one by one, so that a run can go on where it was.

    The monitor stands inside, so that an episode which is played again after a resume is counted in full. One that
    `renders` can be asked for a picture of its state.
    """
    made = make_env(env_id, render_mode="rgb_array") if renders else make_env(env_id)
    return EpisodeSeeds(Monitor(SuccessInfo(_ending(_one_array(made, env_id)))), seed)


def _one_array(env: gymnasium.Env[Any, Any], env_id: str) -> gymnasium.Env[Any, Any]:
    """The same with `Dict` and `Tuple` observations flattened to a row, categories one-hot, as vocabularies read it."""
    for part in _leaves(env.observation_space):
        if not isinstance(part, NUMERIC):
            raise UnsuitedEnvironmentError(
                f"found a {type(part).__name__} in the observations of {env_id}, expected numbers; register it with a "
                "wrapper that leaves it out or makes numbers of it"
            )
    return FlattenObservation(env) if isinstance(env.observation_space, spaces.Dict | spaces.Tuple) else env


def _leaves(space: spaces.Space[Any]) -> Iterator[spaces.Space[Any]]:
    match space:
        case spaces.Dict():
            parts = tuple(space.spaces.values())
        case spaces.Tuple():
            parts = space.spaces
        case _:
            yield space
            return
    for part in parts:
        yield from _leaves(part)


def limit_of(env: gymnasium.Env[Any, Any]) -> int | None:
    """Steps until the time limit of an environment; None where it has none."""
    own = getattr(env.unwrapped, "max_steps", None)
    told = env.spec.max_episode_steps if env.spec is not None else None
    limit = own or told
    return int(limit) if limit else None


def _ending(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """The same with a time limit where it has none (CliffWalking): a greedy policy may go round for ever in it."""
    return env if limit_of(env) else TimeLimit(env, UNENDING)
