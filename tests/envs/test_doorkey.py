from __future__ import annotations

import pickle
from typing import Any

import gymnasium
import minigrid  # noqa: F401  registers MiniGrid's own environments
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_env_for_sb3
from stable_baselines3.common.vec_env import DummyVecEnv

from nser.envs.doorkey import DOORKEY, DOORKEY_VIEW, DoorKey
from nser.envs.doorkey_features import ACTIONS, COLUMN, FEATURES
from nser.envs.make import register_envs
from nser.grounding.steps import Steps, single_steps
from nser.grounding.vocabulary import Vocabulary
from nser.rules.syntax import Atom, Constant, Variable
from tests.envs.twin import distance, facts, slow_observation, wild_play

SIZES = (5, 6, 8, 12)


def atom(name: str, *constants: str) -> Atom:
    return Atom(name, (Variable("t"), *map(Constant, constants)))


def truths(vocabulary: Vocabulary, steps: Steps, name: str, *constants: str) -> list[bool]:
    degrees = vocabulary.degrees(atom(name, *constants), steps)
    assert set(degrees.tolist()) <= {0.0, 1.0}
    return [bool(degree) for degree in degrees]


@pytest.mark.parametrize("size", SIZES)
def test_observation_agrees_with_the_grid_read_from_scratch(size: int) -> None:
    env = DoorKey(size)
    space: Any = env.observation_space
    seen = []
    for observation, _ in wild_play(env, 3000, seed=size):
        np.testing.assert_array_equal(observation, slow_observation(env))
        assert env.observation_space.contains(observation)
        seen.append(observation)
    table = np.array(seen)
    for feature in FEATURES[:-1]:  # play has been everywhere, so a bound that was not reached is too wide
        if not feature.startswith(("key_", "door_d")):  # these need one layout in hundreds
            column = COLUMN[feature]
            bounds = space.low[column], space.high[column]
            assert (table[:, column].min(), table[:, column].max()) == bounds, feature


@pytest.mark.parametrize("size", SIZES)
def test_vocabulary_tells_the_facts_of_the_grid(size: int) -> None:
    env = DoorKey(size)
    observations, actions, states = [], [], []
    for observation, action in wild_play(env, 2500, seed=100 + size):
        observations.append(observation)
        actions.append(action)
        states.append(facts(env))
    steps = single_steps(torch.as_tensor(np.array(observations)), torch.as_tensor(actions))
    for name in ("carrying", "door_open", "door_locked", "past_door", "in_doorway"):
        expected = [state[name] for state in states]
        assert truths(DOORKEY, steps, name) == expected, name
        assert 0 < sum(expected) < len(expected), name
    for thing in ("key", "door", "goal", "wall", "empty"):
        expected = [state["facing"] == thing for state in states]
        assert truths(DOORKEY, steps, "facing", thing) == expected, thing
        assert any(expected), thing
    for target in ("key", "door", "goal"):
        found = DOORKEY.numbers(atom("dist", target), steps).tolist()
        assert found == [distance(state, target) for state in states], target
    for number, action_name in enumerate(ACTIONS):
        assert truths(DOORKEY, steps, "action_is", action_name) == [a == number for a in actions]


def test_key_dropped_elsewhere_is_found_there() -> None:
    env = DoorKey(6)
    env.reset(seed=3)
    key_x, key_y = env._key.cur_pos
    places = [(key_x - dx, key_y - dy, d) for d, (dx, dy) in enumerate([(1, 0), (0, 1), (-1, 0), (0, -1)])]
    x, y, direction = next((x, y, d) for x, y, d in places if env.grid.get(x, y) is None)
    env.agent_pos, env.agent_dir = (x, y), direction
    held = env.step(3)[0]
    assert held[COLUMN["carrying"]] == 1
    assert held[COLUMN["key_dx"]] == held[COLUMN["key_dy"]] == 0
    np.testing.assert_array_equal(held, slow_observation(env))
    for _ in range(4):
        if env.grid.get(*env.front_pos) is None:
            break
        env.step(0)
    put = env.step(4)[0]
    assert put[COLUMN["carrying"]] == 0
    assert put[COLUMN["facing_key"]] == 1
    np.testing.assert_array_equal(put, slow_observation(env))


