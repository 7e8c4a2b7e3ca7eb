"""Replay for TRL's `AsyncGRPOTrainer`: a rollout worker around another, with a memory.

    worker = ReplayRolloutWorker(inner, store_preset("rollout-grpo"))
    trainer = AsyncGRPOTrainer(model, reward, args=args, rollout_worker=worker, ...)

The trainer takes its samples one by one from the worker's queue; among those that the inner worker produced come
ρ stored ones each. It corrects by the ratio to the log-probabilities that a sample brings along and asks no policy
before that, so the correction is "clip". It drops what is older than its own `max_staleness`: let the law's
`max_age` be no more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nser.replay.errors import ArgumentError
from nser.rollouts import Rollout, RolloutStore, Sampling, StoreSettings, replay_count
from nser.trainers.trl.scoring import Scorer, scores_of

BY_ENGINE = Sampling(source="sampler")


def rollout_of(sample: Any) -> Rollout:
    """The rollout of a `RolloutSample`: the prompt ends where the mask names the first token to train on.

    Reward is the sum of the sample's ``reward`` metrics, for the advantage is all that the trainer is told.
    Raises ``RolloutError``.
    """
    mask = np.asarray(sample.completion_mask) > 0
    start = int(np.argmax(mask)) if mask.any() else len(mask)
    trained = mask[start:]
    return Rollout(
        prompt_ids=np.asarray(sample.input_ids[:start], np.int32),
        response_ids=np.asarray(sample.input_ids[start:], np.int32),
        response_mask=trained,
        behavior_logps=np.where(trained, np.minimum(sample.old_log_probs[start:], 0.0), 0.0).astype(np.float32),
        advantage=float(sample.advantage),
        reward=float(sum(value for name, value in sample.metrics.items() if name == "reward")),
        policy_version=(int(sample.model_version),) * 2,
        group=str(sample.group_id),
        sampling=BY_ENGINE,
        metadata={"prompt": sample.prompt, "completion": sample.completion},
    )


def sample_of(rollout: Rollout) -> Any:
    """The `RolloutSample` that ``rollout_of`` was given, without its metrics: rewards are reported once."""
    from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

    before = len(rollout.prompt_ids)
    return RolloutSample(
        prompt=rollout.metadata["prompt"],
        completion=rollout.metadata["completion"],
        input_ids=np.concatenate([rollout.prompt_ids, rollout.response_ids]).astype(np.int64),
        completion_mask=np.concatenate([np.zeros(before, np.int64), rollout.response_mask.astype(np.int64)]),
        old_log_probs=np.concatenate([np.zeros(before, np.float32), rollout.behavior_logps]),
        advantage=float(np.mean(rollout.advantage)),
        model_version=rollout.policy_version[0],
        group_id=int(rollout.group),
        metrics={},
    )


class ReplayRolloutWorker:
    """A rollout worker (`RolloutWorkerProtocol`) that also hands out what ``inner`` produced before.

    inner:    the worker that generates
    settings: of the store; correction "clip", composition "anchored"
    scorer:   scores every fresh rollout for the law's relevance; None for no rules

    Like ``inner`` it lives in the trainer's process; its queue is read from one thread. Raises ``ArgumentError``.
    """

    def __init__(self, inner: Any, settings: StoreSettings, scorer: Scorer | None = None, seed: int = 0) -> None:
        for field, expected in (("correction", "clip"), ("composition", "anchored"), ("unit", "trajectory")):
            if getattr(settings, field) != expected:
                raise ArgumentError(
                    field, getattr(settings, field), repr(expected), "An asynchronous trainer needs it."
                )
        self.inner = inner
        self.store = RolloutStore(settings, seed)
        self.scorer = scorer
        self.metrics_queue = inner.metrics_queue
        self.rollout_buffer = ReplayQueue(self)
        self._pending: list[Rollout] = []
        self._fresh = self._replayed = 0

    def start(self) -> None:
        """Begin producing."""
        self.inner.start()

    def stop(self) -> None:
        """Stop the inner worker; the store stays."""
        self.inner.stop()

    def update_model_version(self, model_version: int) -> None:
        """A new policy is live: what its predecessors generated can be replayed from now on."""
        self.inner.update_model_version(model_version)
        self.store.advance(model_version)
        scores = None if self.scorer is None else scores_of(self.scorer, self._pending)
        self.store.admit(self._pending, scores)
        self._pending = []

    def check_health(self, stale_after_s: float) -> None:
        """Raise if the inner worker has crashed or stalled."""
        self.inner.check_health(stale_after_s)

    def take(self, timeout: float | None) -> Any:
        """The next sample; raises `queue.Empty` when none is owed from the store and none came in time [s]."""
        if len(self.store) and replay_count(self.store, self._fresh) > self._replayed:
            self._replayed += 1
            return sample_of(self.store.draw(1).rollouts[0])
        sample = self.inner.rollout_buffer.get(timeout=timeout)
        self._pending.append(rollout_of(sample))
        # What came while nothing could be replayed is owed nothing.
        self._fresh, self._replayed = (self._fresh + 1, self._replayed) if len(self.store) else (0, 0)
        return sample


class ReplayQueue:
    """The side of a queue that the trainer reads."""

    def __init__(self, worker: ReplayRolloutWorker) -> None:
        self._worker = worker

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """A fresh or a replayed sample; raises `queue.Empty`."""
        return self._worker.take(timeout if block else 0.0)

    def qsize(self) -> int:
        """Fresh samples that wait."""
        return int(self._worker.inner.rollout_buffer.qsize())
