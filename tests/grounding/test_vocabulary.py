from __future__ import annotations

import pickle
import re

import pytest
import torch
from torch import Tensor

from nser.grounding.errors import DegreeError, VocabularyError
from nser.grounding.steps import Steps, single_steps
from nser.grounding.vocabulary import Predicate, Vocabulary, number, predicate, written
from nser.rules.parse import parse_rule
from nser.rules.scope import check_names
from nser.rules.signature import PredicateSignature
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
        Vocabulary("v", (len,))
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
        Vocabulary("v", (Predicate(PredicateSignature("good"), hot),))
    with pytest.raises(VocabularyError, match="function hot is declared already as hot"):
        predicate(name="warm")(hot)


def test_a_vocabulary_pickles() -> None:
    copy = pickle.loads(pickle.dumps(WORLD))
    steps = random_steps(5, 1)
    atom = Atom("hot", (T,))
    assert torch.equal(copy.degrees(atom, steps), WORLD.degrees(atom, steps))


@predicate("thing", example="touched(t, cup) & ~hot(t)")
def touched(steps: Steps, thing: str) -> Tensor:
    """The hand is on the thing."""
    return steps.observations[:, 1 if thing == "cup" else 2] > 0.5


def test_booleans_will_do_for_degrees() -> None:
    vocabulary = Vocabulary("v", (hot, touched), {"thing": ("cup", "pan")})
    steps = random_steps(20, 0, crisp=True)
    found = vocabulary.degrees(Atom("touched", (T, Constant("pan"))), steps)
    assert found.dtype == torch.float32
    assert torch.equal(found, steps.observations[:, 2])


def test_every_predicate_has_an_example_that_parses_and_checks() -> None:
    vocabulary = Vocabulary("v", (*WORLD.declared, touched), dict(WORLD.sorts), WORLD.actions)
    assert vocabulary.examples == {
        "hot": "hot(t)",
        "near": "near(t, cup)",
        "height": "height(t) < 0",
        "clock": "clock(t) < 0",
        "touched": "touched(t, cup) & ~hot(t)",
        "action_is": "action_is(t, left)",
    }
    for example in vocabulary.examples.values():
        rule = parse_rule(f"rule example: forall t in step: {example} -> good(t)")
        assert check_names(rule, vocabulary.signature) == ()


@pytest.mark.parametrize(
    ("example", "message"),
    [
        ("touched(t, cup", "is no formula: R101 at line 1, column 15"),
        ("touched(t, cop)", "did you mean `cup`"),
        ("touched(t)", r"expected 2, as in `touched\(t, thing\)`"),
        ("touched(t, cup) < 3", "the truth of `touched` in a comparison"),
        ("touched(t, cup) & hat(t)", "did you mean `hot`"),
        ("hot(t)", r"doesn't use it; expected touched\(t…\) in it"),
    ],
)
def test_example_that_is_no_use_is_refused(example: str, message: str) -> None:
    declared = Predicate(touched.declared.signature, touched, example)  # type: ignore[attr-defined]
    with pytest.raises(VocabularyError, match=message):
        Vocabulary("v", (hot, declared), {"thing": ("cup", "pan")})


def test_functions_that_do_not_fit_their_sorts_are_refused() -> None:
    with pytest.raises(
        VocabularyError, match=r"function alone\(steps: 'Steps'\) -> 'Tensor', expected \(steps, thing\)"
    ):

        @predicate("thing")
        def alone(steps: Steps) -> Tensor:
            """Takes no thing."""
            return steps.observations[:, 0]

    with pytest.raises(VocabularyError, match="the parentheses are needed"):
        predicate(hot)  # type: ignore[arg-type]
    with pytest.raises(VocabularyError, match="bounds 2 to 1"):
        number(unit="m", low=2, high=1)
    with pytest.raises(VocabularyError, match="known: thinga, action; did you mean thinga"):
        Vocabulary("v", (touched,), {"thinga": ("cup",), "action": ()})


@predicate()
def listed(steps: Steps) -> Tensor:
    """Gives a list."""
    return [1.0] * len(steps)  # type: ignore[return-value]


def test_what_is_no_tensor_is_named() -> None:
    with pytest.raises(VocabularyError, match="gave a list, expected a tensor of 3 degrees"):
        Vocabulary("v", (listed,)).degrees(Atom("listed", (T,)), random_steps(3, 0))
