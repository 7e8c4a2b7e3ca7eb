from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from nser.envs.make import make_env
from nser.runs.environment import UNENDING, limit_of
from nser.study.greedy import GreedyEvaluations, grid_state
from nser.study.learner import StackedLearner
from nser.study.settings import study_settings
from nser.study.world import World

DOORKEY = "MiniGrid-DoorKey-5x5-v0"


@pytest.mark.parametrize("env", [DOORKEY, "MiniGrid-KeyCorridorS3R1-v0", "MiniGrid-UnlockPickup-v0"])
def test_episodes_that_go_round_count_as_if_played_to_the_end(env: str) -> None:
    """The slow twin plays every step; networks as they begin go round in nearly every episode."""
    world = World.of(env)
    learner = StackedLearner(study_settings({"env": env}), world.encode, world.inputs, world.actions, range(4))
    quick, slow = (GreedyEvaluations(world, (5, 6, 7, 8), 5, whole=whole) for whole in (False, True))
    found = quick.run(learner.greedy)
    assert found == slow.run(learner.greedy)
    assert found == quick.run(learner.greedy)  # the same layouts again
    quick.close()
    slow.close()


def solver(world: World) -> list[int]:
    """Actions that solve a layout, by breadth-first search over the states themselves."""
    paths: list[list[int]] = [[]]
    seen = set()
    env = make_env(world.env)
    while paths:
        path = paths.pop(0)
        env.reset(seed=3)
        reward = 0.0
        for action in path:
            reward = float(env.step(action)[1])
        if reward > 0:
            return path
        state = (*grid_state_by_value(env),)
        if state in seen:
            continue
        seen.add(state)
        paths += [[*path, action] for action in (0, 1, 2, 3, 5)]
    raise AssertionError("no way to the goal")


def grid_state_by_value(env: gymnasium.Env) -> tuple[object, ...]:
    world: Any = env.unwrapped
    return world.agent_pos, world.agent_dir, world.carrying is None, world.grid.encode().tobytes()


def test_an_episode_that_is_solved_counts_as_solved() -> None:
    world = World.of(DOORKEY)
    path = solver(world)
    evaluations = GreedyEvaluations(world, (0,), 1)
    evaluations._seeds = [[3]]
    steps = iter(path)
    (found,) = evaluations.run(lambda observations: np.array([[next(steps)]]))
    assert found.success == 1.0
    assert found.mean_length == len(path)
    assert found.mean_return == pytest.approx(1 - 0.9 * len(path) / 250)


def test_states_are_equal_exactly_when_the_world_is_in_the_same_state() -> None:
    env = make_env("MiniGrid-UnlockPickup-v0")
    env.reset(seed=1)
    rng = np.random.default_rng(0)
    by_value: dict[object, object] = {}
    by_identity: dict[object, object] = {}
    for action in rng.integers(7, size=3000).tolist():
        if any(env.step(action)[2:4]):
            break
        ours, theirs = grid_state(env.unwrapped), grid_state_by_value(env)
        assert by_identity.setdefault(ours, theirs) == theirs
        by_value.setdefault(theirs, ours)
    assert len(by_identity) == len(by_value) > 30


def test_elsewhere_a_state_may_come_back_and_only_the_time_limit_ends_an_episode() -> None:
    assert limit_of(make_env("CartPole-v1")) == 500
    assert limit_of(make_env(DOORKEY)) == 250
    assert limit_of(make_env("CliffWalking-v1")) is None
    world = World.of("CliffWalking-v1")  # without a time limit of its own
    up = np.zeros((1, 2), np.int64)
    (found,) = GreedyEvaluations(world, (0,), 2).run(lambda observations: up)
    assert (found.mean_length, found.mean_return) == (UNENDING, -UNENDING)
