"""The agents with feedback against SB3's own: with weights of one, the same draws make the same step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sb3_contrib import QRDQN as StockQRDQN
from sb3_contrib.common.utils import quantile_huber_loss
from stable_baselines3 import DQN as StockDQN
from stable_baselines3 import SAC as StockSAC
from stable_baselines3 import TD3 as StockTD3
from stable_baselines3.common.buffers import ReplayBuffer
from torch import nn

from nser.agents import feedback
from nser.agents.dqn import DQN
from nser.agents.qrdqn import QRDQN, quantile_huber
from nser.agents.replay_buffer import IndexedReplayBuffer, ReplaySamples
from nser.agents.sac import SAC
from nser.agents.td3 import TD3


def small(**options: Any) -> dict[str, Any]:
    """Arguments of a small agent; new ones each time, for SB3 writes into `policy_kwargs`."""
    sizes = {"learning_starts": 40, "buffer_size": 200, "batch_size": 16, "policy_kwargs": {"net_arch": [16]}}
    return {**sizes, "device": "cpu", "seed": 0, **options}


PAIRS: dict[str, tuple[Any, Any, str, dict[str, Any]]] = {
    "dqn": (DQN, StockDQN, "CartPole-v1", {"double_q": False}),
    "qrdqn": (QRDQN, StockQRDQN, "CartPole-v1", {}),
    "sac": (SAC, StockSAC, "Pendulum-v1", {}),
    "sac, fixed entropy": (SAC, StockSAC, "Pendulum-v1", {"ent_coef": 0.1}),
    "td3": (TD3, StockTD3, "Pendulum-v1", {"policy_delay": 2}),
}


def trained(name: str, n_steps: int = 1, **options: Any) -> Any:
    ours, _, env, more = PAIRS[name]
    # The policy is made from the seed; learning up to the first gradient step fills the buffer.
    model = ours("MlpPolicy", env, **small(**more, law="per", n_steps=n_steps, **options))
    model.learn(40)
    with torch.no_grad():
        for parameter in _targets(model):
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def _targets(model: Any) -> list[nn.Parameter]:
    names = ("q_net_target", "quantile_net_target", "critic_target")
    return [p for name in names if hasattr(model, name) for p in getattr(model, name).parameters()]


class Replays(ReplayBuffer):
    """Gives out the batches of a list, whatever is asked for."""

    batches: list[ReplaySamples]

    def sample(self, *args: Any, **kwargs: Any) -> Any:
        return self.batches.pop(0)


class Recorder(IndexedReplayBuffer):
    """The same, and keeps what is fed back."""

    batches: list[ReplaySamples]

    def sample(self, *args: Any, **kwargs: Any) -> Any:
        return self.batches.pop(0)

    def update(self, draw: Any, errors: Any) -> None:
        self.fed.append(errors)

    @property
    def fed(self) -> list[np.ndarray]:
        found: list[np.ndarray] = self.__dict__.setdefault("_fed", [])
        return found


def recorder(model: Any, batches: list[ReplaySamples]) -> Recorder:
    buffer = Recorder(10, model.observation_space, model.action_space, "cpu")
    buffer.batches = list(batches)
    model.replay_buffer = buffer
    return buffer


@pytest.mark.parametrize("n_steps", [1, 3])
@pytest.mark.parametrize("name", PAIRS)
def test_with_weights_of_one_a_step_is_sb3s(name: str, n_steps: int) -> None:
    _, stock_class, env, more = PAIRS[name]
    model = trained(name, n_steps)
    drawn = [model.replay_buffer.sample(16) for _ in range(4)]
    drawn = [batch._replace(weights=torch.ones(16, 1)) for batch in drawn]
    stock = stock_class("MlpPolicy", env, **small(**{k: v for k, v in more.items() if k != "double_q"}))
    stock.learn(1)  # sets up the logger
    stock.set_parameters(model.get_parameters())
    stock._n_updates = model._n_updates
    buffer = Replays(10, stock.observation_space, stock.action_space, "cpu")
    buffer.batches = list(drawn)
    stock.replay_buffer = buffer
    recorder(model, drawn)
    for one in (model, stock):
        torch.manual_seed(1)
        one.train(4, 16)
    for (key, ours), theirs in zip(model.policy.state_dict().items(), stock.policy.state_dict().values(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6, msg=key)


@pytest.mark.parametrize("name", ["qrdqn", "sac", "td3"])
def test_weights_scale_each_samples_part_of_the_critics_gradient(name: str) -> None:
    model = trained(name)
    batch = model.replay_buffer.sample(16)
    weights = torch.linspace(0.1, 1.6, 16).unsqueeze(1)

    def gradient(part: ReplaySamples) -> torch.Tensor:
        taken: list[torch.Tensor] = []
        net = model.quantile_net if name == "qrdqn" else model.critic
        optimizer = model.policy.optimizer if name == "qrdqn" else model.critic.optimizer
        step = optimizer.step
        optimizer.step = lambda: taken.append(torch.cat([p.grad.flatten().clone() for p in net.parameters()]))
        others = [] if name == "qrdqn" else [model.actor.optimizer, getattr(model, "ent_coef_optimizer", None)]
        kept = [(other, other.step) for other in others if other is not None]
        for other, _ in kept:
            other.step = lambda: None
        recorder(model, [part])
        torch.manual_seed(3)
        updates = model._n_updates
        model.train(1, len(part.weights))
        model._n_updates = updates - updates % 2  # TD3: no step of the actor
        optimizer.step = step
        for other, original in kept:
            other.step = original
        return taken[0]

    model.max_grad_norm = None
    model.target_policy_noise = 0.0
    model.tau = 0.0  # the target critics stay as they are
    if name == "sac":
        # Its noise would differ with the size of the batch; a narrow policy has hardly any.
        with torch.no_grad():
            model.actor.log_std.weight.zero_()
            model.actor.log_std.bias.fill_(-20.0)
            model.log_ent_coef.fill_(-30.0)
    together = gradient(batch._replace(weights=weights))
    # `draw` has no slices: the buffer of this test reads none.
    tensors = ("observations", "actions", "next_observations", "dones", "rewards")
    alone = [
        gradient(
            batch._replace(weights=weights[i : i + 1], **{name: getattr(batch, name)[i : i + 1] for name in tensors})
        )
        for i in range(16)
    ]
    torch.testing.assert_close(together, torch.stack(alone).mean(0), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["sac", "td3"])
def test_the_index_hears_the_mean_over_the_critics_of_the_raw_error(name: str) -> None:
    model = trained(name)
    batch = model.replay_buffer.sample(16)
    target = torch.randn(16, 1)
    fed = recorder(model, [batch]).fed
    model._target = lambda *args: target
    with torch.no_grad():
        errors = torch.cat(model.critic(batch.observations, batch.actions), 1) - target
    model.train(1, 16)
    np.testing.assert_allclose(fed[0], errors.abs().mean(1).numpy(), rtol=1e-5)


def test_quantile_agent_feeds_back_the_error_of_the_mean() -> None:
    model = trained("qrdqn")
    batch = model.replay_buffer.sample(16)
    target = torch.randn(16, model.n_quantiles) + 1
    fed = recorder(model, [batch]).fed
    model._target_quantiles = lambda *args: target
    with torch.no_grad():
        values = model.quantile_net(batch.observations)[torch.arange(16), :, batch.actions.long().ravel()]
    model.train(1, 16)
    np.testing.assert_allclose(fed[0], (target.mean(1) - values.mean(1)).abs().numpy(), rtol=1e-5)


def test_quantile_loss_of_each_sample_averages_to_the_librarys() -> None:
    torch.manual_seed(0)
    values, target = torch.randn(12, 7), 2 * torch.randn(12, 7)
    torch.testing.assert_close(quantile_huber(values, target).mean(), quantile_huber_loss(values, target))
    one = quantile_huber(torch.tensor([[0.0, 0.0]]), torch.tensor([[2.0, -0.5]]))
    # quantiles at 1/4 and 3/4; Huber of 2 is 1.5, of −0.5 is 0.125; mean over the targets
    assert one.item() == pytest.approx((0.25 * 1.5 + 0.75 * 1.5 + 0.75 * 0.125 + 0.25 * 0.125) / 2)


@pytest.mark.parametrize("name", ["dqn", "qrdqn", "sac", "td3"])
def test_errors_change_what_is_drawn_and_statistics_reach_the_logger(name: str, tmp_path: Any) -> None:
    from stable_baselines3.common.logger import configure

    ours, _, env, more = PAIRS[name]
    model = ours("MlpPolicy", env, **small(**more))
    model.set_logger(configure(str(tmp_path), ["csv"]))
    model.learn(80)
    signals = model.replay_buffer.index.explain(np.arange(80)).signal
    assert len(np.unique(signals)) > 10
    model.logger.dump(80)
    model.logger.close()
    header = (tmp_path / "progress.csv").read_text().splitlines()[0].split(",")
    for figure in ("effective_size", "rule_share", "mean_age", "stale_updates", "episodes_in_batch"):
        assert f"replay/{figure}" in header


def test_statistics_are_looked_up_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    model = trained("dqn")
    looks: list[int] = []
    monkeypatch.setattr(feedback, "record_statistics", lambda *args: looks.append(model._n_updates))
    for done in range(1, 5000):
        model._n_updates = done
        feedback.record_now_and_then(model, 1)
    assert looks == [1, 1000, 2000, 3000, 4000]


def test_a_buffer_without_an_index_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="found replay_buffer_class=ReplayBuffer, expected IndexedReplayBuffer"):
        SAC("MlpPolicy", "Pendulum-v1", replay_buffer_class=ReplayBuffer)
