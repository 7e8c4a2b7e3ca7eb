from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("trl", reason="needs the extra: pip install nser[trl]")

from nser.replay import ArgumentError
from nser.rollouts import Rollout, Sampling
from nser.trainers.trl.batches import Note, check_keys, join, loss_mask, rollouts_of, tensors_of

PAD = 21
CPU = torch.device("cpu")


@st.composite
def rollouts(draw: st.DrawFn, tools: bool | None = None) -> Rollout:
    prompt = draw(st.lists(st.integers(0, 20), min_size=1, max_size=4))
    response = draw(st.lists(st.integers(0, 20), min_size=1, max_size=5))
    mask = [True] + [tools is not False and draw(st.booleans()) for _ in response[1:]]
    if tools is False:
        mask = [True] * len(response)
    logps = [draw(st.floats(-8, 0, width=32)) if trained else 0.0 for trained in mask]
    return Rollout(
        prompt_ids=np.array(prompt, np.int32),
        response_ids=np.array(response, np.int32),
        response_mask=np.array(mask),
        behavior_logps=np.array(logps, np.float32),
        advantage=draw(st.floats(-3, 3, width=32)),
        reward=draw(st.floats(-1, 1)),
        policy_version=(7, 7),
        group=draw(st.sampled_from(["a", "b"])),
    )


def same(one: Rollout, other: Rollout) -> bool:
    arrays = ("prompt_ids", "response_ids", "response_mask", "behavior_logps")
    plain = ("advantage", "reward", "group", "task", "policy_version", "sampling")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays) and all(
        getattr(one, name) == getattr(other, name) for name in plain
    )


@settings(deadline=None)
@given(st.lists(rollouts(), min_size=1, max_size=5))
def test_rollouts_come_back_from_tensors_as_they_were(stored: list[Rollout]) -> None:
    batch, behavior = tensors_of(stored, PAD, CPU)
    notes = [Note(rollout.reward, "", rollout.group, {}) for rollout in stored]
    back = rollouts_of(batch, behavior, notes, 7, Sampling())
    assert [row for row, _ in back] == list(range(len(stored)))
    assert all(same(one, other) for one, (_, other) in zip(stored, back, strict=True))
    assert batch["num_items_in_batch"] == sum(int(rollout.response_mask.sum()) for rollout in stored)


@settings(deadline=None)
@given(st.lists(rollouts(), min_size=1, max_size=4), st.lists(rollouts(tools=False), min_size=1, max_size=4))
def test_joining_is_as_good_as_collating_together(first: list[Rollout], second: list[Rollout]) -> None:
    joined = join(tensors_of(first, PAD, CPU)[0], tensors_of(second, PAD, CPU)[0], PAD)
    whole = tensors_of([*first, *second], PAD, CPU)[0]
    assert joined.keys() == whole.keys()
    for key in whole.keys() - {"num_items_in_batch", "tool_mask"}:
        assert torch.equal(joined[key], whole[key]), key
    assert torch.equal(loss_mask(joined), loss_mask(whole))


def test_the_first_value_has_a_row_for_each_rollout() -> None:
    """TRL takes the number of rows from the first value of the dictionary."""
    made = tensors_of([rollout_of([1, 2])], PAD, CPU)[0]
    assert next(iter(join(made, made, PAD).values())).shape[0] == 2
    assert next(iter(made.values())).shape[0] == 1


def test_joined_advantages_per_token_and_per_rollout_meet() -> None:
    fresh, _ = tensors_of([rollout_of([1, 2, 3]), rollout_of([4])], PAD, CPU)
    old, _ = tensors_of([rollout_of([5, 6])], PAD, CPU)
    old["advantages"] = torch.tensor([[0.25, 0.75]])
    joined = join(fresh, old, PAD)
    assert joined["advantages"].tolist() == [[0.5] * 3, [0.5] * 3, [0.25, 0.75, 0.0]]


def test_keys_that_one_side_lacks_are_filled_with_what_changes_nothing() -> None:
    fresh, _ = tensors_of([rollout_of([1, 2, 3])], PAD, CPU)
    old, _ = tensors_of([rollout_of([5])], PAD, CPU)
    fresh["importance_sampling_ratio"] = torch.tensor([[0.5]])  # one for a sequence
    old["tool_mask"] = torch.tensor([[0]])
    joined = join(fresh, old, PAD)
    assert joined["importance_sampling_ratio"].tolist() == [[0.5], [1.0]]
    assert joined["tool_mask"].tolist() == [[1, 1, 1], [0, 1, 1]]
    assert joined["completion_ids"].tolist() == [[1, 2, 3], [5, PAD, PAD]]
    assert joined["prompt_ids"].tolist() == [[3, 4], [3, 4]]


def test_rows_that_could_not_be_replayed_are_not_stored() -> None:
    batch, behavior = tensors_of([rollout_of([1, 2]) for _ in range(4)], PAD, CPU)
    batch["completion_mask"][1] = 0  # TRL masks truncated completions whole
    behavior[2, 1] = float("nan")  # the engine gave no log-probability
    notes = [Note(float("nan") if row == 3 else 1.0, "", "g", {}) for row in range(4)]
    assert [row for row, _ in rollouts_of(batch, behavior, notes, 0, Sampling())] == [0]


def rollout_of(response: list[int]) -> Rollout:
    return Rollout(
        prompt_ids=np.array([3, 4], np.int32),
        response_ids=np.array(response, np.int32),
        response_mask=np.ones(len(response), np.bool_),
        behavior_logps=np.full(len(response), -1.0, np.float32),
        advantage=0.5,
    )


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"old_logps": torch.zeros(1)}, "old_logps"),
        ({"pixel_values": torch.zeros(1)}, "pixel_values"),
        ({"advantages": None}, "advantages"),
    ],
)
def test_tensors_of_another_trainer_are_refused_by_name(change: dict[str, Any], named: str) -> None:
    batch = tensors_of([rollout_of([1])], PAD, CPU)[0]
    check_keys(batch)
    changed = {key: value for key, value in (batch | change).items() if value is not None}
    with pytest.raises(ArgumentError) as caught:
        check_keys(changed)
    assert caught.value.argument == named
