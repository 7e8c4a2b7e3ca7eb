"""What a stack trains in: one environment for each of its members, in lockstep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from nser.envs.make import vocabulary_of
from nser.grounding.vocabulary import Vocabulary
from nser.runs.environment import evaluation_env, training_env
from nser.study.errors import StudyError

Observations = NDArray[np.float32]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class World:
    """What an environment's id says about observations and actions.

    width:   numbers of an observation as it is stored, and as rules read it
    inputs:  numbers of it as a network reads it: a Discrete observation is stored as one number and read one-hot
    seen:    columns that the network reads, None for all; rules read every column
    """

    env: str
    width: int
    inputs: int
    actions: int
    vocabulary: Vocabulary
    seen: Ints | None = None

    @classmethod
    def of(cls, env_id: str, unseen: Sequence[str] = ()) -> World:
        """A world whose network does not see the features that these patterns name (`facing_*`).

        Raises `UnknownEnvironmentError`, and `StudyError` for spaces that a stacked DQN can't take and for a pattern
        that names no feature.
        """
        env = evaluation_env(env_id)
        if not isinstance(env.action_space, spaces.Discrete):
            raise StudyError(
                f"found action space {env.action_space} of {env_id}, expected Discrete: a study trains DQN"
            )
        match env.observation_space:
            case spaces.Box() as box if box.dtype != np.uint8:
                width = inputs = int(np.prod(box.shape))
            case spaces.Discrete() as discrete:
                width, inputs = 1, int(discrete.n)
            case other:
                raise StudyError(
                    f"found observation space {other} of {env_id}, expected a Box of floats or Discrete; "
                    "a study of images takes --agent sb3"
                )
        vocabulary = vocabulary_of(env)
        env.close()
        seen = _seen(vocabulary.columns(width), unseen, env_id) if unseen else None
        return cls(env_id, width, inputs if seen is None else len(seen), int(env.action_space.n), vocabulary, seen)

    def stored(self, observation: Any) -> Observations:
        """[width] an observation as it is stored."""
        return np.asarray(observation, np.float32).reshape(self.width)

    def encode(self, observations: Observations) -> Observations:
        """[…, inputs] what a network reads of stored observations […, width]."""
        if self.seen is not None:
            return observations.take(self.seen, axis=-1)
        if self.inputs == self.width:
            return observations
        one_hot = np.zeros((*observations.shape[:-1], self.inputs), np.float32)
        np.put_along_axis(one_hot, observations.astype(np.int64), 1.0, axis=-1)
        return one_hot


def _seen(features: Sequence[str], unseen: Sequence[str], env_id: str) -> Ints:
    """Columns of the features that no pattern names."""
    for pattern in unseen:
        if not any(fnmatchcase(feature, pattern) for feature in features):
            raise StudyError(
                f"found unseen={pattern!r}, which names no feature of {env_id}; expected some of {', '.join(features)}"
            )
    columns = [
        column
        for column, feature in enumerate(features)
        if not any(fnmatchcase(feature, pattern) for pattern in unseen)
    ]
    if not columns:
        raise StudyError(f"found unseen={','.join(unseen)}, which leaves the network nothing to see of {env_id}")
    return np.array(columns, np.int64)


@dataclass(frozen=True)
class Stepped:
    """What a step gave: [S, …] as in `Transitions`; `success` holds member and verdict of each finished episode."""

    rewards: NDArray[np.float32]
    next_observations: Observations
    terminated: NDArray[np.bool_]
    finished: NDArray[np.bool_]
    success: tuple[tuple[int, bool | None], ...]


class TrainingEnvs:
    """One environment for each member; one that has finished begins its next episode at once.

    `observations` [S, width] are those to act on now.
    """

    def __init__(self, world: World, seeds: Sequence[int]) -> None:
        self.world = world
        self.envs = [training_env(world.env, seed) for seed in seeds]
        self.observations = np.stack([world.stored(env.reset()[0]) for env in self.envs])

    def step(self, actions: NDArray[np.int64]) -> Stepped:
        """Take actions [S]."""
        count = len(self.envs)
        rewards, after = np.zeros(count, np.float32), np.empty_like(self.observations)
        terminated, finished = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        success: list[tuple[int, bool | None]] = []
        for i, action in enumerate(actions.tolist()):
            observation, rewards[i], terminated[i], truncated, info = self.envs[i].step(action)
            after[i] = self.world.stored(observation)
            if terminated[i] or truncated:
                finished[i] = True
                success.append((i, info.get("is_success")))
        self.observations = after.copy()
        for i, _ in success:
            self.observations[i] = self.world.stored(self.envs[i].reset()[0])
        return Stepped(rewards, after, terminated, finished, tuple(success))

    def close(self) -> None:
        """Close them all."""
        for env in self.envs:
            env.close()
