"""Whole agents of SB3 on the buffer: dictionaries, images, several environments, normalisation, files."""

from __future__ import annotations

import io
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from sb3_contrib import TQC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from nser.agents.dqn import DQN
from nser.agents.feedback import ReplayStatistics
from nser.agents.replay_buffer import IndexedReplayBuffer
from nser.agents.sac import SAC
from nser.agents.td3 import TD3
from nser.scorers.placebo import PlaceboScorer


def small(**options: Any) -> dict[str, Any]:
    sizes = {"learning_starts": 20, "buffer_size": 200, "batch_size": 8, "policy_kwargs": {"net_arch": [8]}}
    return {**sizes, "device": "cpu", "seed": 0, **options}


class Counting(gymnasium.Env[Any, Any]):
    """Shows the number of the step, and of the environment, in every part of its observation; ends after 7 steps.

    It reuses the arrays it gives out within an episode, as some simulators do: who keeps them without a copy holds
    the last ones.
    """

    action_space = spaces.Discrete(2)

    def __init__(self, kind: str, number: int = 0) -> None:
        image = spaces.Box(0, 255, (36, 36, 1), np.uint8)
        parts = spaces.Dict({"image": image, "vector": spaces.Box(-1e6, 1e6, (3,), np.float32)})
        self.observation_space = image if kind == "image" else parts
        self.kind, self.number, self.step_of = kind, number, 0
        self.shown: dict[str, np.ndarray] = {}

    def _show(self) -> Any:
        self.shown["image"][:] = self.step_of
        self.shown["vector"][:] = (self.step_of, self.number, 0)
        return self.shown["image"] if self.kind == "image" else self.shown

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.step_of = 0
        self.shown = {"image": np.zeros((36, 36, 1), np.uint8), "vector": np.zeros(3, np.float32)}
        return self._show(), {}

    def step(self, action: Any) -> Any:
        self.step_of += 1
        return self._show(), float(self.step_of), self.step_of == 7, False, {}


@pytest.mark.parametrize(("kind", "policy"), [("image", "CnnPolicy"), ("dict", "MultiInputPolicy")])
def test_images_and_dictionaries_train_and_come_back_as_they_were(kind: str, policy: str) -> None:
    env = DummyVecEnv([lambda i=i: Counting(kind, i) for i in range(2)])  # type: ignore[misc]
    model = DQN(policy, env, **small(policy_kwargs={}, n_steps=2, learning_starts=60, buffer_size=40))
    model.learn(64)
    buffer = model.replay_buffer
    batch = buffer.sample(100)
    assert batch.discounts is not None
    here, after = batch.observations, batch.next_observations
    steps = here[:, 0, 0, 0] if kind == "image" else here["vector"][:, 0]
    following = after[:, 0, 0, 0] if kind == "image" else after["vector"][:, 0]
    newest = torch.from_numpy(buffer.rewards[(buffer.pos - 1) % 20, batch.draw.slots % 2])
    for step, then, done, reward, last in zip(
        steps.tolist(),
        following.tolist(),
        batch.dones.ravel().tolist(),
        batch.rewards.ravel().tolist(),
        newest,
        strict=True,
    ):
        assert then in (step + 1, step + 2)
        assert done == float(then == 7), "the terminal observation itself, not the one after the reset"
        assert then == step + 2 or then in (7, last)
        assert reward == pytest.approx((step + 1) + (0.99 * (step + 2) if then == step + 2 else 0))
    if kind == "dict":
        assert (here["vector"][:, 1].numpy() == batch.draw.slots % 2).all()
        assert (here["image"][:, 0, 0, 0] == here["vector"][:, 0]).all()
        assert here["image"].dtype == torch.uint8


def test_dictionaries_are_scored_flat_and_explored() -> None:
    model = DQN("MultiInputPolicy", DummyVecEnv([lambda: Counting("dict")]), **small(policy_kwargs={}))
    model.learn(24)
    steps = model.replay_buffer.steps_of(np.arange(10))
    assert steps.observations.shape == (10, 36 * 36 + 3)
    assert steps.observations[:, -3].tolist() == [0, 1, 2, 3, 4, 5, 6, 0, 1, 2]
    assert model.replay_buffer.trajectories().complete.tolist() == [True, True, True, False]
    model.replay_buffer.set_scorer(PlaceboScorer(0.5))


@pytest.mark.parametrize("agent", [SAC, TD3])
def test_continuous_agents_train_in_several_environments(agent: Any) -> None:
    env = make_vec_env("Pendulum-v1", 3, seed=0)
    model = agent("MlpPolicy", env, **small(law="nser", gradient_steps=-1, n_steps=2))
    model.learn(60)
    actions = model.replay_buffer.actions[:20]
    assert np.abs(actions).max() <= 1.0, "rescaled to [-1, 1]; the space itself is [-2, 2]"
    assert model.replay_buffer.index.clock == model._n_updates > 0


