from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import gymnasium
import minigrid  # noqa: F401  registers MiniGrid's own environments
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_env_for_sb3

from nser.envs.check import check_vocabulary
from nser.envs.locked_rooms import KeyCorridor, Unlock, UnlockPickup
from nser.envs.locked_rooms_vocabulary import KEY_CORRIDOR, UNLOCK, UNLOCK_PICKUP
from nser.envs.make import make_env, register_envs, vocabulary_of
from nser.envs.open_rooms import FourRooms, LavaGap
from nser.envs.open_rooms_vocabulary import FOUR_ROOMS, LAVA_GAP
from nser.envs.seeding import EpisodeSeeds
from nser.grounding.steps import Steps, single_steps
from nser.grounding.vocabulary import Vocabulary
from nser.rules.syntax import Atom, Constant, Variable
from tests.envs import grid_twin

Told = tuple[dict[str, Any], dict[str, bool], str]
DIRECTIONS = ((1, 0), (0, 1), (-1, 0), (0, -1))


def told_by_four_rooms(env: Any) -> Told:
    x, y = env.agent_pos
    row = env.gen_obs()[FOUR_ROOMS.features.index("exit_dx") :][:2] * 16
    return grid_twin.four_rooms(env, (x + round(float(row[0])), y + round(float(row[1]))))


WORLDS: dict[str, tuple[Callable[..., Any], Vocabulary, Callable[[Any], Told]]] = {
    "MiniGrid-Unlock-v0": (Unlock, UNLOCK, grid_twin.unlock),
    "MiniGrid-UnlockPickup-v0": (UnlockPickup, UNLOCK_PICKUP, grid_twin.unlock_pickup),
    "MiniGrid-KeyCorridorS3R1-v0": (KeyCorridor, KEY_CORRIDOR, grid_twin.key_corridor),
    "MiniGrid-KeyCorridorS4R3-v0": (KeyCorridor, KEY_CORRIDOR, grid_twin.key_corridor),
    "MiniGrid-LavaGapS5-v0": (LavaGap, LAVA_GAP, grid_twin.lava_gap),
    "MiniGrid-LavaGapS7-v0": (LavaGap, LAVA_GAP, grid_twin.lava_gap),
    "MiniGrid-FourRooms-v0": (FourRooms, FOUR_ROOMS, told_by_four_rooms),
}
everywhere = pytest.mark.parametrize("env_id", WORLDS)


def values(vocabulary: Vocabulary, steps: Steps, name: str, *constants: str) -> list[float]:
    atom = Atom(name, (Variable("t"), *map(Constant, constants)))
    truth = vocabulary.signature.predicates[name].kind == "truth"
    return (vocabulary.degrees if truth else vocabulary.numbers)(atom, steps).tolist()


@everywhere
def test_observation_and_vocabulary_agree_with_the_grid_read_from_scratch(env_id: str) -> None:
    cls, vocabulary, twin = WORLDS[env_id]
    env: Any = make_env(env_id)
    assert type(env) is cls
    assert vocabulary_of(env) is vocabulary
    observations, states, agents, headings = [], [], [], []
    for observation, _ in grid_twin.wild_play(env, 900, seed=1):
        state = twin(env)
        np.testing.assert_array_equal(
            observation, grid_twin.written_down(env, *state, objects=vocabulary.sorts["object"])
        )
        assert env.observation_space.contains(observation)
        observations.append(observation)
        states.append(state)
        agents.append(env.agent_pos)
        headings.append(env.agent_dir)
    steps = single_steps(torch.as_tensor(np.array(observations)), torch.zeros(len(states), dtype=torch.int64))
    for name in states[0][1]:
        expected = [facts[name] for _, facts, _ in states]
        if name in vocabulary.predicates:
            assert values(vocabulary, steps, name) == expected, name
        assert 0 < sum(expected) < len(expected), name
    for thing in vocabulary.sorts["object"]:
        expected = [found == thing for *_, found in states]
        assert values(vocabulary, steps, "facing", thing) == expected
        assert any(expected), thing
    for target in vocabulary.sorts["target"]:
        there = [places[target] or agent for (places, *_), agent in zip(states, agents, strict=True)]
        away = [(x - a, y - b) for (x, y), (a, b) in zip(there, agents, strict=True)]
        assert values(vocabulary, steps, "dist", target) == [abs(dx) + abs(dy) for dx, dy in away]
        looks = [DIRECTIONS[heading] for heading in headings]
        expected = [dx * x + dy * y > 0 for (dx, dy), (x, y) in zip(away, looks, strict=True)]
        assert values(vocabulary, steps, "toward", target) == expected
        if "level" in vocabulary.predicates:
            assert values(vocabulary, steps, "level", target) == [dy == 0 for _, dy in away]
        for name, of in (("in_doorway", "door"), ("in_gap", "gap")):
            if of == target and name in vocabulary.predicates:
                assert values(vocabulary, steps, name) == [step == (0, 0) for step in away]


