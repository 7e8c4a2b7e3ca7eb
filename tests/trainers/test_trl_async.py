"""The worker that replays for `AsyncGRPOTrainer`.

The trainer's forward pass needs FlashAttention 3, so no CPU can train with it. Here it is built for real, with a
worker in this process, and its own data loader draws from the worker; what it would train on is looked at.
"""

from __future__ import annotations

import queue
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("trl", reason="needs the extra: pip install nser[trl]")

from nser.replay import ArgumentError
from nser.rollouts import StoreSettings, store_preset
from nser.trainers import digits
from nser.trainers.trl.async_worker import ReplayRolloutWorker, rollout_of, sample_of

CLIP = store_preset("rollout-grpo", warm_up=0)


@pytest.fixture(autouse=True)
def experimental_silenced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class Producer:
    """Numbered samples on demand: four to a group, one group after the other."""

    def __init__(self) -> None:
        self.rollout_buffer: queue.Queue = queue.Queue()
        self.metrics_queue: queue.Queue = queue.Queue()
        self.version, self.made, self.calls = 0, 0, []  # type: ignore[var-annotated]

    def produce(self, count: int) -> None:
        from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

        for _ in range(count):
            digit = 4 + self.made % 10
            sample = RolloutSample(
                prompt=[{"role": "user", "content": "say it"}],
                completion=[{"role": "assistant", "content": str(self.made)}],
                input_ids=np.array([3, digit, digit, 20, 5 + self.made % 3]),
                completion_mask=np.array([0, 0, 1, 0, 1]),  # a tool's token in between
                old_log_probs=np.array([0, 0, -1.5, 0, -0.25], np.float32),
                advantage=1.0 if self.made % 2 else -1.0,
                model_version=self.version,
                group_id=self.made // 4,
                metrics={"reward": float(self.made % 2)},
            )
            self.rollout_buffer.put(sample)
            self.made += 1

    def start(self) -> None:
        self.calls.append("start")

    def stop(self) -> None:
        self.calls.append("stop")

    def update_model_version(self, model_version: int) -> None:
        self.version = model_version

    def check_health(self, stale_after_s: float) -> None:
        raise RuntimeError(f"nothing for {stale_after_s} s")


def take(worker: ReplayRolloutWorker, count: int) -> list[Any]:
    return [worker.rollout_buffer.get(timeout=1.0) for _ in range(count)]


def test_a_sample_comes_back_as_it_was() -> None:
    producer = Producer()
    producer.produce(1)
    sample = producer.rollout_buffer.get()
    back = sample_of(rollout_of(sample))
    for name in ("input_ids", "completion_mask", "old_log_probs"):
        np.testing.assert_array_equal(getattr(back, name), getattr(sample, name))
        assert getattr(back, name).dtype == getattr(sample, name).dtype
    for name in ("prompt", "completion", "advantage", "model_version", "group_id"):
        assert getattr(back, name) == getattr(sample, name)
    assert rollout_of(sample).reward == 0.0


def test_one_of_three_samples_is_an_old_one_once_the_policy_has_moved() -> None:
    producer = Producer()
    worker = ReplayRolloutWorker(producer, CLIP)
    producer.produce(8)
    assert [sample.model_version for sample in take(worker, 8)] == [0] * 8
    worker.update_model_version(1)
    producer.produce(8)
    found = take(worker, 12)
    assert [sample.model_version for sample in found] == [1, 1, 0] * 4
    assert all(sample.metrics == {} for sample in found if sample.model_version == 0)
    with pytest.raises(queue.Empty):
        worker.rollout_buffer.get(timeout=0.01)


def test_what_is_too_old_is_not_handed_out() -> None:
    producer = Producer()
    worker = ReplayRolloutWorker(producer, CLIP)
    producer.produce(4)
    take(worker, 4)
    worker.update_model_version(1)
    worker.update_model_version(20)
    producer.produce(6)
    assert [sample.model_version for sample in take(worker, 6)] == [20] * 6


def test_rules_decide_what_is_replayed() -> None:
    producer = Producer()
    settings = StoreSettings(correction="clip", law=store_preset("nser").law.__class__(eta=1e6, max_rule_share=1.0))
    worker = ReplayRolloutWorker(
        producer, settings, scorer=lambda rollouts: [float(rollout.group == "1") for rollout in rollouts]
    )
    producer.produce(16)
    take(worker, 16)
    worker.update_model_version(1)
    producer.produce(16)
    old = [sample.group_id for sample in take(worker, 24) if sample.model_version == 0]
    assert old == [1] * 8


def test_the_rest_is_the_inner_workers() -> None:
    producer = Producer()
    worker = ReplayRolloutWorker(producer, CLIP)
    worker.start()
    worker.stop()
    assert producer.calls == ["start", "stop"]
    assert worker.metrics_queue is producer.metrics_queue
    with pytest.raises(RuntimeError, match="nothing for 3"):
        worker.check_health(3.0)


@pytest.mark.parametrize("field", ["correction", "composition", "unit"])
def test_settings_that_need_a_policy_are_refused(field: str) -> None:
    wrong = {"correction": "decoupled", "composition": "pool", "unit": "turn"}
    with pytest.raises(ArgumentError) as caught:
        ReplayRolloutWorker(Producer(), store_preset("rollout-grpo", **{field: wrong[field]}))
    assert caught.value.argument == field


class NoTransfer:
    """Weights go nowhere."""

    def init_weight_transfer(self) -> None: ...
    def pause(self) -> None: ...
    def send_weights(self, iterator: Any) -> None: ...
    def resume(self) -> None: ...
    def destroy(self) -> None: ...


def test_the_real_trainers_loader_draws_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Asked for a figure in its log alone.
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *_: "none")
    from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer

    digits.model().save_pretrained(tmp_path / "model")
    producer = Producer()
    worker = ReplayRolloutWorker(producer, CLIP)
    trainer = AsyncGRPOTrainer(
        str(tmp_path / "model"),
        args=AsyncGRPOConfig(
            str(tmp_path / "out"),
            per_device_train_batch_size=6,
            token_budget=0,
            max_steps=2,
            max_staleness=10,
            use_cpu=True,
            bf16=False,
            report_to=[],
            gradient_checkpointing=False,
        ),
        train_dataset=digits.prompts(10),
        processing_class=digits.tokenizer(),
        rollout_worker=worker,
        weight_transfer=NoTransfer(),
    )
    assert trainer.rollout_queue is worker.rollout_buffer
    producer.produce(6)
    take(worker, 6)
    worker.update_model_version(1)
    trainer.model_version = 1
    producer.produce(20)
    batch = next(iter(trainer.get_train_dataloader()))
    assert len(batch["segment_id"].unique()) >= 6
    assert trainer._metrics["train"]["sample/staleness_max"][:6] == [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]