@pytest.mark.parametrize("n_steps", [1, 3])
def test_normalisation_is_that_of_the_moment_of_the_draw(n_steps: int) -> None:
    env = VecNormalize(make_vec_env("Pendulum-v1", 2, seed=0), gamma=0.9)
    model = TD3("MlpPolicy", env, **small(law="uniform", n_steps=n_steps, gamma=0.9))
    model.learn(60)
    buffer = model.replay_buffer
    raw = buffer.sample(30)
    batch = buffer.gather(raw.draw, env)
    at = raw.draw.slots
    for found, stored in ((batch.observations, raw.observations), (batch.next_observations, raw.next_observations)):
        np.testing.assert_allclose(found, np.asarray(env.normalize_obs(stored.numpy())), rtol=1e-6)
    assert np.abs(raw.observations.numpy()).max() <= 8.0, "stored as the environment gave them"
    scale = np.sqrt(env.ret_rms.var + env.epsilon)
    rewards = buffer.rewards.reshape(-1)
    expected = rewards[at] / scale
    if n_steps == 3:
        assert batch.discounts is not None
        lengths = np.rint(np.log(batch.discounts.numpy().ravel()) / np.log(0.9)).astype(int)
        for j in (1, 2):
            ahead = rewards[(at + 2 * j) % len(rewards)] / scale
            expected = expected + 0.9**j * np.where(lengths > j, ahead, 0.0)
    np.testing.assert_allclose(batch.rewards.numpy().ravel(), expected, rtol=1e-4)


def test_any_off_policy_algorithm_replays_by_the_index_through_the_buffer_class_alone(tmp_path: Any) -> None:
    kwargs = {"law": "nser", "n_steps": 2, "gamma": 0.99}
    model = TQC(
        "MlpPolicy", "Pendulum-v1", **small(replay_buffer_class=IndexedReplayBuffer, replay_buffer_kwargs=kwargs)
    )
    model.set_logger(configure(str(tmp_path), ["csv"]))
    assert isinstance(model.replay_buffer, IndexedReplayBuffer)
    model.replay_buffer.set_scorer(PlaceboScorer(0.2, seed=1))
    model.learn(100, callback=ReplayStatistics(every=25))
    model.replay_buffer.score_new()
    stats = model.replay_buffer.index.stats()
    assert stats.clock == model._n_updates == 80
    assert stats.max_signal == 1.0, "no errors come back"
    assert 0 < stats.rule_share <= 0.5
    model.logger.dump(100)
    model.logger.close()
    header = (tmp_path / "progress.csv").read_text().splitlines()[0].split(",")
    assert {"replay/effective_size", "replay/rule_share", "replay/mean_age"} <= set(header)


def test_statistics_leave_other_buffers_alone() -> None:
    from stable_baselines3 import DQN as StockDQN

    StockDQN("MlpPolicy", "CartPole-v1", **small()).learn(10, callback=ReplayStatistics(every=5))


def test_a_saved_buffer_goes_on_with_the_same_draws_and_another_episode() -> None:
    model = DQN("MlpPolicy", "CartPole-v1", **small(law="per"))
    model.learn(60)
    stream = io.BytesIO()
    model.save_replay_buffer(stream)
    stream.seek(0)
    other = DQN("MlpPolicy", "CartPole-v1", **small(law="per"))
    other.load_replay_buffer(stream)
    ours, theirs = model.replay_buffer, other.replay_buffer
    assert theirs.index.stats() == ours.index.stats()
    before, episodes = theirs.pos, int(theirs.episodes.max())
    other.learn(5, reset_num_timesteps=False)
    assert theirs.episodes[before, 0] > episodes, "the environment was reset: the loaded episode does not go on"
    follows = theirs.frames.after(np.array([before - 1]))
    np.testing.assert_array_equal(follows, ours.frames.after(np.array([before - 1])))


def test_memory_optimisation_is_refused_by_every_agent() -> None:
    for agent, env in ((DQN, "CartPole-v1"), (SAC, "Pendulum-v1")):
        with pytest.raises(ValueError, match="each observation is stored once anyway"):
            agent("MlpPolicy", env, **small(optimize_memory_usage=True))


def test_reset_is_refused_in_words() -> None:
    buffer = IndexedReplayBuffer(4, spaces.Box(0, 1, (1,)), spaces.Discrete(2))
    with pytest.raises(ValueError, match="expected a new buffer"):
        buffer.reset()
