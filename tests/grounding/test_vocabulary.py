from __future__ import annotations

import pickle
import re

import pytest
import torch
from torch import Tensor

from nser.grounding.errors import DegreeError, VocabularyError
from nser.grounding.steps import Steps, single_steps
from nser.grounding.vocabulary import Vocabulary, number, predicate, written
from nser.rules.syntax import Atom, Constant, Variable
from tests.grounding.world import WORLD, hot, random_steps

T = Variable("t")


def test_signature_holds_what_was_declared() -> None:
    near = WORLD.signature.predicates["near"]
    assert near.sorts == ("thing",)
    assert near.doc == "The agent stands beside the thing"
    height = WORLD.signature.predicates["height"]
    assert (height.kind, height.unit, height.low, height.high) == ("number", "m", -2.0, 2.0)
    assert WORLD.signature.sorts["action"] == ("left", "right", "forward")


def test_ground_atoms_are_every_combination_in_order() -> None:
    assert [written(atom) for atom in WORLD.ground_atoms()] == ["hot(t)", "near(t, cup)", "near(t, pan)"]
    assert [written(a) for a in WORLD.ground_atoms(("truth",), ("action",))] == [
        "action_is(t, left)",
        "action_is(t, right)",
        "action_is(t, forward)",
    ]


def test_actions_are_told_apart() -> None:
    steps = single_steps(torch.zeros(3, 5), torch.tensor([0, 2, 1]))
    atom = Atom("action_is", (T, Constant("forward")))
    assert WORLD.degrees(atom, steps).tolist() == [0, 1, 0]


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -0.01, 1.01])
def test_a_degree_that_is_none_names_predicate_and_row(wrong: float) -> None:
    steps = random_steps(6, 0)
    steps.observations[4, 2] = wrong
    atom = Atom("near", (T, Constant("pan")))
    with pytest.raises(DegreeError) as caught:
        WORLD.degrees(atom, steps)
    assert (caught.value.name, caught.value.row) == ("near(t, pan)", 4)
    assert "row 4" in str(caught.value)
    assert WORLD.degrees(Atom("hot", (T,)), steps).shape == (6,)


def test_a_number_that_is_not_finite_names_the_feature() -> None:
    steps = random_steps(3, 0)
    steps.observations[1, 3] = float("-inf")
    with pytest.raises(DegreeError, match=re.escape("height(t) gave -inf at row 1")):
        WORLD.numbers(Atom("height", (T,)), steps)


def test_features_that_are_not_finite_are_named() -> None:
    steps = random_steps(3, 0)
    steps.observations[2, 1] = float("nan")
    with pytest.raises(DegreeError, match="feature x1 gave nan at row 2"):
        steps.require_finite()
    with pytest.raises(DegreeError, match="feature near_cup"):
        steps.require_finite(("hot", "near_cup"))


def test_steps_of_unequal_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="found 2 observations, 3 actions"):
        Steps(torch.zeros(2, 1), torch.zeros(3), torch.zeros(2))


@predicate()
def wide(steps: Steps) -> Tensor:
    """Two columns for each step."""
    return steps.observations


def test_a_predicate_of_the_wrong_shape_is_named() -> None:
    vocabulary = Vocabulary("wide", (wide,))
    with pytest.raises(VocabularyError, match=re.escape("wide(t) gave a tensor of shape (3, 5)")):
        vocabulary.degrees(Atom("wide", (T,)), random_steps(3, 0))


def test_wrong_declarations_are_refused_in_words() -> None:
    with pytest.raises(VocabularyError, match="declared twice"):
        Vocabulary("v", (hot, hot))
    with pytest.raises(VocabularyError, match="no declared predicate"):
        Vocabulary("v", (len,))  # type: ignore[arg-type]
    with pytest.raises(VocabularyError, match="takes a thing"):
        Vocabulary("v", (WORLD.predicates["near"],))
    with pytest.raises(VocabularyError, match="names a constant twice"):
        Vocabulary("v", (hot,), {"thing": ("cup", "cup")})
    with pytest.raises(VocabularyError, match="own words"):
        Vocabulary("v", (hot,), actions=("not",))
    with pytest.raises(VocabularyError, match="no docstring"):

        @number(unit="m")
        def silent(steps: Steps) -> Tensor:
            return steps.observations[:, 0]

    with pytest.raises(VocabularyError, match="what data judges"):
        Vocabulary("v", (predicate(name="good")(WORLD.predicates["hot"].function),))


def test_a_vocabulary_pickles() -> None:
    copy = pickle.loads(pickle.dumps(WORLD))
    steps = random_steps(5, 1)
    atom = Atom("hot", (T,))
    assert torch.equal(copy.degrees(atom, steps), WORLD.degrees(atom, steps))
