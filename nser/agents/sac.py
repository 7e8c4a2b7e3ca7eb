"""SAC that learns from weighted draws and tells the index how wrong it was (Haarnoja et al., 2018).

Deviations from SB3's SAC 2.9, all of them here: the critics' loss is the weighted mean of the per-sample squared
errors; the index hears the mean over the critics of |TD error|. The losses of the actor and of the entropy
coefficient are not weighted: they estimate no expectation under the replay distribution that a weight would mend.
"""

from __future__ import annotations

from typing import Any

import torch
from stable_baselines3 import SAC as StockSAC
from stable_baselines3.common.type_aliases import GymEnv
from stable_baselines3.common.utils import polyak_update
from torch import Tensor

from nser.agents import feedback
from nser.agents.replay_buffer import IndexedReplayBuffer, ReplaySamples
from nser.replay.law import Law


class SAC(StockSAC):
    """SB3's SAC on an `IndexedReplayBuffer`, which holds the actions rescaled to [-1, 1].

    law: the replay law or a preset's name; `replay_buffer_kwargs` may hold a `seed` for the index

    Every other argument is SB3's, `n_steps` included.
    """

    replay_buffer: IndexedReplayBuffer

    def __init__(self, policy: Any, env: GymEnv | str, *args: Any, law: Law | str = "nser", **kwargs: Any) -> None:
        super().__init__(policy, env, *args, **feedback.with_index(kwargs, law))

    def _setup_model(self) -> None:
        with feedback.n_steps_in_buffer(self):
            super()._setup_model()

    def train(self, gradient_steps: int, batch_size: int = 64) -> None:
        """Gradient steps on weighted draws; the errors go back to the index after each."""
        self.policy.set_training_mode(True)
        optimizers = [self.actor.optimizer, self.critic.optimizer]
        if self.ent_coef_optimizer is not None:
            optimizers.append(self.ent_coef_optimizer)
        self._update_learning_rate(optimizers)
        figures: dict[str, list[Tensor]] = {}
        for step in range(gradient_steps):
            batch = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
            if self.use_sde:
                self.actor.reset_noise()
            for name, value in self._gradient_step(batch).items():
                figures.setdefault(name, []).append(value)
            if step % self.target_update_interval == 0:
                polyak_update(self.critic.parameters(), self.critic_target.parameters(), self.tau)
                polyak_update(self.batch_norm_stats, self.batch_norm_stats_target, 1.0)
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        for name, values in figures.items():
            self.logger.record(f"train/{name}", float(torch.stack(values).mean()))
        feedback.record_now_and_then(self, gradient_steps)

    def _gradient_step(self, batch: ReplaySamples) -> dict[str, Tensor]:
        """One step of the entropy coefficient, the critics and the actor; their losses."""
        actions, log_prob = self.actor.action_log_prob(batch.observations)
        log_prob = log_prob.reshape(-1, 1)
        figures = {}
        if self.ent_coef_optimizer is not None and self.log_ent_coef is not None:
            coefficient = self.log_ent_coef.detach().exp()
            loss = -(self.log_ent_coef * (log_prob + float(self.target_entropy)).detach()).mean()
            figures["ent_coef_loss"] = _stepped(self.ent_coef_optimizer, loss)
        else:
            coefficient = self.ent_coef_tensor
        figures["ent_coef"] = coefficient.detach().reshape(())

        values = self.critic(batch.observations, batch.actions)
        total, errors = feedback.critic_loss(values, self._target(batch, coefficient), batch.weights)
        figures["critic_loss"] = _stepped(self.critic.optimizer, 0.5 * total)
        feedback.feed_back(self.replay_buffer, batch, errors)

        least = torch.cat(self.critic(batch.observations, actions), dim=1).min(1, keepdim=True).values
        figures["actor_loss"] = _stepped(self.actor.optimizer, (coefficient * log_prob - least).mean())
        return figures

    @torch.no_grad()
    def _target(self, batch: ReplaySamples, coefficient: Tensor) -> Tensor:
        """[B, 1] soft value of the next state by the least of the target critics."""
        actions, log_prob = self.actor.action_log_prob(batch.next_observations)
        ahead = torch.cat(self.critic_target(batch.next_observations, actions), dim=1).min(1, keepdim=True).values
        ahead = ahead - coefficient * log_prob.reshape(-1, 1)
        return batch.rewards + (1 - batch.dones) * feedback.discounts(batch, self.gamma) * ahead


def _stepped(optimizer: torch.optim.Optimizer, loss: Tensor) -> Tensor:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()
