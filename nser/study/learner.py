"""Double DQN for a stack of seeds: the update of `nser.agents.dqn`, for all members at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nser.study.network import AdamSettings, StackedAdam, StackedNetwork
from nser.study.ring import Transitions
from nser.study.settings import StudySettings

Encode = Callable[[NDArray[np.float32]], NDArray[np.float32]]


class StackedLearner:
    """Online and target networks of `S` members, and their optimiser.

    encode: from observations [S, …, D] as they are stored to the networks' inputs [S, …, inputs]
    """

    def __init__(
        self, settings: StudySettings, encode: Encode, inputs: int, actions: int, seeds: Sequence[int]
    ) -> None:
        sizes = (inputs, *settings.net_arch, actions)
        self.settings, self.encode = settings, encode
        self.online = StackedNetwork(sizes, seeds)
        self.target = StackedNetwork(sizes, seeds)
        self.optimiser = StackedAdam(self.online, AdamSettings(settings.learning_rate))
        self.updates = 0

    def greedy_one_each(self, observations: NDArray[np.float32]) -> NDArray[np.int64]:
        """[S] greedy actions for one observation [S, D] of each member."""
        return np.asarray(self.online.one_each(self.encode(observations)).argmax(1), np.int64)

    def greedy(self, observations: NDArray[np.float32]) -> NDArray[np.int64]:
        """[S, B] greedy actions for observations [S, B, D]."""
        actions: NDArray[np.int64] = self.online.forward(torch.from_numpy(self.encode(observations))).argmax(2).numpy()
        return actions

    def update(self, batch: Transitions, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """One gradient step on [S, B] transitions with importance weights [S, B]; |TD error| [S, B] before it.

        The loss of a member is the weighted mean of its Huber losses (δ = 1), which is no sum over members: their
        gradients are each other's business in nothing but the time they take.
        """
        values, errors, activations = self._errors(batch)
        outer = torch.zeros_like(values)
        scale = torch.from_numpy(weights.astype(np.float32)) / weights.shape[1]
        outer.scatter_(2, torch.from_numpy(batch.actions)[..., None], (errors.clamp(-1, 1) * -scale)[..., None])
        self.online.backward(activations, outer)
        self.optimiser.step()
        self.updates += 1
        if self.updates % self.settings.target_every == 0:
            self.target.copy_from(self.online)
        return errors.abs_().numpy().astype(np.float64)

    def _errors(self, batch: Transitions) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Action values [S, B, A], TD errors (target − value) [S, B], and the activations that gave the values."""
        after = torch.from_numpy(self.encode(batch.next_observations))
        ahead = self.target.forward(after)
        if self.settings.double_q:
            best = self.online.forward(after).argmax(2, keepdim=True)
            ahead = ahead.gather(2, best)[..., 0]
        else:
            ahead = ahead.amax(2)
        alive = torch.from_numpy(~batch.terminated)
        target = torch.from_numpy(batch.rewards) + self.settings.gamma * alive * ahead
        activations = self.online.activations(torch.from_numpy(self.encode(batch.observations)))
        values = activations[-1]
        taken = values.gather(2, torch.from_numpy(batch.actions)[..., None])[..., 0]
        return values, target - taken, activations
