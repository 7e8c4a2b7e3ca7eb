from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from nser.agents.frames import Frames, vectors
from nser.agents.nstep import windows

BOX = spaces.Box(-1e9, 1e9, (2,), np.float32)


def stored(size: int, n_envs: int, count: int, breaks: set[tuple[int, int]]) -> tuple[Frames, np.ndarray, np.ndarray]:
    """`count` random rows; an environment goes on where it was, but for the `breaks` (row, environment).

    Returns the frames and the slow twin: every observation and what followed it, each stored in full.
    """
    rng = np.random.default_rng(count)
    frames = Frames(size, BOX, n_envs)
    here = rng.normal(size=(count + 1, n_envs, 2)).astype(np.float32)
    after = here[1:].copy()
    for row, env in breaks:
        if row < count:
            after[row, env] = rng.normal(size=2)
    for k in range(count):
        obs, next_obs = here[k].copy(), after[k].copy()
        frames.add(k % size, (k - 1) % size if k else -1, obs, next_obs)
        obs[:], next_obs[:] = np.nan, np.nan  # a buffer that aliased them would show it
    return frames, here, after


@settings(deadline=None, max_examples=60)
@given(
    size=st.integers(1, 6),
    n_envs=st.integers(1, 3),
    count=st.integers(1, 25),
    breaks=st.sets(st.tuples(st.integers(0, 24), st.integers(0, 2)), max_size=20),
)
def test_every_frame_comes_back_as_from_two_full_arrays(
    size: int, n_envs: int, count: int, breaks: set[tuple[int, int]]
) -> None:
    breaks = {(row, env % n_envs) for row, env in breaks}
    frames, here, after = stored(size, n_envs, count, breaks)
    copy = Frames(size, BOX, n_envs)
    copy.load_state(frames.state(min(size, count)), min(size, count))
    for k in range(max(count - size, 0), count):
        slots = (k % size) * n_envs + np.arange(n_envs)
        for one in (frames, copy):
            np.testing.assert_array_equal(one.at(slots), here[k])
            np.testing.assert_array_equal(one.after(slots), after[k])


@settings(deadline=None, max_examples=40)
@given(
    size=st.integers(1, 5),
    resets=st.lists(st.sets(st.integers(0, 2)), min_size=1, max_size=12),
    strange=st.sampled_from([0.5, np.nan, -0.0]),
)
def test_environments_that_were_reset_are_told(size: int, resets: list[set[int]], strange: float) -> None:
    """Those and no others, though what was seen be no number, and of another float type than what is stored."""
    frames = Frames(size, BOX, 3)
    rng = np.random.default_rng(size)
    latest = rng.normal(size=(3, 2))
    assert frames.add(0, -1, latest - 1, latest) == []
    for k, reset in enumerate(resets, 1):
        here = latest.copy()
        for env in reset:
            here[env] = rng.normal(size=2)
        latest = here + 1
        latest[:, 0] = strange
        assert frames.add(k % size, (k - 1) % size, here, latest) == sorted(reset)


def test_only_ends_of_episodes_take_room_of_their_own() -> None:
    frames, _, _ = stored(1000, 1, 2500, {(row, 0) for row in range(0, 2500, 100)})
    assert np.count_nonzero(frames.apart >= 1) in (9, 10)
    assert len(frames.pool[""]) <= 40
    assert frames.nbytes < 1000 * (2 * 4 + 8) + 1000


def test_images_take_half_the_memory_of_two_arrays() -> None:
    image = spaces.Box(0, 255, (3, 16, 16), np.uint8)
    frames = Frames(200, image, 2)
    rng = np.random.default_rng(0)
    obs = rng.integers(255, size=(2, 3, 16, 16), dtype=np.uint8)
    for k in range(450):
        following = rng.integers(255, size=obs.shape, dtype=np.uint8)
        frames.add(k % 200, (k - 1) % 200 if k else -1, obs, following)
        obs = rng.integers(255, size=obs.shape, dtype=np.uint8) if k % 50 == 49 else following
    assert frames.nbytes < 1.1 * 200 * 2 * 3 * 16 * 16


def test_parts_of_dictionaries_keep_their_kinds_and_are_copied() -> None:
    space = spaces.Dict({"a/b": spaces.Discrete(5), "image": spaces.Box(0, 255, (4, 4, 1), np.uint8)})
    frames = Frames(4, space, 2)
    given = {"a/b": np.array([1, 4]), "image": np.full((2, 4, 4, 1), 7, np.uint8)}
    following = {"a/b": np.array([2, 0]), "image": np.full((2, 4, 4, 1), 8, np.uint8)}
    frames.add(0, -1, given, following)
    given["image"][:] = 0
    following["a/b"][:] = 0
    at, after = frames.at(np.array([0, 1, 1])), frames.after(np.array([0, 1, 1]))
    assert isinstance(at, dict)
    assert isinstance(after, dict)
    assert at["a/b"].tolist() == [[1], [4], [4]]
    assert after["a/b"].tolist() == [[2], [0], [0]]
    assert (at["image"] == 7).all()
    assert at["image"].dtype == np.uint8
    assert not any("/" in name for name in frames.state(1)), "a slash would be a folder in a checkpoint"
    assert vectors(at).shape == (3, 17)
    assert at["image"].base is not frames.columns["image"]


def twin(rewards: np.ndarray, goes_on: np.ndarray, slot: int, steps: int, gamma: float, stride: int) -> Any:
    total, at, k = float(rewards[slot]), slot, 1
    while k < steps and goes_on[at]:
        at = (at + stride) % len(rewards)
        total += gamma**k * float(rewards[at])
        k += 1
    return total, gamma**k, at, k


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_windows_are_those_of_the_slow_twin(data: st.DataObject) -> None:
    stride = data.draw(st.integers(1, 3))
    total = stride * data.draw(st.integers(1, 8))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    rewards, goes_on = rng.normal(size=total), rng.random(total) < 0.7
    steps, gamma = data.draw(st.integers(1, 6)), data.draw(st.sampled_from([0.0, 0.5, 0.99, 1.0]))
    slots = rng.integers(total, size=20)
    found = windows(slots, steps, gamma, stride, total, rewards.take, goes_on.take)
    for i, slot in enumerate(slots):
        returns, discount, last, length = twin(rewards, goes_on, int(slot), steps, gamma, stride)
        assert found.returns[i] == pytest.approx(returns, rel=1e-5, abs=1e-6)
        assert found.discounts[i] == pytest.approx(discount)
        assert (found.last[i], found.lengths[i]) == (last, length)
