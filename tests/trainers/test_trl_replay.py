"""What joins TRL's batches, seen from the batches that it trains on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("trl", reason="needs the extra: pip install nser[trl]")

from nser.replay import ArgumentError
from nser.rollouts import StoreSettings, store_preset
from nser.trainers import digits
from nser.trainers.trl import RolloutReplay
from nser.trainers.trl.forward import policy_logps
from tests.trainers.trl_host import record_batches, record_draws, trainer

CLIP = store_preset("rollout-grpo", warm_up=0)


def rows(batch: dict[str, Any]) -> int:
    return len(batch["completion_ids"])


def test_half_as_many_replayed_rows_join_once_there_are_some(tmp_path: Path) -> None:
    host = trainer(tmp_path, max_steps=5)
    batches = record_batches(host)
    host.train()
    assert [rows(batch) for batch in batches] == [8, 12, 12, 12, 12]
    for batch in batches:
        assert batch["num_items_in_batch"] == batch["completion_mask"].sum()


def test_nothing_is_replayed_at_age_zero_or_past_the_limit(tmp_path: Path) -> None:
    host = trainer(tmp_path, replay=replace(CLIP, law=replace(CLIP.law, max_age=3)), max_steps=12)
    drawn = record_draws(host)
    host.train()
    ages = [age for replayed in drawn for age in replayed.draw.ages]
    assert len(ages) == 4 * 11
    assert min(ages) == 1
    assert max(ages) == 3
    for step, replayed in enumerate(drawn):
        assert [step - rollout.policy_version[0] for rollout in replayed.rollouts] == replayed.draw.ages.tolist()


def test_several_generations_of_one_step_do_not_replay_each_other(tmp_path: Path) -> None:
    host = trainer(tmp_path, gradient_accumulation_steps=2, steps_per_generation=1, max_steps=3)
    batches = record_batches(host)
    host.train()
    assert [rows(batch) for batch in batches] == [8, 8, 12, 12, 12, 12]


def test_fresh_rows_are_those_of_trl_bit_for_bit(tmp_path: Path) -> None:
    """The first replay happens on a policy that one equal update made, so TRL's own batch is known."""
    seen = []
    for name in ("none", "nser"):
        host = trainer(tmp_path / name, replay=name, max_steps=2)
        seen.append(record_batches(host))
        host.train()
    for key in ("prompt_ids", "completion_ids", "completion_mask"):
        assert torch.equal(seen[0][1][key], seen[1][1][key][:8]), key
    fresh = seen[1][1]["advantages"][:8]
    assert torch.equal(seen[0][1]["advantages"].unsqueeze(1).expand_as(fresh), fresh)


def test_behaviour_log_probs_are_those_of_the_policy_that_generated(tmp_path: Path) -> None:
    host = trainer(tmp_path, max_steps=2)
    batches = record_batches(host)
    before = digits.model()
    host.train()
    stored = {rollout.key: rollout for rollout in host.rollout_store.rollouts(host.rollout_store.live_slots())}
    first = [rollout for rollout in stored.values() if rollout.policy_version == (0, 0)]
    assert len(first) >= 6
    host.model.load_state_dict(before.state_dict())
    wanted = policy_logps(host, batches[0])
    by_ids = {tuple(ids[mask.bool()].tolist()): row for row, (ids, mask) in enumerate(completions(batches[0]))}
    for rollout in first:
        row = by_ids[tuple(rollout.response_ids.tolist())]
        np.testing.assert_allclose(
            rollout.behavior_logps, wanted[row, : len(rollout.response_ids)].numpy(), rtol=1e-4, atol=1e-5
        )


def completions(batch: dict[str, Any]) -> Any:
    return zip(batch["completion_ids"], batch["completion_mask"], strict=True)


def test_decoupled_rows_carry_truncated_weights_and_no_old_log_probs(tmp_path: Path) -> None:
    host = trainer(tmp_path, max_steps=8, learning_rate=1e-2)
    batches, drawn = record_batches(host), record_draws(host)
    host.train()
    last, rollouts = batches[-1], drawn[-1].rollouts
    assert "old_per_token_logps" not in last
    for row, rollout in enumerate(rollouts, start=8):
        weights = last["advantages"][row] / rollout.advantage
        assert (weights >= 0).all()
        assert (weights <= 2.0 + 1e-5).all()
    spread = torch.stack([last["advantages"][row] / r.advantage for row, r in enumerate(rollouts, start=8)])
    assert spread.std() > 0.01  # a learning rate this large leaves a gap


def test_clip_puts_the_behaviour_policy_under_the_ratio(tmp_path: Path) -> None:
    host = trainer(tmp_path, replay=CLIP, max_steps=3)
    batches, drawn = record_batches(host), record_draws(host)
    host.train()
    last = batches[-1]
    assert last["advantages"].ndim == 1
    for row, rollout in enumerate(drawn[-1].rollouts, start=8):
        assert last["advantages"][row] == pytest.approx(rollout.advantage)
        old = last["old_per_token_logps"][row, : len(rollout.response_ids)]
        np.testing.assert_array_equal(old.numpy(), rollout.behavior_logps)


def test_rows_come_in_multiples_of_what_trl_splits_a_batch_into(tmp_path: Path) -> None:
    settings = StoreSettings(ratio=0.3)  # of 16 rows: 5
    host = trainer(tmp_path, replay=settings, steps_per_generation=2, max_steps=6)
    batches, trained = record_batches(host), []
    loss = host._compute_loss

    def recorded(model: Any, inputs: dict[str, Any]) -> Any:
        trained.append(rows(inputs))
        return loss(model, inputs)

    host._compute_loss = recorded
    host.train()
    assert [rows(batch) for batch in batches] == [16, 20, 20]
    assert trained == [8, 8, 10, 10, 10, 10]
    # The second half of a generation is trained on by a policy that has moved: TRL then keeps old log-probs.
    assert all("old_per_token_logps" in batch for batch in batches)


