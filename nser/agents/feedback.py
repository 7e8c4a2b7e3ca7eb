"""What the agents with feedback share: setting the indexed buffer up, weighted losses, the index's statistics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from torch import Tensor

from nser.agents.replay_buffer import IndexedReplayBuffer, ReplaySamples
from nser.replay.law import Law

LEAST_BETWEEN = 1_000  # updates between two looks at the whole index, at least
ITEMS_PER_UPDATE = 100  # … and one more for so many items: a look is O(N), and so costs under 1 % of the training


def with_index(arguments: dict[str, Any], law: Law | str) -> dict[str, Any]:
    """SB3's keyword arguments, with an `IndexedReplayBuffer` under `law` unless they name a subclass of it.

    Raises `ValueError` for any other buffer class: it takes no errors back.
    """
    chosen = arguments.get("replay_buffer_class") or IndexedReplayBuffer
    if not issubclass(chosen, IndexedReplayBuffer):
        raise ValueError(
            f"found replay_buffer_class={chosen.__name__}, expected IndexedReplayBuffer or a subclass: only that takes "
            "errors back; leave it out, or use SB3's own agent"
        )
    given = arguments.get("replay_buffer_kwargs") or {}
    return {**arguments, "replay_buffer_class": chosen, "replay_buffer_kwargs": {"law": law, **given}}


@contextmanager
def n_steps_in_buffer(agent: OffPolicyAlgorithm) -> Iterator[None]:
    """Around SB3's `_setup_model`: its `n_steps` and `gamma` go to the buffer.

    SB3 ignores `n_steps` for every buffer class that is not its own, and warns that it does.
    """
    wanted = agent.n_steps
    if wanted > 1:
        agent.replay_buffer_kwargs = {"n_steps": wanted, "gamma": agent.gamma, **agent.replay_buffer_kwargs}
    agent.n_steps = 1
    try:
        yield
    finally:
        agent.n_steps = wanted


def discounts(batch: ReplaySamples, gamma: float) -> Tensor | float:
    """[B, 1] factor of the value of what follows: γ^k of the real k, or γ for one-step batches."""
    return gamma if batch.discounts is None else batch.discounts


def critic_loss(values: tuple[Tensor, ...], target: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Σ over the critics of the weighted mean squared error, and [B] |TD error|, the mean over the critics.

    values: [B, 1] of each critic; target, weights: [B, 1]
    """
    errors = target - torch.cat(values, dim=1)
    loss = (weights * errors.square()).mean(0).sum()
    return loss, errors.detach().abs().mean(1)


def feed_back(buffer: IndexedReplayBuffer, batch: ReplaySamples, errors: Tensor) -> None:
    """Raw |TD error| [B] or [B, 1] of a batch to the index: never the weighted loss."""
    buffer.update(batch.draw, errors.detach().flatten().cpu().numpy())


def record_statistics(logger: Logger, buffer: IndexedReplayBuffer) -> None:
    """What the index holds and draws, as `replay/…` in SB3's logger; O(items)."""
    if not len(buffer.index):
        return
    stats = buffer.index.stats()
    for name in ("effective_size", "rule_share", "mean_age", "stale_updates", "stale_relations", "scored", "beta"):
        logger.record(f"replay/{name}", getattr(stats, name))
    if buffer.last_draw is not None:
        drawn = buffer.episodes.reshape(-1).take(buffer.last_draw.slots)
        logger.record("replay/episodes_in_batch", len(np.unique(drawn)))


def record_now_and_then(agent: OffPolicyAlgorithm, updates: int) -> None:
    """`record_statistics` after the first of all updates, and then seldom enough to cost nothing."""
    buffer = agent.replay_buffer
    assert isinstance(buffer, IndexedReplayBuffer)
    every = LEAST_BETWEEN + len(buffer.index) // ITEMS_PER_UPDATE
    done = agent._n_updates
    if done // every > (done - updates) // every or done == updates:
        record_statistics(agent.logger, buffer)


class ReplayStatistics(BaseCallback):
    """For SB3's own algorithms with an `IndexedReplayBuffer`: the same records, every `every` environment steps."""

    def __init__(self, every: int = 10_000) -> None:
        super().__init__()
        self.every = every
        self._seen = -1

    def _on_step(self) -> bool:
        due = self.num_timesteps // self.every
        if due > self._seen:
            self._seen = due
            buffer = getattr(self.model, "replay_buffer", None)
            if isinstance(buffer, IndexedReplayBuffer):
                record_statistics(self.logger, buffer)
        return True
