"""Collation: every token where it belongs, and nothing anywhere else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nser.rollouts import Batch, Rollout, RolloutError, apply_weights, concat, pad_batch
from tests.rollouts.making import random_rollout, rollout

PAD = 7


def some(seed: int, count: int, **fields: object) -> list[Rollout]:
    rng = np.random.default_rng(seed)
    return [random_rollout(rng, version=3, **fields) for _ in range(count)]


def check(batch: Batch, rollouts: list[Rollout]) -> None:
    """Against one rollout after the other, token by token."""
    assert len(batch) == len(rollouts)
    prompt, width = batch.prompt_ids.shape[1], batch.response_ids.shape[1]
    per_token = batch.advantages.ndim == 2
    for row, one in enumerate(rollouts):
        pad = [PAD] * (prompt - len(one.prompt_ids))
        assert batch.prompt_ids[row].tolist() == pad + one.prompt_ids.tolist()
        assert batch.prompt_mask[row].tolist() == [False] * len(pad) + [True] * len(one.prompt_ids)
        tokens = len(one.response_ids)
        rest = width - tokens
        assert batch.response_ids[row].tolist() == one.response_ids.tolist() + [PAD] * rest
        assert batch.response_mask[row].tolist() == [True] * tokens + [False] * rest
        assert batch.loss_mask[row].tolist() == one.response_mask.tolist() + [False] * rest
        assert batch.behavior_logps[row].tolist() == one.behavior_logps.tolist() + [0.0] * rest
        each = np.broadcast_to(np.float32(one.advantage), tokens).tolist()
        assert batch.advantages[row].tolist() == (each + [0.0] * rest if per_token else each[0])
        assert batch.rewards[row] == np.float32(one.reward)
        assert batch.rule_scores[row] == np.float32(one.rule_score)
        assert batch.versions[row].tolist() == [3, 3]
        assert batch.uses[row] == one.uses


@given(st.integers(0, 2**32), st.integers(1, 6), st.booleans())
def test_prompts_are_padded_left_and_responses_right(seed: int, count: int, scalar: bool) -> None:
    rollouts = some(seed, count, **({"advantage": -0.5} if scalar else {}))
    batch = pad_batch(rollouts, PAD)
    assert batch.prompt_ids.shape[1] == max(len(one.prompt_ids) for one in rollouts)
    assert batch.response_ids.shape[1] == max(len(one.response_ids) for one in rollouts)
    if scalar:
        assert batch.advantages.ndim == 1
    check(batch, rollouts)
    check(pad_batch(rollouts, PAD, prompt_width=9, response_width=31), rollouts)


@given(st.integers(0, 2**32), st.integers(0, 4), st.integers(1, 4))
def test_joined_batches_are_the_batch_of_all(seed: int, one: int, two: int) -> None:
    first, second = some(seed, one, advantage=2.0), some(seed + 1, two)
    joined = concat([pad_batch(first, PAD), pad_batch(second, PAD)], PAD)
    check(joined, first + second)


def test_weights_scale_advantages_alone() -> None:
    for advantage in (2.0, [2.0, 4.0, 6.0, 8.0]):
        batch = pad_batch([rollout(1, advantage=advantage), rollout(2, advantage=advantage)], PAD)
        weighted = apply_weights(batch, [0.5, 1.0])
        np.testing.assert_array_equal(weighted.advantages[0], batch.advantages[0] / 2)
        np.testing.assert_array_equal(weighted.advantages[1], batch.advantages[1])
        assert weighted.behavior_logps is batch.behavior_logps


def test_what_does_not_fit_is_refused() -> None:
    batch = pad_batch([rollout(1)], PAD)
    with pytest.raises(RolloutError, match="response_width: found 3, expected at least 4"):
        pad_batch([rollout(1)], PAD, response_width=3)
    with pytest.raises(RolloutError, match="prompt_width: found 2, expected at least 3"):
        pad_batch([rollout(1)], PAD, prompt_width=2)
    with pytest.raises(RolloutError, match="at least one"):
        concat([], PAD)
    with pytest.raises(RolloutError, match=r"the shape \(2,\), expected \(1,\)"):
        apply_weights(batch, [1.0, 1.0])
    for wrong in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(RolloutError, match=r"weights\[0\].*a finite number > 0"):
            apply_weights(batch, [wrong])


def test_no_rollouts_are_a_batch_of_none() -> None:
    batch = pad_batch([], PAD)
    assert (batch.prompt_ids.shape, batch.response_ids.shape, batch.versions.shape) == ((0, 0), (0, 0), (0, 2))
