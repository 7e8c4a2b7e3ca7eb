"""Converters of frameworks that are not installed: golden keys, the alignment of hand-made rows, and the way back."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nser.rollouts import Rollout, RolloutError
from nser.trainers.converters import areal, prime_rl, roll, slime
from tests.trainers.rollout_makers import rollout, rollouts, same

LOGPS = np.log([0.5, 0.25, 0.125]).astype(np.float32)
# Prompt 7 8, response 9 10 11 of which 10 came from a tool; A = 2.
ANSWER: dict[str, Any] = {
    "prompt_ids": np.array([7, 8], np.int32),
    "response_ids": np.array([9, 10, 11], np.int32),
    "response_mask": np.array([True, False, True]),
    "behavior_logps": np.array([LOGPS[0], 0, LOGPS[2]], np.float32),
    "advantage": 2.0,
    "reward": 1.0,
    "policy_version": (4, 4),
    "task": "sums",
}
EXPECTED = Rollout(**ANSWER)
L0, L2 = float(LOGPS[0]), float(LOGPS[2])


@dataclass
class TrainingSample:
    """The fields of prime-rl 0.8.0's `TrainingSample`, in their order."""

    token_ids: list[int]
    mask: list[bool]
    logprobs: list[float]
    temperatures: list[float]
    env_name: str
    ref_logprobs: list[float] | None = None
    mm_kwargs: Any = None
    routed_experts: Any = None
    mm_token_type_ids: list[int] | None = None
    rl_weights: list[float] | None = None
    ce_weights: list[float] | None = None
    ref_kl_weights: list[float] | None = None
    advantages: list[float] | None = None


def test_prime_rl_is_aligned_with_tokens() -> None:
    sample = TrainingSample(
        token_ids=[7, 8, 9, 10, 11],
        mask=[False, False, True, False, True],
        logprobs=[0, 0, L0, 0, L2],
        temperatures=[0.7] * 5,
        env_name="sums",
        advantages=[0.0, 0.0, 2.0, 0.0, 2.0],
    )
    (found,) = prime_rl.from_samples([sample], [4], [1.0])
    assert same(found, EXPECTED)
    assert found.sampling.temperature == 0.7
    (back,) = prime_rl.to_samples([found], TrainingSample)
    assert back == sample
    (weighted,) = prime_rl.to_samples([found], TrainingSample, [3.0])
    assert weighted.rl_weights == [0.0, 0.0, 3.0, 0.0, 3.0]
    assert weighted.advantages == sample.advantages


def trajectory(**extra: torch.Tensor) -> dict[str, torch.Tensor]:
    """AReaL 1.0.4 after `compute_advantages`: rolled by one, but for ids, attention and versions."""
    return {
        "input_ids": torch.tensor([[7, 8, 9, 10, 11, 0]], dtype=torch.int32),
        "loss_mask": torch.tensor([[0, 1, 0, 1, 0, 0]]).float(),
        "logprobs": torch.tensor([[0, L0, 0, L2, 0, 0]]),
        "versions": torch.tensor([[-1, -1, 4, -1, 4, -1]], dtype=torch.int32),
        "attention_mask": torch.tensor([[1, 1, 1, 1, 1, 0]]).bool(),
        "rewards": torch.tensor([1.0]),
        "advantages": torch.tensor([[0.0, 2.0, 0.0, 2.0, 0.0, 0.0]]),
        "returns": torch.tensor([[0.0, 2.0, 0.0, 2.0, 0.0, 0.0]]),
        "kl_rewards": torch.zeros(1, 6),
        "tot_rewards": torch.tensor([[0.0, 0, 0, 1.0, 0, 0]]),
    } | extra


def test_areal_is_rolled_by_one() -> None:
    (found,) = areal.from_trajectories([trajectory()])
    assert same(found, rollout(**{**ANSWER, "task": ""}))
    (back,) = areal.to_trajectories([found], trajectory(prox_logp=torch.zeros(1, 6)))
    assert back.keys() == trajectory().keys()
    for key, value in trajectory().items():
        assert back[key].dtype == value.dtype
        assert torch.equal(back[key], value[:, :5] if value.ndim == 2 else value), key
    (weighted,) = areal.to_trajectories([found], trajectory(), [0.5])
    assert weighted["advantages"].tolist() == [[0.0, 1.0, 0.0, 1.0, 0.0]]


def train_data() -> dict[str, Any]:
    """slime 0.3.1, the keys that `_convert_samples_to_train_data` gives for text."""
    return {
        "tokens": [[7, 8, 9, 10, 11]],
        "response_lengths": [3],
        "rewards": [2.0],
        "raw_reward": [1.0],
        "truncated": [1],
        "sample_indices": [0],
        "rollout_ids": [5],
        "loss_masks": [[1, 0, 1]],
        "rollout_mask_sums": [2],
        "rollout_log_probs": [[L0, -9.0, L2]],
        "source_names": ["sums"],
    }