def test_separate_replays_whole_batches_in_turns_without_generating(tmp_path: Path) -> None:
    host = trainer(tmp_path, replay=store_preset("freshper", updates=2), max_steps=7)
    generated: list[int] = []
    generate = host._generate

    def recorded(prompts: list) -> Any:
        generated.append(host.state.global_step)
        return generate(prompts)

    host._generate = recorded
    batches = record_batches(host)
    host.train()
    assert generated == [0, 3, 6]
    assert [rows(batch) for batch in batches] == [8] * 7
    assert all(batch["advantages"].abs().max() <= 0.2 for step, batch in enumerate(batches) if step not in generated)


def test_pool_draws_the_whole_batch_from_fresh_and_stored(tmp_path: Path) -> None:
    host = trainer(tmp_path, replay=StoreSettings(composition="pool", law=CLIP.law), max_steps=4)
    batches = record_batches(host)
    host.train()
    assert [rows(batch) for batch in batches] == [8] * 4
    assert host.rollout_store.metrics().drawn >= 3 * 8


@pytest.mark.parametrize("loss_type", ["grpo", "dapo", "cispo", "vespo"])
@pytest.mark.parametrize("level", ["token", "sequence"])
def test_other_settings_of_trl_train_with_replay(tmp_path: Path, loss_type: str, level: str) -> None:
    host = trainer(
        tmp_path,
        max_steps=3,
        loss_type=loss_type,
        importance_sampling_level=level,
        off_policy_mask_threshold=0.5,
        num_iterations=2,
    )
    batches = record_batches(host)
    host.train()
    assert rows(batches[-1]) == 12
    assert batches[-1]["sampling_per_token_logps"].shape == batches[-1]["old_per_token_logps"].shape
    assert np.isfinite(host.state.log_history[-1]["train_loss"])


def test_a_reference_model_is_asked_about_replayed_rows_too(tmp_path: Path) -> None:
    digits.model(5).save_pretrained(tmp_path / "model")
    host = trainer(tmp_path, model=str(tmp_path / "model"), beta=0.1, max_steps=3)
    batches = record_batches(host)
    host.train()
    last = batches[-1]
    assert last["ref_per_token_logps"].shape == last["completion_ids"].shape
    host.model.load_state_dict(digits.model(5).state_dict())
    mask = last["completion_mask"].bool()
    torch.testing.assert_close(last["ref_per_token_logps"][mask], policy_logps(host, last)[mask], rtol=1e-3, atol=1e-4)


def test_an_adapter_is_switched_off_for_the_reference(tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model

    adapted = get_peft_model(digits.model(5), LoraConfig(target_modules=["q_proj"], r=2))
    host = trainer(tmp_path, model=adapted, beta=0.1, max_steps=3)
    batches = record_batches(host)
    host.train()
    base = trainer(tmp_path, model=digits.model(5), replay="none")
    mask = batches[-1]["completion_mask"].bool()
    assert rows(batches[-1]) == 12
    torch.testing.assert_close(
        batches[-1]["ref_per_token_logps"][mask], policy_logps(base, batches[-1])[mask], rtol=1e-3, atol=1e-4
    )


def test_evaluation_is_left_alone(tmp_path: Path) -> None:
    host = trainer(tmp_path, max_steps=2, per_device_eval_batch_size=8)
    host.train()
    before = host.rollout_store.state_dict()
    batches = record_batches(host)
    host.evaluate(eval_dataset=digits.prompts(10))
    assert {rows(batch) for batch in batches} == {8}
    after = host.rollout_store.state_dict()
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[key], after[key]) for key in before)


def test_metrics_of_replay_are_logged_beside_those_of_trl(tmp_path: Path) -> None:
    host = trainer(tmp_path, max_steps=3, logging_strategy="steps", logging_steps=1)
    host.train()
    logged = host.state.log_history[2]
    assert logged["replay/rows"] == 4
    assert 1 <= logged["replay/age"] <= 2
    assert 0 <= logged["replay/silenced"] <= 1
    assert "reward" in logged


def test_tasks_and_texts_are_kept(tmp_path: Path) -> None:
    host = trainer(tmp_path, replay=RolloutReplay(task="digit"), max_steps=2)
    host.train()
    rollout = host.rollout_store.rollouts(host.rollout_store.live_slots())[0]
    assert rollout.task in digits.DIGITS
    user, assistant = rollout.metadata["messages"]
    assert user == {"role": "user", "content": f"say {rollout.task}"}
    assert assistant["role"] == "assistant"
    groups = rollout.group.split(".")
    assert int(groups[0]) == rollout.policy_version[0]


def test_settings_are_checked() -> None:
    with pytest.raises(ArgumentError, match="use: found 'loss'"):
        RolloutReplay(use="loss")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="strength"):
        RolloutReplay(strength=-1.0)


def test_equal_answers_to_one_prompt_are_all_stored(tmp_path: Path) -> None:
    def constant(completion_ids: list, **_: Any) -> list[float]:
        return [float(place % 4) for place in range(len(completion_ids))]

    host = trainer(tmp_path, reward=constant, max_steps=1)
    generate = host._generate_single_turn

    def same(prompt_ids: Any, *rest: Any) -> Any:
        _, logprobs = generate(prompt_ids, *rest)
        return [[5, 6]] * len(prompt_ids), logprobs

    host._generate_single_turn = same
    host.train()
    host._replayer._admit()
    stored = host.rollout_store.rollouts(host.rollout_store.live_slots())
    assert len(stored) == 8
    assert sorted(rollout.group for rollout in stored)[:4] == ["0.0.0"] * 4
