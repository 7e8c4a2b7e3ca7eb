from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from nser.envs.automatic import automatic_vocabulary
from nser.envs.check import random_steps
from nser.envs.errors import NoVocabularyError
from nser.envs.known import KNOWN, Factor, Feature
from nser.envs.make import make_env
from nser.envs.toy_text import TAXI_FACTORS
from nser.grounding.errors import VocabularyError
from nser.grounding.steps import Steps, single_steps
from nser.grounding.vocabulary import Vocabulary
from nser.rules.syntax import Atom, Constant, Variable

TWO = spaces.Discrete(2)


def rows(observations: Any, actions: Any = None) -> Steps:
    table = torch.as_tensor(np.asarray(observations, dtype=np.float32))
    taken = torch.zeros(len(table), dtype=torch.int64) if actions is None else torch.as_tensor(actions)
    return single_steps(table, taken)


def value(vocabulary: Vocabulary, steps: Steps, name: str, *constants: str) -> list[float]:
    atom = Atom(name, (Variable("t"), *map(Constant, constants)))
    truth = vocabulary.signature.predicates[name].kind == "truth"
    return (vocabulary.degrees if truth else vocabulary.numbers)(atom, steps).tolist()


def test_box_gives_numbers_with_the_bounds_of_the_space() -> None:
    space = spaces.Box(np.array([-1, -np.inf, -3.4e38], np.float32), np.array([2, 0, 3.4e38], np.float32))
    vocabulary = automatic_vocabulary(space, TWO)
    bounds = [(s.name, s.low, s.high) for s in vocabulary.signature.predicates.values() if s.kind == "number"]
    assert bounds == [("x0", -1.0, 2.0), ("x1", None, 0.0), ("x2", None, None)]
    assert vocabulary.features == ("x0", "x1", "x2")
    assert vocabulary.actions == ("a0", "a1")
    assert value(vocabulary, rows([[1, 2, 3], [4, 5, 6]]), "x1") == [2, 5]


def test_box_of_several_dimensions_is_read_row_by_row() -> None:
    vocabulary = automatic_vocabulary(spaces.Box(0, 1, (2, 2)), TWO)
    for shape in ((1, 2, 2), (1, 4)):
        steps = rows(np.array([1, 2, 3, 4]).reshape(shape))
        assert [value(vocabulary, steps, f"x{i}") for i in range(4)] == [[1], [2], [3], [4]]


def test_names_and_units_of_the_user() -> None:
    names: list[str | Feature] = [Feature("height", "m", "how high it flies"), "speed"]
    vocabulary = automatic_vocabulary(spaces.Box(-1, 1, (2,)), TWO, names=names, actions=("up", "down"))
    height = vocabulary.signature.predicates["height"]
    assert (height.unit, height.doc) == ("m", "how high it flies")
    assert vocabulary.features == ("height", "speed")
    assert value(vocabulary, rows([[0, 0]], [1]), "action_is", "down") == [1]


@pytest.mark.parametrize("layout", ["[T]", "[T, 1]", "one-hot"])
def test_discrete_observation_in_every_layout(layout: str) -> None:
    vocabulary = automatic_vocabulary(spaces.Discrete(5), TWO)
    states = np.array([0, 3, 4, 3])
    observations = {"[T]": states, "[T, 1]": states[:, None], "one-hot": np.eye(5)[states]}[layout]
    for i in range(5):
        assert value(vocabulary, rows(observations), "state_is", f"s{i}") == (states == i).tolist()


def test_discrete_observation_with_a_start() -> None:
    vocabulary = automatic_vocabulary(spaces.Discrete(3, start=-1), TWO, names=["mood"])
    assert vocabulary.sorts["mood"] == ("s_minus1", "s0", "s1")
    assert value(vocabulary, rows([[-1], [1]]), "mood_is", "s_minus1") == [1, 0]
    assert value(vocabulary, rows([[1, 0, 0], [0, 0, 1]]), "mood_is", "s1") == [0, 1]


def test_multi_discrete() -> None:
    space = spaces.MultiDiscrete([3, 2])
    vocabulary = automatic_vocabulary(space, TWO)
    found = np.array([[2, 0], [1, 1]])
    one_hot = [spaces.flatten(space, row) for row in found]
    for observations in (found, one_hot):
        assert value(vocabulary, rows(observations), "x0_is", "v2") == [1, 0]
        assert value(vocabulary, rows(observations), "x1_is", "v1") == [0, 1]