def test_slime_holds_lists_over_the_response() -> None:
    (found,) = slime.from_train_data(train_data(), [(4, 4)])
    assert same(found, EXPECTED)
    back = slime.to_train_data([found], train_data(), [1.5])
    assert list(back) == list(train_data())
    expected = train_data() | {"rewards": [3.0], "sample_indices": [-1], "rollout_ids": [6]}
    assert back == expected | {"rollout_log_probs": [[L0, 0.0, L2]]}
    both = slime.concat([train_data(), back])
    assert both["rollout_ids"] == [5, 6]
    assert all(len(entries) == 2 for entries in both.values())


def roll_batch() -> Any:
    """ROLL: tokens padded on the right, shifted by one where log-probs and advantages are."""
    tensors = {
        "input_ids": torch.tensor([[7, 8, 9, 10, 11, 0]]),
        "attention_mask": torch.tensor([[1, 1, 1, 1, 1, 0]]),
        "position_ids": torch.tensor([[0, 1, 2, 3, 4, 4]]),
        "prompt_mask": torch.tensor([[1, 1, 0, 0, 0, 0]]).bool(),
        "response_mask": torch.tensor([[0, 0, 1, 0, 1, 0]]),
        "infer_logprobs": torch.tensor([[0, L0, 0, L2, 0]]),
        "advantages": torch.tensor([[0.0, 2.0, 0.0, 2.0, 0.0]]),
        "returns": torch.tensor([[0.0, 2.0, 0.0, 2.0, 0.0]]),
        "token_level_rewards": torch.tensor([[0.0, 0.0, 0.0, 1.0, 0.0]]),
        "response_level_rewards": torch.tensor([1.0]),
    }
    return SimpleNamespace(batch=tensors, non_tensor_batch={"domain": np.array(["sums"], object)}, meta_info={})


def test_roll_is_shifted_by_one() -> None:
    fresh = roll_batch()
    (found,) = roll.from_batch(fresh, 4)
    assert same(found, EXPECTED)
    back = roll.to_tensors([found], fresh, 0)
    assert back.keys() == fresh.batch.keys()
    for key, value in fresh.batch.items():
        assert back[key].dtype == value.dtype
        assert torch.equal(back[key], value), key
    long = roll.to_tensors([rollout(1, 4, 5)], fresh, 0)
    both = roll.concat([fresh.batch, long], 0)
    assert both["input_ids"].shape == (2, 9)
    assert both["advantages"].shape == (2, 8)
    assert roll.apply_weights(back, [4.0])["advantages"].max() == 8.0


@settings(max_examples=40, deadline=None)
@given(made=st.lists(rollouts(), min_size=1, max_size=4))
def test_rollouts_come_back_from_all_of_them(made: list[Rollout]) -> None:
    plain = [rollout(**{**fields(one), "task": "sums"}) for one in made]
    versions = [one.policy_version[0] for one in plain]
    ways = {
        "prime-rl": prime_rl.from_samples(
            prime_rl.to_samples(plain, TrainingSample), versions, [one.reward for one in plain]
        ),
        "ROLL": roll.from_batch(
            SimpleNamespace(
                batch=roll.to_tensors(plain, roll_batch(), 0),
                non_tensor_batch={"domain": np.array(["sums"] * len(plain), object)},
            ),
            0,
        ),
        "AReaL": [
            rollout(**{**fields(one), "task": "sums"})
            for one in areal.from_trajectories(areal.to_trajectories(plain, trajectory()))
        ],
    }
    for name, found in ways.items():
        assert all(same(left, right) for left, right in zip(plain, found, strict=True)), name


def fields(one: Rollout) -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__dataclass_fields__}


def test_what_does_not_fit_is_said() -> None:
    bare = TrainingSample([1], [True], [0.0], [], "sums")
    mixed = rollout(advantage=np.arange(4, dtype=np.float32))
    cases: list[tuple[Any, str]] = [
        (lambda: prime_rl.from_samples([bare], [0], [0.0]), "sample 0: advantages"),
        (lambda: prime_rl.to_samples([EXPECTED], TrainingSample, [0.0]), "weights: found"),
        (lambda: areal.from_trajectories([{}]), "input_ids: found no such key"),
        (lambda: areal.to_trajectories([EXPECTED], {"pixel_values": torch.ones(1)}), "pixel_values"),
        (lambda: slime.from_train_data({}, []), "tokens: found no such key"),
        (lambda: slime.to_train_data([mixed], train_data()), "advantage: found per token"),
        (lambda: slime.to_train_data([EXPECTED], {"teacher_log_probs": []}), "teacher_log_probs"),
        (lambda: slime.concat([train_data(), {}]), "2 sets of keys"),
        (lambda: roll.from_batch(SimpleNamespace(batch={}), 0), "input_ids: found no such key"),
        (lambda: roll.to_tensors([], roll_batch(), 0), "at least one"),
    ]
    for call, message in cases:
        with pytest.raises(RolloutError, match=message):
            call()
