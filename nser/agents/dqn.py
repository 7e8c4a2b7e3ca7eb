"""DQN that learns from weighted draws and tells the index how wrong it was.

Deviations from SB3's DQN 2.9, all of them here: the loss is the weighted mean of the per-sample Huber losses; the raw
|TD error| goes back to the index; the target may be a double-Q one (van Hasselt et al., 2016); every environment
tosses its own ε coin, from a generator of its own.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import DQN as StockDQN
from stable_baselines3.common.noise import ActionNoise
from stable_baselines3.common.type_aliases import GymEnv
from stable_baselines3.common.utils import obs_as_tensor
from stable_baselines3.common.vec_env import VecTransposeImage
from torch.nn.functional import smooth_l1_loss

from nser.agents import feedback
from nser.agents.explore import Explorer, UniformExplorer
from nser.agents.frames import vectors
from nser.agents.replay_buffer import IndexedReplayBuffer, Tensors
from nser.replay.law import Law


class DQN(StockDQN):
    """SB3's DQN on an `IndexedReplayBuffer`.

    law:      the replay law or a preset's name; `replay_buffer_kwargs` may hold a `seed` for the index
    double_q: choose the next action by the online network, value it by the target network
    explorer: where random actions come from; uniform unless given

    Every other argument is SB3's; `n_steps` > 1 sums rewards up to the end of an episode, and discounts by the real
    number of steps.
    """

    replay_buffer: IndexedReplayBuffer

    def __init__(
        self,
        policy: Any,
        env: GymEnv | str,
        *args: Any,
        law: Law | str = "nser",
        double_q: bool = True,
        explorer: Explorer | None = None,
        **kwargs: Any,
    ) -> None:
        self.double_q = double_q
        self.explorer = explorer
        super().__init__(policy, env, *args, **feedback.with_index(kwargs, law))

    def _setup_model(self) -> None:
        with feedback.n_steps_in_buffer(self):
            super()._setup_model()
        if self.explorer is None:
            self.explorer = UniformExplorer(int(self.action_space.n), self.seed or 0)  # type: ignore[attr-defined]

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Gradient steps on weighted draws; the errors go back to the index after each."""
        self._set_training_mode(True)
        optimizer = self.policy.optimizer
        self._update_learning_rate(optimizer)
        learnt = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        losses = []
        for _ in range(gradient_steps):
            batch = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
            with torch.no_grad():
                ahead = feedback.discounts(batch, self.gamma) * self._next_values(batch.next_observations)
                target = batch.rewards + (1 - batch.dones) * ahead
            values = self.q_net(batch.observations).gather(1, batch.actions.long())
            per_sample = smooth_l1_loss(values, target, reduction="none")
            loss = (batch.weights * per_sample).mean()
            losses.append(loss.item())

            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(learnt, self.max_grad_norm)
            optimizer.step()
            feedback.feed_back(self.replay_buffer, batch, (target - values.detach()).abs_())
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/loss", sum(losses) / len(losses))
        feedback.record_now_and_then(self, gradient_steps)

    def resume_statistics(self, episode_infos: list[dict[str, float]], successes: list[bool]) -> None:
        """Take over the newest episodes' figures of a run that goes on."""
        self.ep_info_buffer = deque(episode_infos, maxlen=self._stats_window_size)
        self.ep_success_buffer = deque(successes, maxlen=self._stats_window_size)

    def resume_observations(self, observations: NDArray) -> None:
        """Go on from these observations [n_envs, …] of the environments instead of resetting them."""
        pictures = isinstance(self.env, VecTransposeImage)
        self._last_obs = self.env.transpose_observations(observations) if pictures else observations  # type: ignore[union-attr]
        self._last_episode_starts = np.zeros(len(observations), dtype=bool)

    def _next_values(self, next_observations: Tensors) -> torch.Tensor:
        """[B, 1] value of the greedy next action under the target network."""
        ahead: torch.Tensor = self.q_net_target(next_observations)
        if not self.double_q:
            return ahead.max(1, keepdim=True).values
        best = self.q_net(next_observations).argmax(1, keepdim=True)
        return ahead.gather(1, best)

    def _sample_action(
        self, learning_starts: int, action_noise: ActionNoise | None = None, n_envs: int = 1
    ) -> tuple[NDArray, NDArray]:
        """ε-greedy with one coin for each environment; before `learning_starts` every action is random."""
        assert self.explorer is not None
        rate = 1.0 if self.num_timesteps < learning_starts else self.exploration_rate
        explores = self.explorer.explores(n_envs, rate)
        tossed = int(np.count_nonzero(explores))
        # All or none, the usual case, needs no rows picked out.
        if tossed == 0:
            actions = self._greedy(self._last_obs)
        elif tossed == n_envs:
            actions = self.explorer.actions(vectors(self._last_obs))  # type: ignore[arg-type]
        else:
            actions = np.zeros(n_envs, np.int64)
            actions[explores] = self.explorer.actions(vectors(_rows(self._last_obs, explores)))
            actions[~explores] = self._greedy(_rows(self._last_obs, ~explores))
        return actions, actions

    def _greedy(self, observations: Any) -> NDArray[np.int64]:
        """[n] actions that the network prefers: `policy.predict` without its checks of where observations come from."""
        self._set_training_mode(False)
        with torch.no_grad():
            actions = self.policy._predict(obs_as_tensor(observations, self.device))
        return np.asarray(actions.cpu().numpy(), np.int64)

    def _set_training_mode(self, training: bool) -> None:
        # Only where it changes: telling every module costs a quarter of what asking a small network costs.
        if self.q_net.training != training:
            self.policy.set_training_mode(training)


def _rows(observations: Any, chosen: NDArray[np.bool_]) -> Any:
    if isinstance(observations, dict):
        return {name: part[chosen] for name, part in observations.items()}
    return np.asarray(observations)[chosen]
