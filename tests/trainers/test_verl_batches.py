"""verl's real `DataProto`: nothing is lost on the way to rollouts and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nser.rollouts import RolloutError
from nser.trainers.verl import apply_weights, concat, from_batch, to_batch
from tests.trainers.rollout_makers import rollout, rollouts, same
from tests.trainers.verl_batches import PAD, batch


def same_batch(left: Any, right: Any) -> None:
    assert set(left.batch.keys()) == set(right.batch.keys())
    for key in list(left.batch.keys()):
        assert left.batch[key].dtype == right.batch[key].dtype
        assert torch.equal(left.batch[key], right.batch[key]), key
    assert left.non_tensor_batch.keys() == right.non_tensor_batch.keys()
    for key, values in left.non_tensor_batch.items():
        assert values.dtype == right.non_tensor_batch[key].dtype
        assert values.tolist() == right.non_tensor_batch[key].tolist()
    assert left.meta_info == right.meta_info


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.integers(1, 5), prompt=st.integers(1, 6), response=st.integers(1, 7))
def test_batches_come_back_bit_for_bit(seed: int, rows: int, prompt: int, response: int) -> None:
    fresh = batch(rows, prompt, response, seed)
    same_batch(to_batch(from_batch(fresh, 3), fresh, PAD), fresh)


@settings(max_examples=40, deadline=None)
@given(made=st.lists(rollouts(), min_size=1, max_size=5))
def test_rollouts_come_back(made: list[Any]) -> None:
    back = from_batch(to_batch(made, batch()))
    assert all(same(left, right) for left, right in zip(made, back, strict=True))
    assert [one.group for one in back] == [one.group for one in made]


def test_a_row_is_what_its_padding_holds() -> None:
    fresh = batch()
    first = from_batch(fresh, 7)[0]
    real = fresh.batch["attention_mask"][0].bool()
    assert np.concatenate((first.prompt_ids, first.response_ids)).tolist() == fresh.batch["input_ids"][0][real].tolist()
    assert first.advantage == fresh.batch["advantages"][0][fresh.batch["response_mask"][0].bool()][0].item()
    assert first.reward == pytest.approx(fresh.batch["token_level_scores"][0].sum().item())
    assert (first.group, first.task, first.policy_version) == ("group 0", "sums", (7, 7))
    assert first.metadata == {"verl": {"extra_info": {"row": 0, "spans": [1, 2]}, "__num_turns__": 0}}


def test_the_engines_log_probs_are_the_behaviour_policys_where_they_are_there() -> None:
    fresh = batch()
    assert from_batch(fresh)[0].sampling.source == "trainer"
    engine = fresh.batch["old_log_probs"] * 0.5
    fresh.batch["rollout_log_probs"] = engine
    first = from_batch(fresh)[0]
    assert first.sampling.source == "sampler"
    assert first.behavior_logps.tolist() == engine[0, : len(first.response_ids)].tolist()


def test_versions_of_a_rollout_that_went_on_over_an_update() -> None:
    fresh = batch()
    fresh.non_tensor_batch["min_global_steps"] = np.array([4, 5, 5])
    fresh.non_tensor_batch["max_global_steps"] = np.array([5, 5, 6])
    assert [one.policy_version for one in from_batch(fresh, 9)] == [(4, 5), (5, 5), (5, 6)]


def test_batches_of_other_widths_join() -> None:
    """`DataProto.concat` refuses them; joined, each row still says the same."""
    fresh, wide = batch(3, 4, 5, 0), batch(2, 6, 3, 1)
    with pytest.raises(RuntimeError, match="Sizes of tensors must match"):
        type(fresh).concat([fresh, wide])
    both = concat([fresh, wide])
    assert both.batch["input_ids"].shape == (5, 6 + 5)
    assert both.meta_info["global_token_num"] == both.batch["attention_mask"].sum(1).tolist()
    found, made = from_batch(both), from_batch(fresh) + from_batch(wide)
    assert all(same(left, right) for left, right in zip(found, made, strict=True))
    recounted = (both.batch["attention_mask"].cumsum(1) - 1).clip(min=0)
    assert torch.equal(both.batch["position_ids"], recounted)


def test_longer_rollouts_widen_the_batch() -> None:
    made = [rollout(1, 9, 8), rollout(2, 2, 2)]
    back = to_batch(made, batch())
    assert back.batch["prompts"].shape == (2, 9)
    assert all(same(left, right) for left, right in zip(made, from_batch(back), strict=True))


@pytest.mark.parametrize("native", [False, True])
def test_weights_weigh_the_loss_of_each_row_exactly(native: bool) -> None:
    """verl's own clipped loss of the weighted batch is the weighted sum of each row's loss."""
    core = pytest.importorskip("verl.trainer.ppo.core_algos")
    fresh, weights = batch(4, seed=5), np.array([0.25, 1.0, 2.0, 3.5])
    present = fresh.batch["old_log_probs"] + 0.4 * torch.randn(4, 5, generator=torch.Generator().manual_seed(0))

    def loss(data: Any) -> float:
        config = _Config()
        value, _ = core.compute_policy_loss_vanilla(
            old_log_prob=data.batch["old_log_probs"],
            log_prob=present[: len(data)] if len(data) == 4 else present[data.meta_info["row"]][None],
            advantages=data.batch["advantages"],
            response_mask=data.batch["response_mask"],
            loss_agg_mode="token-sum",
            config=config,
            rollout_is_weights=data.batch.get("rollout_is_weights", None),
        )
        return float(value)

    alone = []
    for row in range(4):
        one = fresh.select_idxs([row])
        one.meta_info = {"row": row}
        alone.append(loss(one))
    weighted = apply_weights(fresh, weights, native)
    assert loss(weighted) == pytest.approx(float(np.dot(weights, alone)), abs=1e-6)
    assert loss(fresh) == pytest.approx(sum(alone), abs=1e-6)


class _Config:
    """What verl's loss reads of its configuration."""

    clip_ratio = clip_ratio_low = clip_ratio_high = 0.2
    global_batch_info: dict[str, Any] = {}  # noqa: RUF012

    @staticmethod
    def get(_: str, default: float) -> float:
        return default


def test_what_does_not_fit_is_said() -> None:
    fresh = batch()
    holes = batch()
    holes.batch["attention_mask"][0, -1], holes.batch["attention_mask"][0, -2] = 1, 0
    bare, imaged, counted = batch(), batch(), batch()
    bare.batch.pop("old_log_probs")
    imaged.non_tensor_batch["multi_modal_inputs"] = np.array([{"pixels": torch.ones(1)}, {}, {}], object)
    counted.meta_info["seconds"] = [1.0, 2.0, 3.0]
    cases: list[tuple[Any, str]] = [
        (lambda: from_batch(holes), "attention_mask: found holes"),
        (lambda: from_batch(bare), "calculate_log_probs=True"),
        (lambda: from_batch(imaged), "row 0: multi_modal_inputs"),
        (lambda: from_batch(fresh.select(batch_keys=["prompts"])), "responses: found no such key"),
        (lambda: to_batch([], fresh), "at least one rollout"),
        (lambda: to_batch(from_batch(fresh), counted), "meta_info\\['seconds'\\]"),
        (lambda: concat([fresh, batch(ref_log_prob=torch.zeros(3, 5))]), "ref_log_prob in some batches only"),
        (lambda: concat([]), "at least one batch"),
        (lambda: apply_weights(fresh, [1.0, 0.0, 1.0]), "finite numbers > 0"),
    ]
    for call, message in cases:
        with pytest.raises(RolloutError, match=message):
            call()
