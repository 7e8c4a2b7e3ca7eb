from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nser.replay import kernels_numba, kernels_numpy
from nser.replay.items import BLOCK
from nser.replay.sum_tree import Kernels, MaxTree, Peak, SumTree, kernels

BOTH = [cast(Kernels, kernels_numba), cast(Kernels, kernels_numpy)]
weights = st.one_of(st.just(0.0), st.floats(1e-12, 1e12))


def test_the_environment_chooses_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NSER_NUMBA", "0")
    assert kernels() is BOTH[1]
    monkeypatch.delenv("NSER_NUMBA")
    assert kernels() is BOTH[0]


def test_without_numba_the_twin_is_chosen_silently(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert kernels() is BOTH[1]


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 40), st.data())
def test_twins_are_bit_equal_and_exact(capacity: int, data: st.DataObject) -> None:
    trees = [(SumTree(capacity, one), MaxTree(capacity, one)) for one in BOTH]
    leaves = np.zeros(capacity)
    for _ in range(data.draw(st.integers(1, 4))):
        n = data.draw(st.integers(0, 12))
        slots = np.array(data.draw(st.lists(st.integers(0, capacity - 1), min_size=n, max_size=n)), np.int64)
        values = np.array(data.draw(st.lists(weights, min_size=n, max_size=n)), np.float64)
        start = data.draw(st.integers(0, capacity - 1))
        stop = data.draw(st.integers(start + 1, capacity))
        level = data.draw(weights)
        for sums, maxima in trees:
            sums.write(slots, values)
            maxima.write(slots, values)
            sums.put(start, stop, level)
            maxima.put(start, stop, level)
        for slot, value in zip(slots, values, strict=True):
            leaves[slot] = value
        leaves[start:stop] = level
    (sums, maxima), (sums_twin, maxima_twin) = trees
    assert sums.nodes.tobytes() == sums_twin.nodes.tobytes()
    assert maxima.nodes.tobytes() == maxima_twin.nodes.tobytes()
    assert np.array_equal(sums.leaves, leaves)
    assert sums.root == pytest.approx(leaves.sum(), rel=1e-12)
    written = maxima.leaves[maxima.leaves > -np.inf]
    assert maxima.root == written.max()
    points = np.array(data.draw(st.lists(st.floats(0, 1), min_size=1, max_size=8)))
    found = sums.find(points * sums.root)
    assert np.array_equal(found, sums_twin.find(points * sums.root))
    if sums.root > 0:
        assert (leaves[found] > 0).all()

    rebuilt = SumTree(capacity, BOTH[0])
    rebuilt.rebuild(leaves)
    assert rebuilt.nodes.tobytes() == sums.nodes.tobytes()


@pytest.mark.parametrize("one", BOTH)
@pytest.mark.parametrize("capacity", [1, 2, 3, 5, 8, 1000])
def test_targets_at_and_past_the_right_edge_find_a_positive_leaf(one: Kernels, capacity: int) -> None:
    tree = SumTree(capacity, one)
    tree.put(capacity // 2, capacity // 2 + 1, 0.1)
    beyond = np.array([0.0, 0.1, np.nextafter(0.1, 1), 1e9])
    assert tree.find(beyond).tolist() == [capacity // 2] * 4


@pytest.mark.parametrize("one", BOTH)
def test_every_slot_is_found_over_its_own_stretch(one: Kernels) -> None:
    tree = SumTree(6, one)
    tree.rebuild(np.array([1.0, 2.0, 0.0, 3.0, 0.0, 4.0]))
    assert tree.find(np.arange(10, dtype=np.float64) + 0.5).tolist() == [0, 1, 1, 3, 3, 3, 5, 5, 5, 5]


@pytest.mark.parametrize("one", BOTH)
def test_small_weights_beside_a_large_one_keep_float64_precision(one: Kernels) -> None:
    tree = SumTree(1 << 16, one)
    tree.put(0, 1 << 16, 1e-3)
    tree.write(np.array([7]), np.array([1e6]))
    assert tree.root == pytest.approx(1e6 + 65535e-3, rel=1e-14)


@pytest.mark.parametrize("one", BOTH)
def test_maximum_falls_when_its_holder_falls(one: Kernels) -> None:
    tree = MaxTree(5, one)
    tree.write(np.arange(5), np.array([1.0, 9.0, 3.0, 4.0, 2.0]))
    tree.write(np.array([1]), np.array([0.5]))
    assert tree.root == 4.0
    tree.put(3, 4, -np.inf)
    assert tree.root == 3.0


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_admit_twins_agree(data: st.DataObject) -> None:
    n = data.draw(st.integers(0, 6))
    slots = np.array(data.draw(st.lists(st.integers(-1, 5), min_size=n, max_size=n)), np.int64)
    meant = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), np.int64)
    current = np.array(data.draw(st.lists(st.integers(0, 3), min_size=5, max_size=5)), np.int64)
    value = st.one_of(st.floats(0, 10), st.sampled_from([np.nan, np.inf, -1.0]))
    values = np.array(data.draw(st.lists(value, min_size=n, max_size=n)), np.float64)
    assert BOTH[0].admit(slots, meant, current, values) == BOTH[1].admit(slots, meant, current, values)


