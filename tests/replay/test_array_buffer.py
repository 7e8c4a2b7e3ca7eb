from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from nser.replay import ArgumentError, ArrayBuffer, CheckpointError, Draw, Law, ReplayIndex, SignalError, VectorSteps
from nser.replay.array_buffer import Batch

DRAWN = ("obs", "actions", "rewards", "next_obs", "terminated")


def transition(k: int) -> tuple[Any, ...]:
    """The k-th transition: every field tells k."""
    return np.array([k, -k], np.float32), k % 7, k / 2, np.array([k + 1, -k - 1], np.float32), k % 3 == 0, k % 5 == 0


def many(ks: range) -> tuple[np.ndarray, ...]:
    return tuple(np.stack([np.asarray(part) for part in parts]) for parts in zip(*map(transition, ks), strict=True))


def filled(count: int, capacity: int = 8, **options: Any) -> ArrayBuffer:
    buffer = ArrayBuffer(capacity, (2,), **{"law": Law(alpha=1.0, epsilon=0.0), **options})
    for k in range(count):
        buffer.add(*transition(k))
    return buffer


def check(batch: Batch, slots: np.ndarray, capacity: int, count: int) -> None:
    newest = (count - 1) - (count - 1 - slots) % capacity
    for name, expected in zip(DRAWN, many(range(count)), strict=False):
        np.testing.assert_allclose(getattr(batch, name), expected[newest], err_msg=name)


@settings(deadline=None, max_examples=60)
@given(capacity=st.integers(1, 9), sizes=st.lists(st.integers(0, 9), min_size=1, max_size=12))
def test_what_is_drawn_is_what_was_added(capacity: int, sizes: list[int]) -> None:
    """Single (size 0) and batched adds in any mixture, below, at and past the border of the ring."""
    buffer = ArrayBuffer(capacity, (2,), law="uniform")
    count = 0
    for size in sizes:
        ks = range(count, count + max(min(size, capacity), 1))
        slots = buffer.add(*(transition(count) if size == 0 else many(ks)))
        assert slots.tolist() == [k % capacity for k in ks]
        count += len(ks)
    batch = buffer.sample(40)
    check(batch, batch.draw.slots, capacity, count)
    assert len(buffer) == min(count, capacity)
    assert set(batch.draw.slots.tolist()) <= set(range(min(count, capacity)))


@pytest.mark.parametrize("capacity", [1, 2, 3])
def test_the_smallest_buffers_draw_every_item(capacity: int) -> None:
    for count in range(1, 2 * capacity + 2):
        buffer = filled(count, capacity)
        assert set(buffer.sample(200).draw.slots.tolist()) == set(range(min(count, capacity)))


def test_draws_follow_the_errors_and_weights_undo_them(backend: str) -> None:
    buffer = filled(8, law=Law(alpha=1.0, epsilon=0.0, beta=1.0, normalise="none", stratified=False))
    slots = np.arange(8)
    errors = (1.0 + slots).astype(np.float64)
    buffer.update(Draw(slots, buffer.index.generations_of(slots), errors, errors, slots), errors)
    batch = buffer.sample(4000)
    counts = np.bincount(batch.draw.slots, minlength=8)
    assert chisquare(counts, errors / errors.sum() * 4000).pvalue > 0.01
    np.testing.assert_allclose(batch.weights, (errors.sum() / errors / 8)[batch.draw.slots], rtol=1e-6)


def test_everything_is_copied_in_and_out() -> None:
    buffer = ArrayBuffer(4, (2,))
    obs, following = np.ones((1, 2), np.float32), np.full((1, 2), 2, np.float32)
    buffer.add(obs, np.array([1]), np.array([1.0]), following, np.array([False]))
    obs[:], following[:] = 9, 9
    batch = buffer.sample(1)
    assert (batch.obs.tolist(), batch.next_obs.tolist()) == ([[1, 1]], [[2, 2]])
    batch.obs[:] = 7
    assert buffer.obs[0].tolist() == [1, 1]


