"""Runs that can be resumed bit for bit: an episode is its seed and its actions, so neither needs pickling."""

from __future__ import annotations

import zlib
from typing import Any, TypeVar

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from nser.envs.errors import PositionError, ReplayDivergedError

Observation = TypeVar("Observation")
Action = TypeVar("Action")

REPLAYABLE = (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary, spaces.Box)


class EpisodeSeeds(gymnasium.Wrapper[Observation, Action, Observation, Action], RecordConstructorArgs):
    """Seed every episode by (seed, number of the episode), and remember the actions since its reset.

    >>> from nser.envs.make import make_env
    >>> env = EpisodeSeeds(make_env("CartPole-v1"), seed=7)
    >>> _ = env.reset()
    >>> _ = [env.step(action) for action in (0, 1, 1)]
    >>> copy = EpisodeSeeds(make_env("CartPole-v1"), seed=0)
    >>> _ = copy.restore(env.position())
    >>> (env.step(0)[0] == copy.step(0)[0]).all()
    np.True_

    The seed of an episode is `SeedSequence(seed, spawn_key=(episode,))`, so episode 1000 is the same whatever
    happened in the 999 before it. `reset(seed=…)` sets the base seed anew and counts episodes from 0 again.

    `action_space` is seeded with the base seed and its generator is part of the position, because
    Stable-Baselines3 draws its random actions from it (more exactly: from the model's `action_space`, which is
    this very object until a model is loaded from a file; a host that loads one must hand it over again).

    Wrap it last, around `Monitor`, `TimeLimit` and frame stacks: what stands inside is played again with the
    environment, what stands outside is not. State that outlives an episode (the statistics of
    `NormalizeObservation`) is not restored. The observation must not be changed in place by its reader; its
    digest, taken when the position is asked for, tells whether an episode played again came out the same.

    Actions of a `Box` are converted to the space's type before they reach the environment, so that an episode
    played again gets the same bits. Raises `PositionError` for action spaces other than Discrete,
    MultiDiscrete, MultiBinary and Box.
    """

    def __init__(self, env: gymnasium.Env[Observation, Action], seed: int) -> None:
        RecordConstructorArgs.__init__(self, seed=seed)
        super().__init__(env)
        if not isinstance(self.action_space, REPLAYABLE):
            raise PositionError(
                f"found action space {self.action_space}, expected Discrete, MultiDiscrete, MultiBinary or Box: "
                "other actions can't be written down as plain numbers"
            )
        self._array = None if isinstance(self.action_space, spaces.Discrete) else self.action_space.dtype
        self._actions: list[Any] = []
        self._options: dict[str, Any] | None = None
        self._last: Any = None
        self._episode = -1
        self._start_from(seed)

    @property
    def episode(self) -> int:
        """Number of the present episode, from 0; −1 before the first reset."""
        return self._episode

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin the next episode; a `seed` becomes the base seed and makes this episode 0."""
        if seed is not None:
            self._start_from(seed)
        self._episode += 1
        return self._begin(options)

    def step(self, action: Action) -> tuple[Observation, Any, bool, bool, dict[str, Any]]:
        """The environment's own step; the action is remembered."""
        taken: Any = action if self._array is None else np.asarray(action, dtype=self._array)
        self._actions.append(int(taken) if self._array is None else taken.tolist())
        result = self.env.step(taken)
        self._last = result[0]
        return result

    def position(self) -> dict[str, Any]:
        """Where the run stands, in plain JSON values: base seed, episode, actions since its reset.

        Raises `PositionError` before the first reset.
        """
        if self._episode < 0:
            raise PositionError("found a run before its first reset, which has no position yet; call reset()")
        return {
            "seed": self._base_seed,
            "episode": self._episode,
            "options": self._options,
            "actions": list(self._actions),
            "digest": _digest(self._last),
            "action_rng": self.action_space.np_random.bit_generator.state,
        }

    def restore(self, position: dict[str, Any]) -> Observation:
        """Play the episode of `position` again up to there, and return the present observation.

        Raises `PositionError` for something that is no position, and `ReplayDivergedError` where the episode
        ends early or the last observation is not the one on record.
        """
        try:
            seed, episode, options = position["seed"], position["episode"], position["options"]
            actions, digest, action_rng = position["actions"], position["digest"], position["action_rng"]
        except (KeyError, TypeError) as error:
            raise PositionError(f"found no {error} in the position, expected what position() gave") from error
        self._start_from(seed)
        self._episode = episode
        observation, _ = self._begin(options)
        over = False
        for played, action in enumerate(actions):
            if over:
                raise ReplayDivergedError(episode, played, len(actions), "the episode was over")
            taken = np.int64(action) if self._array is None else np.asarray(action, dtype=self._array)
            observation, _, terminated, truncated, _ = self.step(taken)  # type: ignore[arg-type]
            over = terminated or truncated
        if _digest(observation) != digest:
            raise ReplayDivergedError(episode, len(actions), len(actions), "the observation was another")
        self.action_space.np_random.bit_generator.state = action_rng
        return observation

    def _start_from(self, seed: int) -> None:
        self._base_seed, self._episode = int(seed), -1
        self.action_space.seed(self._base_seed)

    def _begin(self, options: dict[str, Any] | None) -> tuple[Observation, dict[str, Any]]:
        self._actions, self._options = [], options
        observation, info = self.env.reset(seed=episode_seed(self._base_seed, self._episode), options=options)
        self._last = observation
        return observation, info


def episode_seed(seed: int, episode: int) -> int:
    """The seed of one episode, a number in [0, 2³²).

    >>> episode_seed(7, 0), episode_seed(7, 1), episode_seed(8, 0)
    (1201125462, 3618983171, 3257320810)
    """
    return int(np.random.SeedSequence(seed, spawn_key=(episode,)).generate_state(1)[0])


def _digest(observation: Any) -> int:
    """A checksum of an observation's bits, whatever it is made of."""
    if isinstance(observation, dict):
        return zlib.crc32(str([(key, _digest(part)) for key, part in sorted(observation.items())]).encode())
    if isinstance(observation, tuple):
        return zlib.crc32(str([_digest(part) for part in observation]).encode())
    if isinstance(observation, str):
        return zlib.crc32(observation.encode())
    return zlib.crc32(np.ascontiguousarray(observation).tobytes())
