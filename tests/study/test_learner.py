"""The stacked update beside a slow twin: plain DQN for one seed after the other, by autograd and `torch.optim`."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import smooth_l1_loss

from nser.study.learner import StackedLearner
from nser.study.ring import Transitions
from nser.study.settings import study_settings
from tests.study.test_network import twin

WIDTH, ACTIONS, BATCH = 4, 3, 16


class PlainDqn:
    def __init__(self, network: nn.Sequential, double_q: bool, target_every: int) -> None:
        self.online, self.target = network, copy.deepcopy(network)
        self.optimiser = torch.optim.Adam(network.parameters(), lr=5e-4)
        self.double_q, self.target_every, self.updates = double_q, target_every, 0

    def update(self, batch: Transitions, member: int, weights: np.ndarray) -> np.ndarray:
        rewards, after = torch.tensor(batch.rewards[member]), torch.tensor(batch.next_observations[member])
        with torch.no_grad():
            ahead = self.target(after)
            best = (self.online(after) if self.double_q else ahead).argmax(1, keepdim=True)
            alive = torch.tensor(~batch.terminated[member], dtype=torch.float32)
            target = rewards + 0.95 * alive * ahead.gather(1, best)[:, 0]
        actions = torch.tensor(batch.actions[member])[:, None]
        values = self.online(torch.tensor(batch.observations[member])).gather(1, actions)[:, 0]
        losses = smooth_l1_loss(values, target, reduction="none")
        self.optimiser.zero_grad()
        (torch.tensor(weights[member], dtype=torch.float32) * losses).mean().backward()
        nn.utils.clip_grad_norm_(self.online.parameters(), 10.0)
        self.optimiser.step()
        self.updates += 1
        if self.updates % self.target_every == 0:
            self.target.load_state_dict(self.online.state_dict())
        return (target - values).abs().detach().numpy()


def batches(rng: np.random.Generator, members: int) -> tuple[Transitions, np.ndarray]:
    shape = (members, BATCH)
    ended = rng.random(shape) < 0.3
    return Transitions(
        rng.normal(size=(*shape, WIDTH)).astype(np.float32),
        rng.integers(ACTIONS, size=shape),
        (rng.normal(size=shape) * 3).astype(np.float32),
        rng.normal(size=(*shape, WIDTH)).astype(np.float32),
        ended,
        ended,
    ), rng.random(shape)


@pytest.mark.parametrize("double_q", [True, False])
def test_updates_are_those_of_plain_dqn(double_q: bool) -> None:
    settings = study_settings(
        {"env": "any", "net_arch": (8, 8), "double_q": double_q, "target_every": 7, "learning_rate": 5e-4}
    )
    learner = StackedLearner(settings, lambda observations: observations, WIDTH, ACTIONS, (10, 11))
    plain = [PlainDqn(twin(learner.online, member), double_q, 7) for member in range(2)]
    rng = np.random.default_rng(0)
    for _ in range(60):
        batch, weights = batches(rng, 2)
        errors = learner.update(batch, weights)
        for member in range(2):
            assert np.allclose(errors[member], plain[member].update(batch, member, weights), atol=2e-4)
    assert learner.updates == 60


def test_greedy_actions_are_the_best_of_each_member() -> None:
    settings = study_settings({"env": "any", "net_arch": (8,)})
    learner = StackedLearner(settings, lambda observations: observations, WIDTH, ACTIONS, (1, 2, 3))
    observations = np.random.default_rng(1).normal(size=(3, 5, WIDTH)).astype(np.float32)
    chosen = learner.greedy(observations)
    for member in range(3):
        values = twin(learner.online, member)(torch.tensor(observations[member]))
        assert (chosen[member] == values.argmax(1).numpy()).all()
    assert (learner.greedy_one_each(observations[:, 0]) == chosen[:, 0]).all()
