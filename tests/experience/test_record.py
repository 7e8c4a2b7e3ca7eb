from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from nser.experience.record import record
from nser.experience.trajectories import FIELDS, TrajectoryError


def test_recorded_episodes_follow_from_the_seed() -> None:
    def play(seed: int) -> Any:
        return record(gymnasium.make("CartPole-v1"), episodes=3, seed=seed)

    one, same, other = play(5), play(5), play(6)
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(one, name), getattr(same, name))
    assert not np.array_equal(one.observations[0], other.observations[0])
    assert one.complete.all()
    assert len(one.starts) == 3
    assert one.rewards.sum() == len(one)
    inside = ~one.finished[:-1]
    np.testing.assert_array_equal(one.observations[1:][inside], one.next_observations[:-1][inside])


def test_the_policy_decides() -> None:
    played = record(gymnasium.make("CartPole-v1"), lambda seen: int(seen[2] > 0), episodes=1)
    assert played.actions.tolist() == (played.observations[:, 2] > 0).tolist()


def test_steps_may_stop_an_episode() -> None:
    played = record(gymnasium.make("CartPole-v1"), steps=25, episodes=100)
    assert len(played) == 25
    assert not played.finished[-1] or played.terminated[-1]
    assert record(gymnasium.make("FrozenLake-v1"), steps=4).observations.shape == (4, 1)


class Several(gymnasium.Env[Any, Any]):
    observation_space = spaces.Dict({"b": spaces.Discrete(3), "a": spaces.Box(0, 1, (2,))})
    action_space = spaces.MultiDiscrete([2, 3])

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return {"b": 1, "a": np.array([0.5, 0.25], np.float32)}, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return {"b": 2, "a": np.zeros(2, np.float32)}, 1.0, False, True, {}


def test_dictionaries_are_flattened_as_gymnasium_does() -> None:
    played = record(Several(), episodes=2)
    assert played.observations.tolist() == [[0.5, 0.25, 0, 1, 0]] * 2
    assert played.next_observations.tolist() == [[0, 0, 0, 0, 1]] * 2
    assert played.steps().actions.shape == (2, 2)
    assert played.finished.all()
    assert not played.terminated.any()


@pytest.mark.parametrize("arguments", [{}, {"episodes": 0}, {"steps": 0}])
def test_a_recording_needs_an_end(arguments: dict[str, Any]) -> None:
    with pytest.raises(TrajectoryError, match="to record, expected one of them"):
        record(gymnasium.make("CartPole-v1"), **arguments)
