from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nser.study.ring import Ring, Transitions


def fill(ring: Ring, steps: int, ends: list[int]) -> None:
    for step in range(steps):
        value = np.array([[step], [step + 1000]], np.float32)
        over = np.array([step in ends, False])
        ring.add(Transitions(value, np.array([step, step]), value[:, 0], value + 0.5, over, over))


@given(st.integers(1, 12), st.integers(0, 40))
def test_the_newest_come_back_in_the_order_of_time(capacity: int, steps: int) -> None:
    ring = Ring(2, capacity, 1)
    fill(ring, steps, [])
    kept = min(capacity, steps)
    assert len(ring) == kept
    assert ring.actions[0, ring.slots()].tolist() == list(range(steps - kept, steps))
    assert ring.actions[0, ring.slots(3)].tolist() == list(range(steps - min(kept, 3), steps))


def test_each_member_gets_its_own_rows() -> None:
    ring = Ring(2, 8, 1)
    fill(ring, 11, [4])
    batch = ring.gather(np.array([[0, 3], [7, 2]]))
    assert batch.observations[..., 0].tolist() == [[8, 3 + 8 - 8], [1007, 1010]]
    assert batch.next_observations[..., 0].tolist() == [[8.5, 3.5], [1007.5, 1010.5]]
    assert batch.terminated.tolist() == [[False, False], [False, False]]


def test_trajectories_leave_out_an_episode_that_lost_its_beginning() -> None:
    ring = Ring(2, 8, 1)
    fill(ring, 11, [4, 8])
    found = ring.trajectories(0, 8)
    assert found.actions.tolist() == [5, 6, 7, 8, 9, 10]
    assert found.complete.tolist() == [True, False]
    assert len(ring.trajectories(1, 8)) == 0  # one episode without an end, cut

    whole = Ring(2, 20, 1)
    fill(whole, 11, [4, 8])
    assert len(whole.trajectories(1, 20)) == 11
