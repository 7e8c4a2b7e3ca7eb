"""The record: what it refuses, what it freezes, and how it is told apart."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nser.rollouts import Rollout, RolloutError, Sampling, turn_spans
from tests.rollouts.making import content, random_rollout, rollout
from tests.rollouts.twin import spans


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("prompt_ids", [[1]], r"the shape \[1, 1\]"),
        ("prompt_ids", [-1], "ids from 0"),
        ("prompt_ids", np.array([-1], np.int32), "ids ≥ 0"),
        ("prompt_ids", [2**31], "ids from 0"),
        ("prompt_ids", [0.5], "whole numbers"),
        ("response_ids", [1, 2, 3], r"response_mask: found the shape \[4\], expected the shape \[3\]"),
        ("response_mask", [1, 0, 2, 1], "True and False"),
        ("response_mask", [True], r"the shape \[4\]"),
        ("behavior_logps", [-1.0], r"the shape \[4\]"),
        ("behavior_logps", [-1.0, 0.5, -1.0, -1.0], "0.5 at token 1, expected log-probs ≤ 0"),
        ("behavior_logps", [-1.0, math.nan, -1.0, -1.0], "nan at token 1, expected finite"),
        ("behavior_logps", [-math.inf, -1.0, -1.0, -1.0], "-inf at token 0"),
        ("behavior_logps", ["a", "b", "c", "d"], "expected numbers"),
        ("advantage", math.inf, "a finite number"),
        ("advantage", [1.0, 2.0], r"the shape \[4\]"),
        ("advantage", [1.0, 2.0, math.nan, 0.0], "nan at token 2"),
        ("reward", math.nan, "a finite number"),
        ("reward", "1", "a number"),
        ("reward", None, "a number"),
        ("reward", 10**400, "a number"),
        ("rule_scores", {"a": 1.5}, r"rule_scores\['a'\]: found 1.5, expected a number in \[0, 1\]"),
        ("rule_scores", [0.5], "a mapping"),
        ("rule_score", -0.1, r"a number in \[0, 1\]"),
        ("policy_version", (3, 2), "first ≤ last"),
        ("policy_version", 3, "a pair"),
        ("policy_version", (-1, 2), "≥ 0"),
        ("policy_version", (0.5, 2), "a whole number"),
        ("group", 3, "a text"),
        ("task", None, "a text"),
        ("uses", -1, "≥ 0"),
        ("metadata", [1], "a mapping"),
    ],
)
def test_a_field_that_does_not_fit_is_named(field: str, value: Any, expected: str) -> None:
    with pytest.raises(RolloutError, match=expected):
        rollout(**{field: value})


@pytest.mark.parametrize(
    "wrong", [{"temperature": -1.0}, {"top_p": 0.0}, {"top_p": 1.1}, {"top_k": -1}, {"source": "nobody"}]
)
def test_sampling_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(RolloutError, match=f"^{name}: found"):
        Sampling(**wrong)


def test_log_probs_of_masked_tokens_may_be_anything_finite() -> None:
    one = rollout(response_mask=[1, 0, 1, 1], behavior_logps=[-1.0, 9.0, -1.0, 0.005])
    assert one.behavior_logps[1] == 9.0
    assert one.response_mask.dtype == np.bool_


def test_arrays_are_read_only_and_of_the_right_type() -> None:
    mine = np.arange(4)
    one = rollout(response_ids=mine, advantage=np.ones(4))
    mine[0] = 99
    arrays = (one.prompt_ids, one.response_ids, one.response_mask, one.behavior_logps, one.advantage)
    assert one.response_ids.tolist() == [0, 1, 2, 3]
    assert [array.dtype for array in arrays if isinstance(array, np.ndarray)] == [
        np.int32, np.int32, np.bool_, np.float32, np.float32,
    ]  # fmt: skip
    for array in arrays:
        assert isinstance(array, np.ndarray)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        one.reward = 2.0  # type: ignore[misc]


def test_a_transcript_has_no_tokens() -> None:
    one = rollout(prompt_ids=[], response_ids=[], response_mask=[], behavior_logps=[])
    assert len(one.response_ids) == 0
    assert one.prompt_ids.dtype == np.int32


def test_the_score_of_all_rules_is_a_noisy_or_unless_given() -> None:
    assert rollout(rule_scores={"a": 0.5, "b": 0.5}).rule_score == 0.75
    assert rollout(rule_scores={"a": 0.5}, rule_score=0.1).rule_score == 0.1
    assert rollout().rule_score == 0.0


def test_keys_tell_tokens_versions_and_groups_apart_and_nothing_else() -> None:
    one = rollout(1, version=3, group="g")
    assert len(one.key) == 16
    for other in (
        rollout(1, version=3, group="g", reward=5.0, uses=2, advantage=-1.0),
        rollout(1, version=3, group="g", policy_version=(3, 4)),
    ):
        assert other.key == one.key
    for other in (
        rollout(2, version=3, group="g"),
        rollout(1, version=4, group="g"),
        rollout(1, version=3, group="h"),
        rollout(1, version=3, group="g", prompt_ids=[1, 1, 2, 1], response_ids=[5, 6, 7], response_mask=[1] * 3,
                behavior_logps=[-1] * 3),
    ):  # fmt: skip
        assert other.key != one.key


def test_age_is_the_trainers_version_minus_that_of_the_first_token() -> None:
    assert rollout(policy_version=(3, 5)).age(9) == 6
    assert rollout(policy_version=(3, 5)).age(3) == 0


def test_the_signal_of_a_per_token_advantage_is_its_mean_size_where_trained() -> None:
    assert rollout(advantage=-2.0).signal == 2.0
    assert rollout(advantage=[1.0, -3.0, 100.0, 2.0], response_mask=[1, 1, 0, 1]).signal == 2.0
    assert rollout(advantage=[1.0] * 4, response_mask=[0] * 4).signal == 0.0


@given(st.integers(0, 2**32))
def test_a_rollout_goes_through_pickle(seed: int) -> None:
    one = random_rollout(np.random.default_rng(seed))
    back: Rollout = pickle.loads(pickle.dumps(one))
    assert content(back) == content(one)


@given(st.lists(st.booleans(), max_size=30))
def test_turns_are_the_longest_runs_of_trained_tokens(mask: list[bool]) -> None:
    assert [tuple(span) for span in turn_spans(np.array(mask, np.bool_)).tolist()] == spans(mask)
