from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.env_checker import check_env as check_env_for_sb3

from nser.envs.doorkey import DoorKey
from nser.envs.errors import PositionError, ReplayDivergedError
from nser.envs.make import make_env
from nser.envs.seeding import EpisodeSeeds, episode_seed

MAKERS: dict[str, Callable[[], gymnasium.Env[Any, Any]]] = {
    "CartPole": lambda: make_env("CartPole-v1"),
    "DoorKey": lambda: DoorKey(5, max_steps=60),
    "Pendulum": lambda: make_env("Pendulum-v1"),
    "FrozenLake": lambda: make_env("FrozenLake-v1"),
}


def play(env: Any, steps: int) -> list[Any]:
    """Random actions of the environment's own action space, as Stable-Baselines3 draws them."""
    course: list[Any] = []
    for _ in range(steps):
        action = env.action_space.sample()
        observation, reward, terminated, truncated, _ = env.step(action)
        course.append((np.asarray(action).tolist(), np.asarray(observation).tolist(), reward, terminated, truncated))
        if terminated or truncated:
            course.append(np.asarray(env.reset()[0]).tolist())
    return course


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("steps", [0, 1, 137])
def test_restored_run_goes_on_bit_for_bit(name: str, steps: int) -> None:
    env = EpisodeSeeds(MAKERS[name](), seed=11)
    env.reset()
    play(env, steps)
    position = json.loads(json.dumps(env.position()))
    copy = EpisodeSeeds(MAKERS[name](), seed=99)
    observation = copy.restore(position)
    assert np.array_equal(observation, env._last)
    assert copy.position() == env.position()
    assert play(copy, 300) == play(env, 300)
    assert copy.position() == env.position()


def test_position_right_after_the_end_of_an_episode() -> None:
    env = EpisodeSeeds(MAKERS["CartPole"](), seed=5)
    env.reset()
    while not env.step(0)[2]:
        pass
    copy = EpisodeSeeds(MAKERS["CartPole"](), seed=0)
    assert np.array_equal(copy.restore(env.position()), env._last)
    assert np.array_equal(copy.reset()[0], env.reset()[0])


def test_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    runs = []
    for seed in (1, 1, 2):
        env = EpisodeSeeds(MAKERS["CartPole"](), seed)
        env.reset()
        runs.append(play(env, 100))
    assert runs[0] == runs[1] != runs[2]


def test_episode_depends_on_its_number_alone() -> None:
    long, short = (EpisodeSeeds(MAKERS["DoorKey"](), seed=3) for _ in range(2))
    long.reset()
    play(long, 150)
    number = long.episode
    for _ in range(number + 1):
        observation, _ = short.reset()
    expected = DoorKey(5).reset(seed=episode_seed(3, number))[0]
    assert np.array_equal(observation, expected)
    assert len({episode_seed(3, i) for i in range(1000)}) == 1000


def test_explicit_seed_begins_a_new_count() -> None:
    env = EpisodeSeeds(MAKERS["CartPole"](), seed=1)
    env.reset()
    env.reset()
    first = env.reset(seed=42)[0]
    assert (env.episode, env.position()["seed"]) == (0, 42)
    assert np.array_equal(first, EpisodeSeeds(MAKERS["CartPole"](), seed=42).reset()[0])


def test_options_of_the_reset_are_part_of_the_position() -> None:
    env = EpisodeSeeds(MAKERS["CartPole"](), seed=1)
    env.reset(options={"low": 0.1, "high": 0.2})
    play(env, 5)
    copy = EpisodeSeeds(MAKERS["CartPole"](), seed=1)
    copy.restore(env.position())
    assert play(copy, 50) == play(env, 50)


def test_box_actions_keep_their_bits_whatever_their_type() -> None:
    env = EpisodeSeeds(MAKERS["Pendulum"](), seed=4)
    env.reset()
    for angle in np.linspace(-2, 2, 20):
        env.step(np.array([angle]))  # float64
    position = env.position()
    assert all(type(number) is float for action in position["actions"] for number in action)
    copy = EpisodeSeeds(MAKERS["Pendulum"](), seed=0)
    assert np.array_equal(copy.restore(position), env._last)


def test_position_is_not_changed_by_later_steps() -> None:
    env = EpisodeSeeds(MAKERS["DoorKey"](), seed=1)
    env.reset()
    action = np.array(2)
    env.step(action)
    position = env.position()
    action[...] = 0
    env.step(1)
    assert position["actions"] == [2]


class Moody(gymnasium.Env[Any, Any]):
    """Ends, or shows, what another copy of it does not."""

    observation_space = spaces.Box(0, 1000, (1,))
    action_space = spaces.Discrete(2)

    def __init__(self, ends_after: int = 100, shows: int = 0) -> None:
        self.ends_after, self.shows = ends_after, shows

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.count = 0
        return np.array([self.shows], dtype=np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.count += 1
        return np.array([self.shows + self.count], np.float32), 0.0, self.count == self.ends_after, False, {}


def test_environment_that_is_not_determined_by_its_seed_is_found_out() -> None:
    env = EpisodeSeeds(Moody(), seed=0)
    env.reset()
    play(env, 10)
    position = env.position()
    with pytest.raises(ReplayDivergedError, match="the episode was over after 4 of 10 recorded actions") as caught:
        EpisodeSeeds(Moody(ends_after=4), seed=0).restore(position)
    assert (caught.value.episode, caught.value.step, caught.value.steps) == (0, 4, 10)
    with pytest.raises(ReplayDivergedError, match="the observation was another after 10 of 10"):
        EpisodeSeeds(Moody(shows=1), seed=0).restore(position)


def test_dict_observations_have_a_digest() -> None:
    env = EpisodeSeeds(make_env("MiniGrid-Empty-5x5-v0"), seed=2)
    env.reset()
    play(env, 7)
    copy = EpisodeSeeds(make_env("MiniGrid-Empty-5x5-v0"), seed=0)
    copy.restore(env.position())
    assert copy.position() == env.position()


def test_no_position_before_the_first_reset() -> None:
    with pytest.raises(PositionError, match=r"before its first reset, .* call reset\(\)"):
        EpisodeSeeds(DoorKey(5), seed=0).position()


@pytest.mark.parametrize("position", [{}, {"seed": 1}, None])
def test_what_is_no_position_is_refused(position: Any) -> None:
    with pytest.raises(PositionError, match=r"expected what position\(\) gave"):
        EpisodeSeeds(DoorKey(5), seed=0).restore(position)


def test_actions_that_can_not_be_written_down_are_refused() -> None:
    env = Moody()
    env.action_space = spaces.Dict({"a": spaces.Discrete(2)})  # type: ignore[assignment]
    with pytest.raises(PositionError, match="expected Discrete, MultiDiscrete, MultiBinary or Box"):
        EpisodeSeeds(env, seed=0)


def test_environment_checker_is_content() -> None:
    check_env_for_sb3(EpisodeSeeds(DoorKey(5), seed=0), skip_render_check=True)