def test_feedback_for_what_was_overwritten_is_ignored_and_counted() -> None:
    buffer = filled(8)
    draw = buffer.sample(64).draw
    for k in range(8, 12):
        buffer.add(*transition(k))
    ignored = int((draw.slots < 4).sum())
    assert buffer.update(draw, np.full(64, 5.0)) == ignored > 0
    assert buffer.index.stats().stale_updates == ignored
    signals = buffer.index.explain(np.arange(8)).signal
    assert (signals[:4] == 1.0).all(), "what the new ones were born with"
    with pytest.raises(SignalError):
        buffer.update(buffer.sample(2).draw, [np.nan, 1.0])


def test_relevance_tilts_the_draws() -> None:
    buffer = filled(8, law=Law(eta=4.0, alpha=1.0))
    buffer.relate([2], [1.0], version=1)
    probability = buffer.index.explain(np.arange(8)).probability
    assert probability[2] == pytest.approx(5 * probability[0])


@pytest.mark.parametrize(
    ("place", "value", "name"),
    [
        (0, np.zeros((3, 2, 2)), "obs"),
        (1, np.zeros((3, 1)), "actions"),
        (2, np.zeros((3, 1)), "rewards"),
        (2, np.zeros(2), "rewards"),
        (3, np.zeros((3, 1)), "next_obs"),
        (4, False, "terminated"),
        (5, np.zeros(4), "truncated"),
    ],
)
def test_shapes_that_would_be_broadcast_are_refused_and_nothing_changes(place: int, value: Any, name: str) -> None:
    buffer = filled(5)
    before = pickle.dumps(buffer.state_dict())
    given: list[Any] = list(many(range(3)))
    given[place] = value
    with pytest.raises(ArgumentError, match=rf"^{name}: found"):
        buffer.add(*given)
    assert pickle.dumps(buffer.state_dict()) == before


def test_more_than_the_capacity_at_once_is_refused() -> None:
    with pytest.raises(ArgumentError, match="at most 8"):
        filled(0).add(*many(range(9)))


