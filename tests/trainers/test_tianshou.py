from __future__ import annotations

import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from scipy.stats import chisquare

pytest.importorskip("tianshou", reason="needs the extra: pip install nser[tianshou]")

from tianshou.data import Batch

from nser.replay import Law, SignalError
from nser.trainers.tianshou import IndexedVectorReplayBuffer

PLAIN = Law(alpha=1.0, epsilon=0.0, beta=1.0, normalise="none", stratified=False)


def buffer_of(size: int = 12, envs: int = 3, **options: Any) -> IndexedVectorReplayBuffer:
    return IndexedVectorReplayBuffer(size, envs, **{"law": PLAIN, **options})


def add(buffer: IndexedVectorReplayBuffer, k: int, envs: Any = None) -> np.ndarray:
    """The k-th step of the given environments: observation (environment, k)."""
    ids = np.arange(buffer.buffer_num) if envs is None else np.asarray(envs)
    obs = np.stack([ids, np.full(len(ids), k)], 1).astype(np.float32)
    no = np.zeros(len(ids), bool)
    steps = Batch(
        obs=obs, act=ids, rew=np.full(len(ids), float(k)), obs_next=obs + np.array([0, 1]), terminated=no, truncated=no
    )
    places: np.ndarray = buffer.add(steps, ids)[0]
    return places


@pytest.mark.parametrize("count", [2, 4, 11])
def test_what_is_drawn_is_what_the_environments_stored(count: int) -> None:
    buffer = buffer_of()
    for k in range(count):
        add(buffer, k)
    batch, places = buffer.sample(200)
    env, k = batch.obs.T.astype(int)
    np.testing.assert_array_equal(places, env * 4 + k % 4)
    assert set(k.tolist()) == set(range(max(count - 4, 0), count))
    assert set(env.tolist()) == {0, 1, 2}
    assert batch.weight == pytest.approx(np.ones(200))
    assert buffer.index.clock == 1


def test_draws_follow_the_errors_and_weights_undo_them() -> None:
    buffer = buffer_of()
    for k in range(4):
        add(buffer, k)
    errors = np.arange(1.0, 13.0)
    signs = np.where(np.arange(12) % 2, -1, 1)
    buffer.update_weight(np.arange(12), torch.from_numpy(errors * signs))
    batch, places = buffer.sample(4000)
    counts = np.bincount(places, minlength=12)
    assert chisquare(counts, errors / errors.sum() * 4000).pvalue > 0.01
    np.testing.assert_allclose(batch.weight, (errors.sum() / errors / 12)[places])


def test_environments_of_different_speed_are_drawn_from_what_the_buffer_holds() -> None:
    """The fast one overwrites its ring while the index still knows what lay there: that is never drawn."""
    buffer = buffer_of(size=12, envs=3, law="per")
    for k in range(4):
        add(buffer, k)
    for k in range(4, 7):
        add(buffer, k, [0])
    held = {(0, k) for k in (3, 4, 5, 6)} | {(e, k) for e in (1, 2) for k in range(4)}
    seen = set()
    for _ in range(30):
        batch, places = buffer.sample(16)
        seen |= {(int(e), int(k)) for e, k in batch.obs}
        np.testing.assert_array_equal(buffer.places_of(buffer.slots_of(places)), places)
        assert len(batch) == len(places) == 16
        assert batch.weight.max() == 1.0
    # The index holds the newest twelve of the fifteen: the slow ones' first steps are not among them.
    assert seen <= held
    assert {(0, 3), (0, 4), (0, 5), (0, 6), (1, 3), (2, 3)} <= seen


def test_feedback_for_what_was_overwritten_is_ignored() -> None:
    buffer = buffer_of()
    for k in range(4):
        add(buffer, k)
    _, places = buffer.sample(64)
    add(buffer, 4)
    buffer.update_weight(places, np.full(64, 9.0))
    overwritten = np.isin(places, [0, 4, 8])
    assert buffer.index.stats().stale_updates == overwritten.sum() > 0
    signal = buffer.index.explain(buffer.slots_of(np.arange(12))).signal
    assert (signal[[0, 4, 8]] == 1).all()
    assert (signal[np.unique(places[~overwritten])] == 9).all()
    with pytest.raises(SignalError):
        buffer.update_weight(places[:1], [np.nan])


def test_relevance_tilts_the_draws_of_a_place() -> None:
    buffer = buffer_of(law=Law(alpha=1.0, eta=4.0))
    for k in range(3):
        add(buffer, k)
    buffer.relate([5], [1.0], version=1)
    found = buffer.index.explain(buffer.slots_of([5, 6]))
    assert found.probability[0] == pytest.approx(5 * found.probability[1])


def test_everything_as_tianshou_gives_it_a_reset_and_a_pickle() -> None:
    buffer = buffer_of(law="nser")
    for k in range(5):
        add(buffer, k)
    everything, places = buffer.sample(0)
    assert len(everything) == len(places) == 12
    copy = pickle.loads(pickle.dumps(buffer))
    np.testing.assert_array_equal(copy.sample(16)[1], buffer.sample(16)[1])
    buffer.reset()
    assert len(buffer.index) == 0
    add(buffer, 0)
    assert set(buffer.sample(16)[1].tolist()) <= {0, 4, 8}


def test_a_collector_and_dqn_feed_their_errors_back() -> None:
    from tianshou.algorithm.modelfree.dqn import DQN, DiscreteQLearningPolicy
    from tianshou.algorithm.optim import AdamOptimizerFactory
    from tianshou.data import Collector
    from tianshou.env import DummyVectorEnv
    from tianshou.utils.net.common import Net
    from tianshou.utils.torch_utils import policy_within_training_step

    envs = DummyVectorEnv([lambda: gymnasium.make("CartPole-v1") for _ in range(2)])
    space: Any = envs.action_space[0]
    net = Net(state_shape=(4,), action_shape=2, hidden_sizes=[8])
    policy = DiscreteQLearningPolicy(model=net, action_space=space, eps_training=1.0)
    agent = DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), gamma=0.9, n_step_return_horizon=2)
    buffer = IndexedVectorReplayBuffer(200, 2, law="per")
    Collector(agent, envs, buffer).collect(n_step=100, reset_before_collect=True)
    for _ in range(4):
        with policy_within_training_step(agent.policy):
            agent.update(buffer, 32)
    signals = buffer.index.explain(buffer.index.live_slots()).signal
    assert len(np.unique(signals)) > 20
    assert buffer.index.clock == 4
