"""QR-DQN that learns from weighted draws and tells the index how wrong it was (Dabney et al., 2018).

Deviations from sb3-contrib's QRDQN 2.9, all of them here: the loss is the weighted mean of the per-sample quantile
Huber losses; the index hears |difference of the means of target and predicted quantiles|, which is the TD error of
the expected value.
"""

from __future__ import annotations

from typing import Any

import torch
from sb3_contrib import QRDQN as StockQRDQN
from stable_baselines3.common.type_aliases import GymEnv

from nser.agents import feedback
from nser.agents.replay_buffer import IndexedReplayBuffer, ReplaySamples
from nser.replay.law import Law


class QRDQN(StockQRDQN):
    """sb3-contrib's QR-DQN on an `IndexedReplayBuffer`.

    law: the replay law or a preset's name; `replay_buffer_kwargs` may hold a `seed` for the index

    Every other argument is sb3-contrib's, `n_steps` included.
    """

    replay_buffer: IndexedReplayBuffer

    def __init__(self, policy: Any, env: GymEnv | str, *args: Any, law: Law | str = "nser", **kwargs: Any) -> None:
        super().__init__(policy, env, *args, **feedback.with_index(kwargs, law))

    def _setup_model(self) -> None:
        with feedback.n_steps_in_buffer(self):
            super()._setup_model()

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Gradient steps on weighted draws; the errors go back to the index after each."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        losses = []
        for _ in range(gradient_steps):
            batch = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
            target = self._target_quantiles(batch)
            # [B, Q, A] → [B, Q] of the actions taken
            taken = batch.actions.long().unsqueeze(1).expand(-1, self.n_quantiles, -1)
            values = self.quantile_net(batch.observations).gather(2, taken).squeeze(2)
            loss = (batch.weights.squeeze(1) * quantile_huber(values, target)).mean()
            losses.append(loss.detach())

            self.policy.optimizer.zero_grad()
            loss.backward()
            if self.max_grad_norm is not None:
                torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()
            feedback.feed_back(self.replay_buffer, batch, (target.mean(1) - values.mean(1)).abs())
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/loss", float(torch.stack(losses).mean()))
        feedback.record_now_and_then(self, gradient_steps)

    @torch.no_grad()
    def _target_quantiles(self, batch: ReplaySamples) -> torch.Tensor:
        """[B, Q] of the greedy next action under the target network."""
        ahead: torch.Tensor = self.quantile_net_target(batch.next_observations)  # [B, Q, A]
        best = ahead.mean(1, keepdim=True).argmax(2, keepdim=True).expand(-1, self.n_quantiles, -1)
        discounted = feedback.discounts(batch, self.gamma) * ahead.gather(2, best).squeeze(2)
        return batch.rewards + (1 - batch.dones) * discounted


def quantile_huber(values: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """[B] quantile Huber loss (κ = 1) of predicted quantiles [B, Q] against targets [B, Q'].

    Summed over the predicted quantiles and averaged over the targets, as eq. 10 of the paper.
    """
    count = values.shape[1]
    middles = (torch.arange(count, device=values.device, dtype=values.dtype) + 0.5) / count
    apart = target.unsqueeze(1) - values.unsqueeze(2)  # [B, Q, Q']
    huber = torch.where(apart.abs() > 1, apart.abs() - 0.5, 0.5 * apart.square())
    below = (apart.detach() < 0).to(values.dtype)
    return ((middles.view(1, -1, 1) - below).abs() * huber).sum(1).mean(1)
