from __future__ import annotations

import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from nser.envs.check import check_vocabulary
from nser.envs.make import make_env, vocabulary_of
from nser.grounding.steps import single_steps
from nser.grounding.vocabulary import Vocabulary
from nser.rules.syntax import Atom, Constant, Variable

MAZE = ["SFFHG", "FHFFF", "FFFHF"]


def told(vocabulary: Vocabulary, name: str, state: int, *constants: str) -> float:
    steps = single_steps(torch.tensor([[float(state)]]), torch.tensor([0]))
    atom = Atom(name, (Variable("t"), *map(Constant, constants)))
    truth = vocabulary.signature.predicates[name].kind == "truth"
    return float((vocabulary.degrees if truth else vocabulary.numbers)(atom, steps))


def follow(env: Any, state: int, action: int) -> tuple[int, float]:
    """The likeliest next state and its reward, by the environment's own table."""
    _, after, reward, _ = max(env.P[state][action])
    return int(after), float(reward)


@pytest.mark.parametrize("desc", [None, MAZE])
def test_lake_agrees_with_what_the_environment_does(desc: Any) -> None:
    env: Any = make_env("FrozenLake-v1", desc=desc, is_slippery=False)
    vocabulary, inner = vocabulary_of(env), env.unwrapped
    letters = [cell.decode() for row in inner.desc for cell in row]
    goal = divmod(letters.index("G"), inner.ncol)
    for state, letter in enumerate(letters):
        if letter in "HG":
            continue  # nothing is decided there
        place = divmod(state, inner.ncol)
        assert (told(vocabulary, "row", state), told(vocabulary, "column", state)) == place
        away = abs(place[0] - goal[0]) + abs(place[1] - goal[1])
        assert told(vocabulary, "dist", state) == away
        assert told(vocabulary, "near_goal", state) == (away <= (inner.nrow + inner.ncol) // 4)
        for action, way in enumerate(vocabulary.actions):
            after, reward = follow(inner, state, action)
            there = divmod(after, inner.ncol)
            assert told(vocabulary, "hole_ahead", state, way) == (letters[after] == "H")
            assert told(vocabulary, "edge_ahead", state, way) == (after == state)
            assert told(vocabulary, "goal_ahead", state, way) == (reward > 0)
            nearer = abs(there[0] - goal[0]) + abs(there[1] - goal[1]) < away
            assert told(vocabulary, "toward", state, way) == nearer


def test_cliff_agrees_with_what_the_environment_does() -> None:
    env: Any = make_env("CliffWalking-v1")
    vocabulary, inner = vocabulary_of(env), env.unwrapped
    for state in range(37):  # the cliff itself and the goal are never stood on
        for action, way in enumerate(vocabulary.actions):
            after, reward = follow(inner, state, action)
            assert told(vocabulary, "cliff_ahead", state, way) == (reward == -100)
            assert told(vocabulary, "edge_ahead", state, way) == (after == state and reward == -1)
            assert told(vocabulary, "goal_ahead", state, way) == (after == 47)


def test_taxi_agrees_with_what_the_environment_does() -> None:
    env: Any = make_env("Taxi-v4")
    vocabulary, inner = vocabulary_of(env), env.unwrapped
    ways = vocabulary.sorts["direction"]
    for state in range(500):
        row, column, who, end = (int(part) for part in inner.decode(state))
        picked, _ = follow(inner, state, 4)
        assert told(vocabulary, "at_passenger", state) == (picked != state)
        assert told(vocabulary, "in_taxi", state) == (who == 4)
        assert told(vocabulary, "at_destination", state) == ((row, column) == inner.locs[end])
        assert (follow(inner, state, 5)[1] == 20) == bool(
            told(vocabulary, "at_destination", state) and told(vocabulary, "in_taxi", state)
        )
        aim = inner.locs[end] if who == 4 else inner.locs[who]
        away = abs(row - aim[0]) + abs(column - aim[1])
        assert told(vocabulary, "dist", state) == away
        for action, way in enumerate(ways):
            after, _ = follow(inner, state, action)
            assert told(vocabulary, "wall_ahead", state, way) == (after == state)
            there = divmod(after // 20, 5)
            nearer = abs(there[0] - aim[0]) + abs(there[1] - aim[1]) < away
            if after != state:
                assert told(vocabulary, "toward", state, way) == nearer


@pytest.mark.parametrize(
    "env_id", ["FrozenLake-v1", "FrozenLake8x8-v1", "CliffWalking-v1", "CliffWalkingSlippery-v1", "Taxi-v4"]
)
def test_vocabularies_survive_pickling_and_mean_something(env_id: str) -> None:
    vocabulary = vocabulary_of(make_env(env_id))
    copy = pickle.loads(pickle.dumps(vocabulary))
    assert copy.predicates == vocabulary.predicates
    assert all(known.doc for known in vocabulary.signature.predicates.values())
    assert not {finding.kind for finding in check_vocabulary(make_env(env_id))} & {"broken", "out of bounds"}


def test_one_hot_states_are_read_too() -> None:
    vocabulary = vocabulary_of(make_env("FrozenLake-v1"))
    steps = single_steps(torch.eye(16), torch.zeros(16, dtype=torch.int64))
    atom = Atom("dist", (Variable("t"),))
    assert vocabulary.numbers(atom, steps).tolist() == [6 - row - column for row in range(4) for column in range(4)]


def test_wrappers_that_change_states_or_actions_get_no_map() -> None:
    env = gymnasium.wrappers.TransformObservation(
        make_env("FrozenLake-v1"), lambda state: np.array([state], dtype=np.float32), gymnasium.spaces.Box(0, 15, (1,))
    )
    assert list(vocabulary_of(env).predicates) == ["x0", "action_is"]
