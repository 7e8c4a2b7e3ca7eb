from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from nser.agents.dqn import DQN
from nser.agents.qrdqn import QRDQN
from nser.agents.replay_buffer import IndexedReplayBuffer
from nser.agents.sac import SAC
from nser.agents.td3 import TD3

GAMMA = 0.5


def buffer_of(size: int, n_envs: int, n_steps: int) -> IndexedReplayBuffer:
    box = spaces.Box(-1e9, 1e9, (1,), np.float32)
    return IndexedReplayBuffer(
        size * n_envs, box, spaces.Discrete(2), "cpu", n_envs, law="uniform", n_steps=n_steps, gamma=GAMMA
    )


def fill(buffer: IndexedReplayBuffer, count: int, ends: dict[int, str], start: int = 0) -> None:
    """Environment e is at 100 e + k before its k-th step; reward 2^k; an episode ends after the steps in `ends`."""
    envs = 100.0 * np.arange(buffer.n_envs)[:, None]
    for k in range(start, start + count):
        how = ends.get(k)
        infos: list[dict[str, Any]] = [{"TimeLimit.truncated": how == "truncated"}] * buffer.n_envs
        done = np.full(buffer.n_envs, how in ("terminated", "truncated"))
        # After an end, what followed is 1000 more than where the next episode starts.
        after = envs + k + 1 + (1000 if how else 0)
        reward = np.full(buffer.n_envs, 2.0**k)
        buffer.add(envs + k, after, np.zeros(buffer.n_envs), reward, done, infos)


def expected(k: int, newest: int, ends: dict[int, str], n_steps: int) -> tuple[float, float, float, int]:
    """Return, discount, done and the last step of the window from step k, written out."""
    total, last = 0.0, k
    for length in range(1, n_steps + 1):
        last = k + length - 1
        total += GAMMA ** (length - 1) * 2.0**last
        if last in ends or last == newest:
            break
    return total, GAMMA**length, float(ends.get(last) == "terminated"), last


@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("count", [7, 16, 29])
def test_windows_end_with_the_episode_the_time_limit_and_the_newest_step(n_envs: int, count: int) -> None:
    ends = {4: "terminated", 9: "truncated", 13: "terminated", 14: "truncated", 22: "truncated", 26: "reset"}
    buffer = buffer_of(10, n_envs, 3)
    fill(buffer, count, ends)
    batch = buffer.sample(200)
    for i in range(200):
        env, k = divmod(int(batch.observations[i]), 100)
        total, discount, done, last = expected(k, count - 1, ends, 3)
        assert batch.rewards[i].item() == total
        assert batch.discounts is not None
        assert batch.discounts[i].item() == pytest.approx(discount)
        assert batch.dones[i].item() == done
        assert batch.next_observations[i].item() == 100 * env + last + 1 + (1000 if last in ends else 0)
    assert {int(o) % 100 for o in batch.observations} == set(range(max(count - 10, 0), count))


def test_an_environment_reset_in_between_begins_another_episode() -> None:
    buffer = buffer_of(20, 2, 5)
    fill(buffer, 4, {})
    fill(buffer, 4, {}, start=10)
    assert len(np.unique(buffer.episodes[:8])) == 4
    batch = buffer.sample(100)
    ks = batch.observations.numpy().ravel() % 100
    early = ks < 4
    last = batch.next_observations.numpy().ravel()[early] % 100
    assert (last == 4).all(), "no window goes over the reset"
    assert batch.dones.sum() == 0


def test_one_step_batches_leave_the_discount_to_the_agent() -> None:
    buffer = buffer_of(10, 1, 1)
    fill(buffer, 5, {})
    assert buffer.sample(4).discounts is None


@pytest.mark.parametrize(("option", "value"), [("n_steps", 0), ("gamma", 1.5), ("gamma", -0.1)])
def test_wrong_windows_are_refused(option: str, value: float) -> None:
    box = spaces.Box(-1, 1, (1,))
    options: dict[str, Any] = {option: value}
    with pytest.raises(ValueError, match=f"{option}={value}"):
        IndexedReplayBuffer(10, box, spaces.Discrete(2), **options)


@pytest.mark.parametrize(
    ("agent", "env"), [(DQN, "CartPole-v1"), (QRDQN, "CartPole-v1"), (SAC, "Pendulum-v1"), (TD3, "Pendulum-v1")]
)
def test_sb3s_n_steps_reaches_the_buffer_and_survives_saving(agent: Any, env: str) -> None:
    options = {"policy_kwargs": {"net_arch": [8]}, "learning_starts": 10, "buffer_size": 100, "batch_size": 8}
    model = agent("MlpPolicy", env, n_steps=3, gamma=0.9, device="cpu", **options)
    model.learn(30)
    buffer = model.replay_buffer
    assert (model.n_steps, buffer.n_steps, buffer.gamma) == (3, 3, 0.9)
    discounts = buffer.sample(50).discounts.numpy().ravel()
    assert set(np.round(np.log(discounts) / np.log(0.9)).tolist()) <= {1.0, 2.0, 3.0}
    assert np.isclose(discounts, 0.9**3).any()
    stream = io.BytesIO()
    model.save(stream)
    stream.seek(0)
    assert agent.load(stream).replay_buffer.n_steps == 3