@pytest.mark.parametrize("count", [0, 5, 13])
def test_a_file_brings_every_bit_back(count: int, tmp_path: Path) -> None:
    buffer = filled(count, law="nser", action_shape=())
    if count:
        buffer.update(buffer.sample(16).draw, np.linspace(0, 3, 16))
        buffer.relate([1], [0.5], version=3)
    buffer.save(tmp_path / "buffer.npz")
    copies = [ArrayBuffer.load(tmp_path / "buffer.npz"), pickle.loads(pickle.dumps(buffer))]
    for copy in copies:
        for one in (copy, filled(0)):
            one.add(*transition(50))
    buffer.add(*transition(50))
    expected = buffer.sample(32)
    for copy in copies:
        found = copy.sample(32)
        for name in (*DRAWN, "weights"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        np.testing.assert_array_equal(found.draw.slots, expected.draw.slots)
    assert [path.name for path in tmp_path.iterdir()] == ["buffer.npz"]


def test_files_and_states_of_others_change_nothing(tmp_path: Path) -> None:
    buffer = filled(5)
    before = pickle.dumps(buffer.state_dict())
    for other in (filled(5, capacity=9), ArrayBuffer(8, (3,), law=buffer.index.law)):
        with pytest.raises(CheckpointError):
            buffer.load_state_dict(other.state_dict())
    state = buffer.state_dict()
    with pytest.raises(CheckpointError, match=r"data\.rewards"):
        buffer.load_state_dict({**state, "data.rewards": state["data.rewards"].astype(np.float64)})
    assert pickle.dumps(buffer.state_dict()) == before
    ReplayIndex(4).save(tmp_path / "index.npz")
    with pytest.raises(CheckpointError, match="is this the file of an ArrayBuffer"):
        ArrayBuffer.load(tmp_path / "index.npz")
    whole = tmp_path / "whole.npz"
    buffer.save(whole)
    (tmp_path / "cut.npz").write_bytes(whole.read_bytes()[:-100])
    with pytest.raises(CheckpointError):
        ArrayBuffer.load(tmp_path / "cut.npz")


def test_buffers_for_spaces_take_images_and_continuous_actions() -> None:
    image, action = spaces.Box(0, 255, (4, 4, 3), np.uint8), spaces.Box(-2, 2, (3,), np.float32)
    buffer = ArrayBuffer.for_spaces(10, image, action, law="per")
    rng = np.random.default_rng(0)
    frames = rng.integers(255, size=(6, 4, 4, 3), dtype=np.uint8)
    buffer.add(frames[:5], rng.normal(size=(5, 3)), np.zeros(5), frames[1:], np.zeros(5, bool))
    batch = buffer.sample(20)
    np.testing.assert_array_equal(batch.obs, frames[batch.draw.slots])
    np.testing.assert_array_equal(batch.next_obs, frames[batch.draw.slots + 1])
    assert batch.actions.dtype == np.float32
    with pytest.raises(ArgumentError, match="observation_space"):
        ArrayBuffer.for_spaces(10, spaces.Dict({"a": image}), action)


# Vector environments ----------------------------------------------------------------------------------------


class Steps(gymnasium.Env[Any, Any]):
    """Observation (episode, step); ends after `length` steps, by itself or by a time limit in turn."""

    observation_space = spaces.Box(-1e6, 1e6, (2,), np.float32)
    action_space = spaces.Discrete(100)

    def __init__(self, length: int) -> None:
        self.length, self.episode, self.at = length, -1, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.episode, self.at = self.episode + 1, 0
        return np.array([self.episode, 0], np.float32), {}

    def step(self, action: Any) -> Any:
        self.at += 1
        over = self.at == self.length
        by_itself = self.episode % 2 == 0
        return np.array([self.episode, self.at], np.float32), 1.0, over and by_itself, over and not by_itself, {}


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_only_real_transitions_are_stored_in_both_autoreset_modes(mode: AutoresetMode) -> None:
    envs = SyncVectorEnv([lambda n=n: Steps(n) for n in (3, 1, 4)], autoreset_mode=mode)  # type: ignore[misc]
    buffer = ArrayBuffer.for_spaces(1000, envs.single_observation_space, envs.single_action_space, law="uniform")
    steps = VectorSteps(buffer, 3, envs.metadata["autoreset_mode"])
    obs, _ = envs.reset()
    for k in range(40):
        actions = np.full(3, k)
        following, rewards, terminated, truncated, infos = envs.step(actions)
        steps.add(obs, actions, rewards, following, terminated, truncated, infos)
        obs = following
    count = len(buffer)
    assert count == (120 if mode is AutoresetMode.SAME_STEP else 120 - 10 - 20 - 8)
    episode, at = buffer.obs[:count].T
    np.testing.assert_array_equal(buffer.next_obs[:count, 0], episode)
    np.testing.assert_array_equal(buffer.next_obs[:count, 1], at + 1)
    over = buffer.terminated[:count] | buffer.truncated[:count]
    assert over.sum() > 20
    np.testing.assert_array_equal(buffer.terminated[:count], over & (episode % 2 == 0))
    assert (buffer.rewards[:count] == 1).all(), "the step that only resets has reward 0"


def test_vector_steps_without_autoreset_and_after_a_reset_of_ones_own() -> None:
    buffer = ArrayBuffer(50, (2,), law="uniform")
    obs = np.zeros((2, 2), np.float32)
    over, no = np.array([True, False]), np.zeros(2, bool)
    given = (obs, np.zeros(2, int), np.ones(2), obs)
    disabled = VectorSteps(buffer, 2, "Disabled")
    assert [len(disabled.add(*given, over, no, {})), len(disabled.add(*given, no, no, {}))] == [2, 2]
    following = VectorSteps(buffer, 2)
    assert [len(following.add(*given, no, over, {})), len(following.add(*given, no, no, {}))] == [2, 1]
    following.add(*given, over, no, {})
    following.reset()
    assert len(following.add(*given, no, no, {})) == 2


def test_vector_steps_refuse_in_words() -> None:
    buffer = ArrayBuffer(50, (2,))
    obs, no = np.zeros((2, 2), np.float32), np.zeros(2, bool)
    with pytest.raises(ArgumentError, match="NextStep, SameStep, Disabled"):
        VectorSteps(buffer, 2, "next")
    same = VectorSteps(buffer, 2, AutoresetMode.SAME_STEP)
    with pytest.raises(ArgumentError, match="'final_obs' of every environment that ended"):
        same.add(obs, no, no, obs, np.array([True, False]), no, {})
    with pytest.raises(ArgumentError, match=r"found \(3,\)"):
        same.add(obs, no, no, obs, np.zeros(3, bool), np.zeros(3, bool), {})
    assert len(buffer) == 0
