from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from nser.experience.files import load_trajectories
from nser.experience.trajectories import Trajectories, TrajectoryError
from tests.experience.test_record import Several

minari = pytest.importorskip("minari", reason="the extra [minari] is not installed: pip install nser[minari]")
EpisodeBuffer = minari.data_collector.EpisodeBuffer


@pytest.fixture
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return tmp_path


def collect(env: gymnasium.Env[Any, Any], name: str, episodes: int) -> list[list[tuple[Any, ...]]]:
    """Make a dataset from random episodes, and return what was seen on the way."""
    env.action_space.seed(0)
    played: list[list[tuple[Any, ...]]] = []
    buffers = []
    for number in range(episodes):
        seen, _ = env.reset(seed=number)
        played.append([])
        over = False
        while not over:
            action = env.action_space.sample()
            after, reward, terminated, truncated, _ = env.step(action)
            played[-1].append((seen, action, reward, after, terminated, truncated))
            seen, over = after, terminated or truncated
        first, actions, rewards, _, ended, cut = (list(column) for column in zip(*played[-1], strict=True))
        buffers.append(
            EpisodeBuffer(
                observations=columns([*first, seen]),
                actions=actions,
                rewards=rewards,
                terminations=ended,
                truncations=cut,
            )
        )
    described: dict[str, Any] = {"algorithm_name": "random", "author": "us", "author_email": "us@example.org"}
    described |= {"code_permalink": "https://example.org", "description": "a test"}
    minari.create_dataset_from_buffers(name, buffers, env=env, eval_env=env, **described)
    return played


def columns(observations: list[Any]) -> Any:
    """Minari keeps a list for each part of a dictionary."""
    if isinstance(observations[0], dict):
        return {key: columns([one[key] for one in observations]) for key in observations[0]}
    return observations


@pytest.mark.parametrize("env_id", ["CartPole-v1", "FrozenLake-v1", "Pendulum-v1"])
def test_a_dataset_is_read_as_it_was_played(datasets: Path, env_id: str) -> None:
    env = gymnasium.make(env_id, max_episode_steps=30)
    played = collect(env, "tests/played-v0", 3)
    found = load_trajectories(datasets / "tests" / "played-v0")
    assert found.lengths.tolist() == [len(episode) for episode in played]
    rows = [row for episode in played for row in episode]
    for i, (seen, action, reward, after, terminated, truncated) in enumerate(rows):
        np.testing.assert_array_equal(found.observations[i], np.atleast_1d(seen))
        np.testing.assert_array_equal(found.next_observations[i], np.atleast_1d(after))
        np.testing.assert_array_equal(found.actions[i], action)
        assert found.rewards[i] == pytest.approx(reward)
        assert (found.terminated[i], found.finished[i]) == (terminated, terminated or truncated)
    assert found.complete.all()
    assert len(load_trajectories(datasets / "tests" / "played-v0" / "data")) == len(found)
    assert found.steps().observations.shape[0] == len(found)


def test_dictionaries_are_flattened(datasets: Path) -> None:
    env = Several()
    env.spec = gymnasium.spec("CartPole-v1")  # Minari asks for one
    collect(env, "tests/several-v0", 2)
    found: Trajectories = load_trajectories(datasets / "tests" / "several-v0")
    assert found.observations.tolist() == [[0.5, 0.25, 0, 1, 0]] * 2
    assert found.actions.shape == (2, 2)


def test_no_environment_is_made_for_a_dataset_without_spaces(datasets: Path) -> None:
    collect(gymnasium.make("CartPole-v1"), "tests/bare-v0", 1)
    metadata = datasets / "tests" / "bare-v0" / "data" / "metadata.json"
    told = json.loads(metadata.read_text())
    del told["observation_space"]
    told["env_spec"] = told["env_spec"].replace("gymnasium.envs.classic_control.cartpole:CartPoleEnv", "os:abort")
    metadata.write_text(json.dumps(told))
    with pytest.raises(TrajectoryError, match="doesn't tell its spaces"):
        load_trajectories(datasets / "tests" / "bare-v0")


def test_broken_datasets_are_refused_in_words(datasets: Path) -> None:
    collect(gymnasium.make("CartPole-v1"), "tests/broken-v0", 1)
    folder = datasets / "tests" / "broken-v0"
    (data,) = (folder / "data").glob("*.hdf5")
    data.write_bytes(data.read_bytes()[:100])
    with pytest.raises(TrajectoryError, match="can't read"):
        load_trajectories(folder)
    (folder / "data" / "metadata.json").write_text("{")
    with pytest.raises(TrajectoryError, match="expected a whole Minari dataset"):
        load_trajectories(folder)


def test_without_minari_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "metadata.json").write_text("{}")
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(TrajectoryError, match=r"pip install nser\[minari\]"):
        load_trajectories(tmp_path)