def test_multi_binary() -> None:
    vocabulary = automatic_vocabulary(spaces.MultiBinary((2, 2)), TWO)
    assert value(vocabulary, rows([[0, 1, 0, 1], [1, 1, 0, 0]]), "x3") == [1, 0]
    assert vocabulary.signature.predicates["x3"].kind == "truth"


def test_dict_is_read_in_both_layouts_in_the_order_of_gymnasium() -> None:
    space = spaces.Dict(
        {
            "speed": spaces.Box(-1, 1, (2,)),
            "mode": spaces.Discrete(3),
            "inner": spaces.Dict({"flags": spaces.MultiBinary(2), "gear": spaces.MultiDiscrete([2, 4])}),
        }
    )
    vocabulary = automatic_vocabulary(space, TWO)
    assert set(vocabulary.features) == {
        "speed0",
        "speed1",
        "mode",
        "inner_flags0",
        "inner_flags1",
        "inner_gear0",
        "inner_gear1",
    }
    space.seed(0)
    samples = [space.sample() for _ in range(50)]
    parts: dict[str, Callable[[Any], Any]] = {
        "inner_flags": lambda s: s["inner"]["flags"],
        "inner_gear": lambda s: s["inner"]["gear"],
        "mode": lambda s: [s["mode"]],
        "speed": lambda s: s["speed"],
    }
    order = list(dict.fromkeys(feature.rstrip("01") for feature in vocabulary.features))
    raw = [np.concatenate([np.ravel(parts[name](sample)) for name in order]) for sample in samples]
    flat = [spaces.flatten(space, sample) for sample in samples]
    for observations in (raw, flat):
        steps = rows(observations)
        assert value(vocabulary, steps, "speed1") == [float(s["speed"][1]) for s in samples]
        assert value(vocabulary, steps, "mode_is", "v2") == [s["mode"] == 2 for s in samples]
        assert value(vocabulary, steps, "inner_flags0") == [s["inner"]["flags"][0] for s in samples]
        assert value(vocabulary, steps, "inner_gear1_is", "v3") == [s["inner"]["gear"][1] == 3 for s in samples]


def test_box_actions_are_numbers_of_the_action() -> None:
    vocabulary = automatic_vocabulary(spaces.Box(0, 1, (1,)), spaces.Box(-2, 2, (2,)))
    push = vocabulary.signature.predicates["action1"]
    assert (push.kind, push.scope, push.low, push.high) == ("number", "action", -2, 2)
    assert vocabulary.actions == ()
    assert value(vocabulary, rows([[0], [0]], [[1.0, 2.0], [3.0, 4.0]]), "action1") == [2, 4]


def test_multi_discrete_and_binary_actions() -> None:
    box = spaces.Box(0, 1, (1,))
    steps = rows([[0], [0]], [[1, 0], [2, 1]])
    assert value(automatic_vocabulary(box, spaces.MultiDiscrete([3, 2])), steps, "action0_is", "v2") == [0, 1]
    assert value(automatic_vocabulary(box, spaces.MultiBinary(2)), steps, "action1") == [0, 1]


def test_factors_unpack_a_state() -> None:
    steps = random_steps(make_env("Taxi-v4"), 300)
    env: Any = make_env("Taxi-v4").unwrapped
    vocabulary = automatic_vocabulary(env.observation_space, env.action_space, factors=TAXI_FACTORS)
    assert "state_is" not in vocabulary.predicates  # 500 constants
    decoded = [tuple(int(i) for i in env.decode(int(state))) for state in steps.observations[:, 0]]
    assert value(vocabulary, steps, "row") == [row for row, *_ in decoded]
    assert value(vocabulary, steps, "column") == [column for _, column, *_ in decoded]
    assert value(vocabulary, steps, "passenger_is", "taxi") == [passenger == 4 for *_, passenger, _ in decoded]
    assert value(vocabulary, steps, "destination_is", "blue") == [place == 3 for *_, place in decoded]