@pytest.mark.parametrize("partial", [False, True])
def test_world_is_minigrids_own(partial: bool) -> None:
    ours = DoorKey(6, partial=partial)
    theirs: Any = gymnasium.make("MiniGrid-DoorKey-6x6-v0").unwrapped
    rng = np.random.default_rng(0)
    for seed in range(4):
        observation, info = ours.reset(seed=seed)
        their_observation, their_info = theirs.reset(seed=seed)
        done = False
        while not done:
            assert np.array_equal(ours.grid.encode(), theirs.grid.encode())
            assert tuple(ours.agent_pos) == tuple(theirs.agent_pos)
            if partial:
                assert_is_the_view(observation, their_observation, ours)
            action = int(rng.integers(7))
            observation, *rest = ours.step(action)
            their_observation, *their_rest = theirs.step(action)
            assert rest == their_rest
            done = rest[1] or rest[2]
        assert info == their_info == {}
    assert ours.max_steps == theirs.max_steps == 360


def assert_is_the_view(observation: Any, theirs: Any, env: DoorKey) -> None:
    image = np.rint(observation[:147].reshape(7, 7, 3) * [10, 5, 2])
    np.testing.assert_array_equal(image, theirs["image"])
    assert observation[147:151].argmax() == theirs["direction"]
    assert observation[151] == (env.carrying is not None)


def test_reward_of_a_success_is_minigrids_own() -> None:
    env = DoorKey(5)
    env.reset(seed=0)
    env.agent_pos, env.agent_dir = (3, 2), 1
    observation, reward, terminated, truncated, _ = env.step(2)
    assert (terminated, truncated) == (True, False)
    assert reward == 1 - 0.9 * 1 / 250
    assert observation[COLUMN["goal_dx"]] == observation[COLUMN["goal_dy"]] == 0


def test_view_vocabulary_tells_the_facts_of_the_grid() -> None:
    env = DoorKey(6, partial=True)
    observations, states, views = [], [], []
    for observation, _ in wild_play(env, 600, seed=5):
        observations.append(observation)
        states.append(facts(env))
        views.append(np.rint(observation[:147].reshape(49, 3) * [10, 5, 2]).tolist())
    steps = single_steps(torch.as_tensor(np.array(observations)), torch.zeros(len(observations), dtype=torch.int64))
    assert truths(DOORKEY_VIEW, steps, "carrying") == [state["carrying"] for state in states]
    for thing in ("key", "door", "goal", "wall", "empty"):
        facing = truths(DOORKEY_VIEW, steps, "facing", thing)
        assert facing == [state["facing"] == thing for state in states], thing
    for target, code in (("key", 5), ("door", 4), ("goal", 8)):
        expected = [any(cell[0] == code for cell in view) for view in views]
        assert truths(DOORKEY_VIEW, steps, "sees", target) == expected
    for name, fact in (("sees_open_door", "door_open"), ("sees_locked_door", "door_locked")):
        door = truths(DOORKEY_VIEW, steps, "sees", "door")
        expected = [sees and state[fact] for sees, state in zip(door, states, strict=True)]
        assert truths(DOORKEY_VIEW, steps, name) == expected


def test_all_sizes_share_one_space() -> None:
    assert all(DoorKey(size).observation_space == DoorKey(5).observation_space for size in SIZES)


@pytest.mark.parametrize("partial", [False, True])
def test_environment_checkers_are_content(partial: bool) -> None:
    register_envs()
    env = gymnasium.make("nser/DoorKey-6x6-v0", partial=partial).unwrapped
    check_env(env, skip_render_check=True)
    check_env_for_sb3(env, skip_render_check=True)


def test_frames_are_drawn_on_request() -> None:
    env = DoorKey(5, render_mode="rgb_array")
    env.reset(seed=0)
    frame = env.render()  # type: ignore[no-untyped-call]
    assert frame.dtype == np.uint8
    assert frame.shape == (160, 160, 3)


def test_runs_in_a_vector_environment() -> None:
    env = DummyVecEnv([lambda: DoorKey(5), lambda: DoorKey(5)])
    assert np.asarray(env.reset()).shape == (2, len(FEATURES))
    observations, *_ = env.step(np.array([2, 3]))
    assert np.asarray(observations).shape == (2, len(FEATURES))


@pytest.mark.parametrize("vocabulary", [DOORKEY, DOORKEY_VIEW])
def test_vocabularies_survive_pickling(vocabulary: Vocabulary) -> None:
    copy = pickle.loads(pickle.dumps(vocabulary))
    assert copy.signature == vocabulary.signature
    assert copy.features == vocabulary.features
    assert copy.predicates == vocabulary.predicates


def test_every_predicate_has_a_meaning() -> None:
    for vocabulary in (DOORKEY, DOORKEY_VIEW):
        assert all(predicate.doc for predicate in vocabulary.signature.predicates.values())


def test_size_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="found DoorKey of size 4, expected at least 5"):
        DoorKey(4)


@pytest.mark.parametrize("action", [7, -1])
def test_unknown_action_is_refused(action: int) -> None:
    env = DoorKey(5)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="Unknown action"):
        env.step(action)