@pytest.mark.parametrize("capacity", [1, 7, 64, 65, 4096, 4097, 20_000, 300_000])
def test_the_peak_is_the_largest_live_signal_on_both_kernels(capacity: int) -> None:
    """Through writes with equal slots, deaths and refills, in trees of one level to four."""
    rng = np.random.default_rng(capacity)
    shape = (-(-capacity // BLOCK), BLOCK)
    peaks = [Peak(np.zeros(shape), np.zeros(shape, np.int64), one) for one in BOTH]
    for turn in range(60):
        live = np.flatnonzero(peaks[0].blocks[1].reshape(-1)[:capacity] & 1)
        low = int(rng.integers(capacity))
        high = int(rng.integers(low, min(low + 300, capacity))) + 1
        slots = rng.choice(live, 40) if len(live) else live
        values = np.round(rng.exponential(size=len(slots)), 1)
        for peak in peaks:
            signals, generations = peak.blocks[0].reshape(-1), peak.blocks[1].reshape(-1)
            if turn % 3 == 0:
                signals[low:high] = 0.5 * turn
                generations[low:high] = (generations[low:high] + 1) | 1
                peak.mend(low, high)
            elif turn % 7 == 0:
                generations[low:high] += generations[low:high] & 1
                peak.mend(low, high)
            elif len(slots):
                peak.write(slots, values)
            alive = signals[(generations & 1).astype(bool)]
            assert peak.root == alive.max(initial=-np.inf)
        np.testing.assert_array_equal(peaks[0].blocks[0], peaks[1].blocks[0])
        np.testing.assert_array_equal(peaks[0].nodes, peaks[1].nodes)


def test_searches_and_writes_of_wide_trees_are_bit_equal() -> None:
    """Above the level where searches start, with stretches of no weight, equal slots, and targets in any order."""
    rng = np.random.default_rng(5)
    trees = [SumTree(30_000, one) for one in BOTH]
    weights = rng.exponential(size=30_000) ** 3
    weights[rng.random(30_000) < 0.3] = 0.0
    weights[4000:9000], weights[29_000:] = 0.0, 0.0
    for tree in trees:
        tree.rebuild(weights)
    for _ in range(30):
        slots, values = rng.integers(30_000, size=256), rng.exponential(size=256)
        targets = rng.random(256) * trees[0].root
        targets[:3] = 0.0, trees[0].root, np.nextafter(trees[0].root, np.inf)
        found = []
        for tree in trees:
            tree.write(slots, values)
            found.append(tree.find(targets.copy()))
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(trees[0].nodes[1:], trees[1].nodes[1:])
        assert (trees[0].take(found[0]) > 0).all()
        inside = targets < trees[0].root
        edges = np.cumsum(trees[0].leaves)
        assert (np.abs(np.searchsorted(edges, targets[inside], side="right") - found[0][inside]) <= 1).mean() > 0.99