def test_few_states_stay_beside_their_factors() -> None:
    factors = [Factor("row", 4, 4, "cells", "row"), Factor("column", 1, 4, "cells", "column")]
    vocabulary = automatic_vocabulary(spaces.Discrete(16), TWO, factors=factors)
    assert list(vocabulary.predicates) == ["state_is", "row", "column", "action_is"]
    one_hot = rows(np.eye(16)[[0, 6, 15]])
    assert value(vocabulary, one_hot, "row") == [0, 1, 3]
    assert value(vocabulary, one_hot, "column") == [0, 2, 3]


@pytest.mark.parametrize(
    ("observations", "actions", "message"),
    [
        (spaces.Box(0, 255, (8, 8, 3), np.uint8), TWO, "it is an image"),
        (spaces.Box(0, 1, (2000,)), TWO, "it holds 2000 numbers, and at most 1024"),
        (spaces.Text(5), TWO, "a Text space holds no fixed row of numbers"),
        (spaces.Dict({"a": TWO, "image": spaces.Box(0, 255, (8, 8, 3), np.uint8)}), TWO, "it is an image"),
        (spaces.Discrete(100_000), TWO, "100000 values, and at most 4096"),
        (TWO, spaces.Discrete(100_000), "100000 actions, and at most 4096"),
        (TWO, spaces.Discrete(2, start=1), "don't start at 0"),
        (TWO, spaces.Tuple([TWO, TWO]), "actions made of several spaces"),
    ],
)
def test_what_has_no_vocabulary_says_why(observations: Any, actions: Any, message: str) -> None:
    with pytest.raises(NoVocabularyError, match=message):
        automatic_vocabulary(observations, actions)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": ["a"]}, "found 1 names, expected 2: one for each number, category and bit of the observation"),
        ({"names": ["a", "a"]}, "predicate a is declared twice"),
        ({"names": ["a", "next"]}, "predicate 'next'"),
        ({"actions": ["left"]}, "found 1 names of actions, expected 2"),
        ({"factors": [Factor("row", 1, 4, "", "row")]}, r"found factors of 4 states for Box.*Discrete\(4\)"),
    ],
)
def test_names_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(VocabularyError, match=message):
        automatic_vocabulary(spaces.Box(0, 1, (2,)), TWO, **options)


def test_names_for_actions_that_are_not_discrete_are_refused() -> None:
    with pytest.raises(VocabularyError, match="expected a Discrete action space"):
        automatic_vocabulary(TWO, spaces.Box(0, 1, (2,)), actions=("a", "b"))


def test_observations_of_another_width_are_refused() -> None:
    vocabulary = automatic_vocabulary(spaces.Discrete(5), TWO)
    with pytest.raises(VocabularyError, match=r"found observations of 3 columns, expected 1 .* or 5"):
        value(vocabulary, rows([[1, 2, 3]]), "state_is", "s0")


def test_no_steps_give_no_values() -> None:
    steps = Steps(torch.zeros(0, 1), torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64))
    assert value(automatic_vocabulary(spaces.Discrete(5), TWO), steps, "state_is", "s1") == []


SPACES: Sequence[Any] = (
    spaces.Box(0, 1, (3,)),
    spaces.Discrete(4),
    spaces.MultiDiscrete([2, 3]),
    spaces.MultiBinary(3),
    spaces.Dict({"a": spaces.Box(0, 1, (1,)), "b": TWO}),
    spaces.Tuple([TWO, spaces.Box(0, 1, (2,))]),
)


@pytest.mark.parametrize("observations", SPACES, ids=str)
@pytest.mark.parametrize("actions", SPACES[:4], ids=str)
def test_vocabularies_survive_pickling(observations: Any, actions: Any) -> None:
    vocabulary = automatic_vocabulary(observations, actions)
    copy = pickle.loads(pickle.dumps(vocabulary))
    assert copy.predicates == vocabulary.predicates
    assert copy.signature == vocabulary.signature


@pytest.mark.parametrize("name", KNOWN)
def test_every_name_of_the_table_may_stand_in_a_rule(name: str) -> None:
    known = KNOWN[name]
    space: Any = spaces.Box(0, 1, (len(known.features),)) if known.features else spaces.Discrete(4)
    actions: Any = spaces.Discrete(len(known.actions)) if known.actions else spaces.Box(-1, 1, (1,))
    vocabulary = automatic_vocabulary(space, actions, known.features or None, actions=known.actions or None)
    meanings = [signature.doc for signature in vocabulary.signature.predicates.values()]
    assert all(meanings)