@everywhere
@pytest.mark.parametrize("partial", [False, True])
def test_world_is_minigrids_own(env_id: str, partial: bool) -> None:
    ours: Any = make_env(env_id, partial=partial)
    theirs: Any = gymnasium.make(env_id).unwrapped
    assert ours.max_steps == theirs.max_steps
    rng = np.random.default_rng(0)
    for seed in range(2):
        observation, info = ours.reset(seed=seed)
        their_observation, their_info = theirs.reset(seed=seed)
        assert info == their_info == {}
        for _ in range(120):
            assert np.array_equal(ours.grid.encode(), theirs.grid.encode())
            assert tuple(ours.agent_pos) == tuple(theirs.agent_pos)
            if partial:
                image = np.rint(observation[:147].reshape(7, 7, 3) * [10, 5, 2])
                np.testing.assert_array_equal(image, their_observation["image"])
            action = int(rng.integers(7))
            observation, *rest = ours.step(action)
            their_observation, *their_rest = theirs.step(action)
            assert rest == their_rest
            if rest[1] or rest[2]:
                break


@everywhere
@pytest.mark.parametrize("partial", [False, True])
def test_environment_checkers_are_content(env_id: str, partial: bool) -> None:
    register_envs()
    env = gymnasium.make(env_id.replace("MiniGrid-", "nser/"), partial=partial).unwrapped
    assert type(env) is WORLDS[env_id][0]
    check_env(env, skip_render_check=True)
    check_env_for_sb3(env, skip_render_check=True)


def put(env: Any, x: int, y: int, direction: int) -> None:
    env.agent_pos, env.agent_dir = (x, y), direction


def before(env: Any, thing: Any) -> None:
    """Put the agent before a thing, looking at it."""
    x, y = thing.cur_pos
    for direction, (dx, dy) in enumerate(DIRECTIONS):
        if env.grid.get(x - dx, y - dy) is None:
            put(env, x - dx, y - dy, direction)
            return
    raise AssertionError("no free cell")


def now(env: Any) -> dict[str, float]:
    return dict(zip(env.vocabulary.features, env.gen_obs().tolist(), strict=True))


def test_unlock_pickup_is_won_with_empty_hands_only() -> None:
    env: Any = UnlockPickup()
    env.reset(seed=2)
    before(env, env._key)
    env.step(3)
    assert now(env)["carrying"] == 1
    assert now(env)["key_dx"] == now(env)["key_dy"] == 0
    before(env, env._door)
    env.step(5)
    assert (now(env)["door_open"], now(env)["door_locked"]) == (1, 0)
    before(env, env._box)
    assert env.step(3)[2] is False  # its hand holds the key
    env.step(0)
    if env.grid.get(*env.front_pos) is not None:
        env.step(0)
    env.step(4)
    assert now(env)["carrying"] == 0
    before(env, env._box)
    observation, reward, terminated, *_ = env.step(3)
    assert terminated
    assert reward > 0.9
    last = dict(zip(UNLOCK_PICKUP.features, observation.tolist(), strict=True))
    assert (last["box_dx"], last["box_dy"], last["box_gone"], last["carrying"]) == (0, 0, 0, 0)


def test_a_box_that_is_opened_is_lost() -> None:
    env: Any = UnlockPickup()
    env.reset(seed=2)
    before(env, env._box)
    env.step(5)
    assert now(env)["box_gone"] == 1
    assert now(env)["facing_empty"] == 1


@everywhere
def test_episodes_can_be_played_again(env_id: str) -> None:
    env = EpisodeSeeds(make_env(env_id), seed=3)
    env.reset()
    for action in (2, 1, 2, 3, 5, 2, 0, 2):
        observation, _, terminated, *_ = env.step(action)
        if terminated:
            observation, _ = env.reset()
    copy = EpisodeSeeds(make_env(env_id), seed=0)
    np.testing.assert_array_equal(copy.restore(env.position()), observation)


@everywhere
@pytest.mark.parametrize("partial", [False, True])
def test_vocabularies_survive_pickling_and_name_every_column(env_id: str, partial: bool) -> None:
    env: Any = make_env(env_id, partial=partial)
    vocabulary = vocabulary_of(env)
    copy = pickle.loads(pickle.dumps(vocabulary))
    assert copy.signature == vocabulary.signature
    assert copy.predicates == vocabulary.predicates
    assert env.observation_space.shape == (len(vocabulary.features),)
    assert all(known.doc for known in vocabulary.signature.predicates.values())


def test_random_play_shows_every_predicate_of_the_easy_worlds() -> None:
    assert check_vocabulary(make_env("MiniGrid-LavaGapS5-v0"), steps=3000) == []
    assert check_vocabulary(make_env("MiniGrid-Unlock-v0"), steps=3000) == []


@pytest.mark.parametrize(("cls", "arguments"), [(KeyCorridor, (2, 1)), (KeyCorridor, (3, 0)), (LavaGap, (4,))])
def test_sizes_without_room_are_refused(cls: Any, arguments: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="expected at least"):
        cls(*arguments)
