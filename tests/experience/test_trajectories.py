from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nser.experience.trajectories import FIELDS, Trajectories, TrajectoryError, as_steps, joined


def recorded(lengths: list[int], seed: int = 0, finished: list[bool] | None = None) -> Trajectories:
    """Episodes of these lengths with random rewards; all finished unless told otherwise."""
    generator = np.random.default_rng(seed)
    rows = sum(lengths)
    ends = np.zeros(rows, np.bool_)
    last = np.cumsum(lengths, dtype=np.int64) - 1
    ends[last] = True if finished is None else finished
    return Trajectories(
        generator.random((rows, 2)).astype(np.float32),
        generator.integers(3, size=rows),
        generator.random(rows),
        generator.random((rows, 2)).astype(np.float32),
        ends & (generator.random(rows) < 0.5),
        ends,
        np.repeat(np.arange(len(lengths)) * 7 + 3, lengths).astype(np.int64),
    )


@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.floats(0.1, 1.0))
def test_returns_agree_with_sums_written_out(lengths: list[int], gamma: float) -> None:
    found = recorded(lengths)
    starts = np.cumsum([0, *lengths[:-1]])
    assert found.starts.tolist() == starts.tolist()
    assert found.lengths.tolist() == lengths
    to_go = found.returns_to_go(gamma)
    for number, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        rewards = found.rewards[start : start + length]
        assert found.returns[number] == pytest.approx(rewards.sum())
        for row in range(length):
            discounts = gamma ** np.arange(length - row)
            assert to_go[start + row] == pytest.approx((rewards[row:] * discounts).sum())


def test_only_complete_episodes_are_kept() -> None:
    found = recorded([2, 3, 4], finished=[True, False, True])
    assert found.complete.tolist() == [True, False, True]
    kept = found.only_complete()
    assert np.unique(kept.episodes).tolist() == [3, 17]
    assert [len(episode) for episode in found.iterate()] == [2, 3, 4]


def test_nothing_recorded_is_no_error() -> None:
    empty = recorded([])
    assert (len(empty), len(empty.starts), len(empty.returns), len(empty.returns_to_go(0.9))) == (0, 0, 0, 0)
    assert len(empty.only_complete()) == 0


def test_steps_hold_the_same_rows() -> None:
    found = recorded([2, 3])
    steps = found.steps()
    np.testing.assert_array_equal(steps.observations.numpy(), found.observations)
    assert steps.actions.tolist() == found.actions.tolist()
    assert len(np.unique(found.next_steps().episodes.numpy())) == 5


def test_arrays_of_unequal_length_are_refused() -> None:
    found = recorded([2])
    with pytest.raises(TrajectoryError, match="rewards has 1 rows, expected 2"):
        Trajectories(*(getattr(found, n)[: 1 if n == "rewards" else 2] for n in FIELDS))


def test_actions_of_several_numbers_stay_rows() -> None:
    several = as_steps(np.zeros((3, 2)), np.array([[1, 0], [2, 1], [0, 0]]), np.arange(3))
    assert several.actions.tolist() == [[1, 0], [2, 1], [0, 0]]
    assert as_steps(np.zeros((3, 2)), np.array([[1], [2], [0]]), np.arange(3)).actions.tolist() == [1, 2, 0]


def test_parts_are_joined_in_order() -> None:
    found = recorded([2, 3, 1])
    again = joined(list(found.iterate()))
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))
    other = replace(found, observations=np.zeros((6, 5)), next_observations=np.zeros((6, 5)))
    with pytest.raises(TrajectoryError, match="don't fit together"):
        joined([found, other])
