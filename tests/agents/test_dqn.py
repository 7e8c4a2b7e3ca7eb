from __future__ import annotations

import io
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
import torch
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.torch_layers import FlattenExtractor

from nser.agents.dqn import DQN
from nser.agents.explore import RuleExplorer, UniformExplorer
from nser.agents.replay_buffer import IndexedReplayBuffer, ReplaySamples
from nser.rules.parse import parse_rules
from tests.induce.planted import CHAIN

SMALL: dict[str, Any] = {
    "policy_kwargs": {"net_arch": [16]},
    "learning_starts": 20,
    "buffer_size": 500,
    "batch_size": 16,
    "train_freq": 2,
    "device": "cpu",
}


def small(env: Any = "CartPole-v1", **options: Any) -> DQN:
    return DQN("MlpPolicy", env, **{**SMALL, **options})


@pytest.mark.parametrize("double_q", [True, False])
def test_errors_fed_back_are_the_raw_td_errors_of_the_weighted_loss(
    double_q: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One gradient step, written out: target, per-sample Huber, weights, and |TD error| to the index."""
    model = small(seed=0, double_q=double_q, law="per")
    model.learn(60)
    drawn: list[ReplaySamples] = []
    fed: list[np.ndarray] = []
    sample, update = model.replay_buffer.sample, model.replay_buffer.update

    def spy_sample(*args: Any, **kwargs: Any) -> ReplaySamples:
        drawn.append(sample(*args, **kwargs))
        return drawn[-1]

    def spy_update(draw: Any, errors: np.ndarray) -> None:
        fed.append(errors)
        update(draw, errors)

    monkeypatch.setattr(model.replay_buffer, "sample", spy_sample)
    monkeypatch.setattr(model.replay_buffer, "update", spy_update)
    # Other target weights than online ones, else both kinds of target agree.
    with torch.no_grad():
        for parameter in model.q_net_target.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    online = {name: value.clone() for name, value in model.q_net.state_dict().items()}
    model.train(1, 16)
    after = {name: value.clone() for name, value in model.q_net.state_dict().items()}

    batch = drawn[0]
    model.q_net.load_state_dict(online)
    with torch.no_grad():
        ahead = model.q_net_target(batch.next_observations)
        greedy = model.q_net(batch.next_observations) if double_q else ahead
        best = ahead[torch.arange(16), greedy.argmax(1)]
        target = batch.rewards.ravel() + (1 - batch.dones.ravel()) * model.gamma * best
        error = target - model.q_net(batch.observations)[torch.arange(16), batch.actions.ravel()]
    np.testing.assert_allclose(fed[0], error.abs().numpy(), rtol=1e-4, atol=1e-6)
    assert len(np.unique(batch.weights)) > 3
    assert any(not torch.equal(online[name], after[name]) for name in online)


def test_weights_scale_the_gradient_of_each_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """With weight 0 on all but one sample, the step is that sample's step alone."""
    model = small(seed=1, law="uniform", max_grad_norm=1e9)
    model.learn(60)
    batch = model.replay_buffer.sample(16)
    weights = torch.zeros(16, 1)
    weights[3] = 16.0
    monkeypatch.setattr(model.replay_buffer, "sample", lambda *a, **k: batch._replace(weights=weights))
    monkeypatch.setattr(model.replay_buffer, "update", lambda *a: None)
    gradients: list[torch.Tensor] = []
    monkeypatch.setattr(model.policy.optimizer, "step", lambda: gradients.extend(_gradients(model)))
    model.train(1, 16)
    alone = batch._replace(
        **{
            name: getattr(batch, name)[3:4]
            for name in ("observations", "next_observations", "actions", "rewards", "dones")
        },
        weights=torch.ones(1, 1),
    )
    monkeypatch.setattr(model.replay_buffer, "sample", lambda *a, **k: alone)
    model.train(1, 1)
    half = len(gradients) // 2
    for together, single in zip(gradients[:half], gradients[half:], strict=True):
        torch.testing.assert_close(together, single, atol=1e-6, rtol=1e-4)


def _gradients(model: DQN) -> list[torch.Tensor]:
    return [p.grad.clone() for p in model.q_net.parameters() if p.grad is not None]


def test_same_seeds_same_run_and_other_seeds_another() -> None:
    def weights(seed: int) -> np.ndarray:
        model = small(make_vec_env("CartPole-v1", 2, seed=5), seed=seed, law="nser")
        model.learn(200)
        return torch.cat([p.flatten() for p in model.q_net.parameters()]).detach().numpy()

    np.testing.assert_array_equal(weights(3), weights(3))
    assert not np.array_equal(weights(3), weights(4))


class Mode(FlattenExtractor):
    """Writes down in which mode it was asked, and for how many rows."""

    asked: ClassVar[list[tuple[bool, int]]] = []

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        self.asked.append((self.training, len(observations)))
        return super().forward(observations)


def test_networks_learn_in_training_mode_and_act_out_of_it() -> None:
    Mode.asked.clear()
    options = {"policy_kwargs": {"net_arch": [16], "features_extractor_class": Mode}, "law": "per", "double_q": False}
    model = small(**options, exploration_initial_eps=0.1, seed=0)
    model.learn(60)
    assert {mode for mode, rows in Mode.asked if rows == 1} == {False}
    by_target, by_online = (mode for mode, rows in Mode.asked[-4:] if rows == 16)
    assert (by_target, by_online) == (False, True)
    model.predict(np.zeros((1, 4), np.float32), deterministic=True)  # as an evaluation between two rollouts does
    Mode.asked.clear()
    model.train(1, 16)
    assert Mode.asked == [(False, 16), (True, 16)]


@pytest.mark.parametrize("env", ["CartPole-v1", "FrozenLake-v1"])
def test_greedy_actions_are_those_that_the_policy_predicts(env: str) -> None:
    model = small(make_vec_env(env, 3, seed=0), seed=0, law="per", exploration_final_eps=0.0, exploration_fraction=0.1)
    model.learn(60)
    expected, _ = model.policy.predict(model._last_obs, deterministic=True)  # type: ignore[arg-type]
    found, stored = model._sample_action(0, n_envs=3)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(stored, expected)
    assert model.exploration_rate == 0.0


def test_environments_explore_apart() -> None:
    explorer = UniformExplorer(3, seed=0)
    flags = np.stack([explorer.explores(4, 0.5) for _ in range(4000)])
    assert flags.mean(0) == pytest.approx(np.full(4, 0.5), abs=0.03)
    assert abs(np.corrcoef(flags[:, 0], flags[:, 1])[0, 1]) < 0.05


def test_exploration_follows_the_schedule() -> None:
    model = small(exploration_fraction=0.5, exploration_initial_eps=1.0, exploration_final_eps=0.0, learning_starts=0)
    model.learn(100)
    asked = []
    monkey = model.explorer
    assert monkey is not None
    original = monkey.explores

    def spy(count: int, rate: float) -> np.ndarray:
        asked.append(rate)
        return original(count, rate)

    monkey.explores = spy  # type: ignore[method-assign]
    model.learn(100)
    assert 0.9 < asked[1] <= 1.0
    assert asked[25] == pytest.approx(0.5, abs=0.05)
    assert asked[-1] == 0.0


def test_save_and_load_keep_network_and_buffer() -> None:
    model = small(seed=2, law="per")
    model.learn(80)
    stream = io.BytesIO()
    model.save(stream)
    stream.seek(0)
    loaded = DQN.load(stream, env=gymnasium.make("CartPole-v1"))
    observation = np.zeros((1, 4), np.float32)
    assert loaded.predict(observation, deterministic=True)[0] == model.predict(observation, deterministic=True)[0]
    assert isinstance(loaded.replay_buffer, IndexedReplayBuffer)
    assert loaded.replay_buffer.law == model.replay_buffer.law
    assert loaded.double_q is model.double_q
    stored = io.BytesIO()
    model.save_replay_buffer(stored)
    stored.seek(0)
    loaded.load_replay_buffer(stored)
    loaded.learn(40, reset_num_timesteps=False)


def test_stock_agents_replay_by_the_index_through_the_buffer_class_alone() -> None:
    from stable_baselines3 import SAC

    model = SAC(
        "MlpPolicy",
        "Pendulum-v1",
        replay_buffer_class=IndexedReplayBuffer,
        replay_buffer_kwargs={"law": "freshper"},
        learning_starts=20,
        buffer_size=200,
        batch_size=8,
        policy_kwargs={"net_arch": [8]},
        device="cpu",
    )
    model.learn(40)
    assert isinstance(model.replay_buffer, IndexedReplayBuffer)
    assert model.replay_buffer.index.clock == 20


RULES = parse_rules(
    """
rule on [0.9]: forall t in step: inside(t, r0) & action_is(t, push) -> good(t)
rule also [0.3]: forall t in step: inside(t, r0) & action_is(t, lift) -> good(t)
rule past: forall t in step: prev(inside(t, r0)) & action_is(t, pull) -> good(t)
rule bad: forall t in step: inside(t, r0) & action_is(t, wait) -> ~good(t)
rule round: forall t in step: ~next(inside(t-1, r3)) & action_is(t, pull) -> good(t)
"""
).rules


def test_rules_guide_a_share_of_the_random_actions_by_their_weight() -> None:
    explorer = RuleExplorer(CHAIN, 0.5, seed=0)
    explorer.set_rules(RULES)
    chosen = explorer.actions(np.zeros((8000, 2), np.float32))
    share = np.bincount(chosen, minlength=4) / len(chosen)
    # Half uniform over four; half by score, 0.9 to push and 0.3 to lift. Temporal and blaming rules take no part.
    assert share == pytest.approx([0.125, 0.125 + 0.375, 0.125, 0.125 + 0.125], abs=0.02)
    assert explorer.guided / explorer.asked == pytest.approx(0.5, abs=0.02)


def test_where_no_rule_speaks_exploration_is_uniform() -> None:
    explorer = RuleExplorer(CHAIN, 1.0, seed=0)
    explorer.set_rules(RULES)
    chosen = explorer.actions(np.tile(np.array([2.0, 0.0], np.float32), (4000, 1)))
    assert np.bincount(chosen, minlength=4) / 4000 == pytest.approx(np.full(4, 0.25), abs=0.03)
    assert explorer.guided == 0


def test_new_rules_replace_what_was_remembered() -> None:
    explorer = RuleExplorer(CHAIN, 1.0, seed=0)
    explorer.set_rules(RULES[:1])
    here = np.zeros((50, 2), np.float32)
    assert set(explorer.actions(here)) == {1}
    explorer.set_rules(RULES[1:2])
    assert set(explorer.actions(here)) == {3}
    explorer.set_rules(())
    assert len(set(explorer.actions(np.zeros((200, 2), np.float32)))) == 4


def test_explorers_go_on_from_their_state() -> None:
    explorer = RuleExplorer(CHAIN, 0.5, seed=0)
    explorer.set_rules(RULES)
    here = np.zeros((100, 2), np.float32)
    explorer.actions(here)
    state = explorer.state()
    following = explorer.actions(here)
    explorer.load_state(state)
    np.testing.assert_array_equal(explorer.actions(here), following)


def test_wrong_explorers_are_refused() -> None:
    with pytest.raises(ValueError, match="found share 2"):
        RuleExplorer(CHAIN, 2, seed=0)
    with pytest.raises(ValueError, match="names no discrete actions"):
        RuleExplorer(type(CHAIN)("bare", CHAIN.declared, CHAIN.sorts), 0.5, seed=0)
