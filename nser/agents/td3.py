"""TD3 that learns from weighted draws and tells the index how wrong it was (Fujimoto et al., 2018).

Deviations from SB3's TD3 2.9, all of them here: the critics' loss is the weighted mean of the per-sample squared
errors; the index hears the mean over the critics of |TD error|. The actor's loss is not weighted.
"""

from __future__ import annotations

from typing import Any

import torch
from stable_baselines3 import TD3 as StockTD3
from stable_baselines3.common.type_aliases import GymEnv
from stable_baselines3.common.utils import polyak_update
from torch import Tensor

from nser.agents import feedback
from nser.agents.replay_buffer import IndexedReplayBuffer, ReplaySamples
from nser.replay.law import Law


class TD3(StockTD3):
    """SB3's TD3 on an `IndexedReplayBuffer`, which holds the actions rescaled to [-1, 1].

    law: the replay law or a preset's name; `replay_buffer_kwargs` may hold a `seed` for the index

    Every other argument is SB3's, `n_steps` included.
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
        self._update_learning_rate([self.actor.optimizer, self.critic.optimizer])
        critic_losses, actor_losses = [], []
        for _ in range(gradient_steps):
            self._n_updates += 1
            batch = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
            values = self.critic(batch.observations, batch.actions)
            loss, errors = feedback.critic_loss(values, self._target(batch), batch.weights)
            critic_losses.append(loss.detach())
            self.critic.optimizer.zero_grad()
            loss.backward()
            self.critic.optimizer.step()
            feedback.feed_back(self.replay_buffer, batch, errors)
            if self._n_updates % self.policy_delay == 0:
                actor_losses.append(self._actor_step(batch))
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        if actor_losses:
            self.logger.record("train/actor_loss", float(torch.stack(actor_losses).mean()))
        self.logger.record("train/critic_loss", float(torch.stack(critic_losses).mean()))
        feedback.record_now_and_then(self, gradient_steps)

    @torch.no_grad()
    def _target(self, batch: ReplaySamples) -> Tensor:
        """[B, 1] value of the next state, its action smoothed by clipped noise, by the least of the target critics."""
        noise = torch.empty_like(batch.actions).normal_(0, self.target_policy_noise)
        noise = noise.clamp(-self.target_noise_clip, self.target_noise_clip)
        actions = (self.actor_target(batch.next_observations) + noise).clamp(-1, 1)
        ahead = torch.cat(self.critic_target(batch.next_observations, actions), dim=1).min(1, keepdim=True).values
        return batch.rewards + (1 - batch.dones) * feedback.discounts(batch, self.gamma) * ahead

    def _actor_step(self, batch: ReplaySamples) -> Tensor:
        loss = -self.critic.q1_forward(batch.observations, self.actor(batch.observations)).mean()
        self.actor.optimizer.zero_grad()
        loss.backward()
        self.actor.optimizer.step()
        polyak_update(self.critic.parameters(), self.critic_target.parameters(), self.tau)
        polyak_update(self.actor.parameters(), self.actor_target.parameters(), self.tau)
        polyak_update(self.critic_batch_norm_stats, self.critic_batch_norm_stats_target, 1.0)
        polyak_update(self.actor_batch_norm_stats, self.actor_batch_norm_stats_target, 1.0)
        return loss.detach()
