"""Borders of the index: what peers get wrong (a test each), sizes, errors, staleness, determinism."""

import copy
import math
import os
import pickle
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nser.errors import NserError
from nser.replay import (
    ArgumentError,
    Draw,
    EmptyIndexError,
    Law,
    RelevanceError,
    ReplayIndex,
    SignalError,
    SlotError,
    ZeroWeightWarning,
    linear,
)

pytestmark = pytest.mark.usefixtures("backend")

RICH = Law(tau=30.0, max_age=50, eta=4.0, mix=0.9, normalise="buffer", correct="full")


def filled(capacity: int = 8, law: Law | None = None, signals: Any = None) -> ReplayIndex:
    index = ReplayIndex(capacity, law, seed=1)
    index.insert(capacity, np.arange(1.0, capacity + 1) if signals is None else signals)
    return index


def as_draw(slots: Any, generations: Any) -> Draw:
    slots = np.asarray(slots, np.int64)
    ones = np.ones(len(slots))
    return Draw(slots, np.asarray(generations, np.int64), ones, ones, np.ones(len(slots), np.int64))


def state_of(index: ReplayIndex) -> dict[str, Any]:
    return {
        name: value.tobytes() if isinstance(value, np.ndarray) else value for name, value in index.state_dict().items()
    }


# Faults of peers.


def test_an_update_for_an_overwritten_slot_is_ignored_and_counted() -> None:
    index = filled(4)
    draw = index.draw(64)
    index.insert(2, [7.0, 7.0])  # slots 0 and 1
    gone = int(np.isin(draw.slots, [0, 1]).sum())
    assert gone > 0
    assert index.update(draw, np.full(64, 0.5)) == gone
    assert index.explain([0, 1]).signal.tolist() == [7.0, 7.0]
    assert index.stats().stale_updates == gone


def test_an_update_for_an_item_grown_too_old_is_ignored() -> None:
    index = filled(4, Law(max_age=2))
    draw = index.draw(8)
    index.tick(3)
    assert len(index) == 0
    assert index.update(draw, np.ones(8)) == 8


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1e-9])
def test_a_signal_that_is_no_finite_number_is_named_and_changes_nothing(value: float) -> None:
    index = filled()
    draw = index.draw(5)
    before = state_of(index)
    signals = np.ones(5)
    signals[3] = value
    with pytest.raises(SignalError, match=r"signal\[3\]") as caught:
        index.update(draw, signals)
    assert caught.value.slot == draw.slots[3]
    assert caught.value.position == 3
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, NserError)
    with pytest.raises(SignalError, match="a new item"):
        index.insert(5, signals)
    with pytest.raises(SignalError):
        index.insert(1, value)
    assert state_of(index) == before


@pytest.mark.parametrize("slot", [-1, 8, 2**40])
def test_a_slot_out_of_range_changes_nothing(slot: int) -> None:
    index = filled()
    before = state_of(index)
    with pytest.raises(SlotError, match=rf"slots\[1\] = {slot}") as caught:
        index.update(as_draw([0, slot], [1, 1]), [1.0, 1.0])
    assert isinstance(caught.value, IndexError)
    for call in (index.explain, index.generations_of, lambda slots: index.relate(slots, [0.5, 0.5], 1)):
        with pytest.raises(SlotError):
            call([0, slot])
    assert state_of(index) == before


def test_new_items_get_the_largest_live_signal() -> None:
    index = filled(4, signals=[1.0, 9.0, 2.0, 3.0])
    assert index.explain(index.insert(1)).signal.tolist() == [9.0]
    draw = index.draw(4, replace=False)
    index.update(draw, [0.25] * 4)  # nobody holds 9 any longer
    assert index.explain(index.insert(2)).signal.tolist() == [0.25, 0.25]


def test_first_items_get_one_and_evicted_ones_no_longer_count() -> None:
    index = ReplayIndex(4, Law(max_age=1))
    assert index.explain(index.insert(1)).signal.tolist() == [1.0]
    index.insert(1, 50.0)
    index.tick(2)
    assert index.explain(index.insert(1)).signal.tolist() == [1.0]


def test_alpha_is_applied_once_on_every_path() -> None:
    law = Law(alpha=0.5, epsilon=0.0)
    index = ReplayIndex(5, law)
    index.insert(1, 4.0)
    index.insert(1)
    index.insert(1, 4.0, relevance=0.0)
    index.insert(2, [4.0, 1.0])
    draw = index.draw(100)
    index.update(draw, np.full(100, 4.0))
    np.testing.assert_allclose(index.explain(range(5)).probability, 0.2, rtol=1e-12)


@pytest.mark.parametrize("capacity", [1, 2, 3, 5, 6, 7, 100])
def test_any_capacity_draws_every_item_and_nothing_else(capacity: int) -> None:
    index = ReplayIndex(capacity, Law())
    for count in range(1, 2 * capacity + 2):
        assert index.insert(1).tolist() == [(count - 1) % capacity]
        assert len(index) == min(count, capacity)
        if count in (1, 2, capacity, capacity + 1, 2 * capacity + 1):
            draw = index.draw(20 * capacity)
            assert set(draw.slots.tolist()) == set(range(min(count, capacity)))
            assert draw.ages.tolist() == [0] * len(draw)


def test_zero_weights_and_unfilled_slots_are_never_drawn() -> None:
    index = ReplayIndex(1000, Law(epsilon=0.0, stratified=False))
    index.insert(6, [0.0, 1.0, 0.0, 0.0, 2.0, 0.0])
    assert set(index.draw(50_000).slots.tolist()) == {1, 4}
    assert sorted(index.draw(6, replace=False).slots.tolist()) == [1, 4]
    assert set(ReplayIndex.draw(filled_uniform(), 5000).slots.tolist()) == set(range(6))


def filled_uniform() -> ReplayIndex:
    index = ReplayIndex(1000, Law(mix=0.0))
    index.insert(6, np.zeros(6))
    return index


def test_all_weights_zero_draws_uniformly_with_one_warning() -> None:
    index = filled(4, Law(epsilon=0.0, normalise="buffer"), signals=np.zeros(4))
    with pytest.warns(ZeroWeightWarning, match="4 eligible items have weight zero"):
        draw = index.draw(400)
    assert np.bincount(draw.slots).tolist() == [100] * 4
    assert draw.weights.tolist() == [1.0] * 400
    assert draw.probabilities.tolist() == [0.25] * 400
    index.draw(4)  # no second warning, which would be an error here
    assert index.stats().all_zero
    index.update(index.draw(4), np.ones(4))
    assert not index.stats().all_zero


def test_weights_are_normalised_by_the_batch_by_default() -> None:
    assert filled().draw(16).weights.max() == 1.0


def test_a_generator_of_its_own() -> None:
    np.random.seed(0)  # noqa: NPY002
    before = repr(np.random.get_state())  # noqa: NPY002
    one, two, other = filled(), filled(), ReplayIndex(8, seed=2)
    other.insert(8, np.arange(1.0, 9.0))
    first = one.draw(32).slots.tolist()
    assert first == two.draw(32).slots.tolist()
    assert first != other.draw(32).slots.tolist()
    assert repr(np.random.get_state()) == before  # noqa: NPY002


# Staleness of scores.


def test_scores_carry_their_version_and_the_last_one_counts() -> None:
    index = filled(4, Law(eta=4.0))
    assert index.explain([0]).version.tolist() == [-1]
    assert index.relate([0, 1], [0.5, 1.0], version=3) == 0
    assert index.relate([1, 1], [0.2, 0.25], version=4) == 0
    explained = index.explain([0, 1, 2])
    assert explained.version.tolist() == [3, 4, -1]
    assert explained.relevance.tolist() == [0.5, 0.25, 0.0]
    assert explained.rule_factor.tolist() == [3.0, 2.0, 1.0]
    index.insert(1)  # slot 0 again: a new item has no score
    assert index.explain([0]).version.tolist() == [-1]
    assert index.explain([0]).rule_share.tolist() == [0.0]


def test_scores_that_come_too_late_are_ignored_and_counted() -> None:
    index = filled(4, Law(eta=4.0))
    slots = np.arange(4)
    generations = index.generations_of(slots)
    index.insert(1)
    assert index.relate(slots, np.ones(4), 1, generations) == 1
    assert index.explain(slots).relevance.tolist() == [0.0, 1.0, 1.0, 1.0]
    assert ReplayIndex(4).relate([0], [1.0], 1) == 1  # never filled
    assert index.stats().stale_relations == 1
    assert index.stats().scored == 0.75


@pytest.mark.parametrize("value", [math.nan, -0.1, 1.1])
def test_relevance_outside_its_range_changes_nothing(value: float) -> None:
    index = filled(4, Law(eta=4.0))
    before = state_of(index)
    with pytest.raises(RelevanceError, match=r"relevance\[1\]"):
        index.relate([0, 1], [0.5, value], 1)
    with pytest.raises(RelevanceError, match="new item"):
        index.insert(2, relevance=[0.5, value])
    assert state_of(index) == before


def test_relevance_is_kept_even_where_the_law_makes_nothing_of_it() -> None:
    index = filled(4)
    before = index.explain(range(4)).probability
    index.relate([2], [1.0], version=1)
    assert index.explain([2]).relevance.tolist() == [1.0]
    assert np.array_equal(index.explain(range(4)).probability, before)


def test_a_scheduled_eta_takes_up_scores_given_while_it_was_zero() -> None:
    index = ReplayIndex(4, Law(alpha=1.0, epsilon=0.0, eta=linear(0.0, 4.0, 10), max_rule_share=1.0))
    index.insert(4, relevance=[1.0, 0.0, 0.0, 0.0])
    assert index.explain([0]).probability[0] == pytest.approx(0.25)
    index.tick(10)
    assert index.explain([0]).probability[0] == pytest.approx(5 / 8)
    assert index.explain([0]).rule_share[0] == pytest.approx(4 / 5)


# Errors and edges of calls.


def test_an_empty_index_says_so() -> None:
    index = ReplayIndex(4, Law(max_age=0))
    with pytest.raises(EmptyIndexError, match="0 of 4 slots"):
        index.draw(1)
    index.insert(1)
    index.tick()
    with pytest.raises(LookupError, match="clock 1"):
        index.draw(1)
    assert index.stats().eligible == 0
    assert index.explain([0]).rows()[0]["probability"] == 0.0
    assert index.stats().to_dict()["age_counts"] == (0,) * 10


def test_wrong_arguments_are_named() -> None:
    for capacity in (0, -1, 2.5, "8"):
        with pytest.raises(ArgumentError, match="capacity"):
            ReplayIndex(capacity)  # type: ignore[arg-type]
    index = filled(4)
    before = state_of(index)
    calls: list[tuple[str, Any]] = [
        ("batch", lambda: index.draw(0)),
        ("batch", lambda: index.draw(1.5)),  # type: ignore[arg-type]
        ("n", lambda: index.insert(5)),
        ("n", lambda: index.insert(-1)),
        ("n", lambda: index.tick(-1)),
        ("signal", lambda: index.insert(2, [1.0])),
        ("signal", lambda: index.update(index.draw(3), [1.0, 2.0])),
        ("relevance", lambda: index.relate([0], [1.0, 0.5], 1)),
        ("generations", lambda: index.relate([0], [1.0], 1, [1, 2])),
        ("version", lambda: index.relate([0], [1.0], -1)),
        ("slots", lambda: index.explain([0.5])),
        ("slots", lambda: index.explain(0)),
        ("draw", lambda: index.update(Draw(np.zeros(1, np.int32), *[np.zeros(1)] * 4), [1.0])),  # type: ignore[arg-type]
        ("draw", lambda: index.update(as_draw([0, 1], [1]), [1.0, 1.0])),
    ]
    for argument, call in calls:
        with pytest.raises(ArgumentError, match=argument) as caught:
            call()
        assert caught.value.argument == argument
    after = state_of(index)
    before.pop("rng"), after.pop("rng")  # one of the calls drew
    assert after == before


def test_nothing_inserted_and_nothing_related_is_allowed() -> None:
    index = filled(4)
    assert index.insert(0).tolist() == []
    assert index.relate([], [], 1) == 0
    assert len(index.explain([]).rows()) == 0


def test_inserts_wrap_in_ring_order_and_fill_the_whole_at_once() -> None:
    index = ReplayIndex(5)
    assert index.insert(3).tolist() == [0, 1, 2]
    assert index.insert(4, [1.0, 2.0, 3.0, 4.0]).tolist() == [3, 4, 0, 1]
    assert index.explain([3, 4, 0, 1]).signal.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert index.insert(5).tolist() == [2, 3, 4, 0, 1]
    assert index.live_slots().tolist() == [2, 3, 4, 0, 1]


def test_eviction_follows_age_across_the_wrap() -> None:
    index = ReplayIndex(5, Law(max_age=2))
    for _ in range(9):
        index.insert(2)
        index.tick()
        assert len(index) == min(5, 2 * min(2, index.clock))
        assert index.draw(50).ages.max() <= 2


def test_of_an_item_drawn_twice_the_last_signal_counts() -> None:
    index = filled(2)
    generation = index.generations_of([0])[0]
    index.update(as_draw([0, 0, 0], [generation] * 3), [5.0, 6.0, 7.0])
    assert index.explain([0]).signal.tolist() == [7.0]


def test_more_than_there_are_without_replacement_gives_all() -> None:
    index = filled(4)
    assert sorted(index.draw(9, replace=False).slots.tolist()) == [0, 1, 2, 3]
    assert len(index.draw(9)) == 9


def test_explain_gives_every_factor() -> None:
    index = ReplayIndex(3, Law(alpha=1.0, epsilon=0.0, tau=10.0, eta=1.0, beta=1.0, correct="full", normalise="none"))
    index.insert(2, [1.0, 2.0])
    index.relate([1], [1.0], version=5)
    index.tick(5)
    row = index.explain([1]).rows()[0]
    assert row == pytest.approx(
        {
            "slots": 1,
            "live": True,
            "signal": 2.0,
            "age": 5,
            "decay": math.exp(-0.5),
            "relevance": 1.0,
            "version": 5,
            "rule_factor": 2.0,
            "probability": 4 / 5,
            "rule_share": 0.5,
            "weight": 1 / (2 * 4 / 5),
            "generation": 1,
        }
    )
    assert index.explain([2]).live.tolist() == [False]


def test_effective_size_and_ages() -> None:
    index = ReplayIndex(10, Law(alpha=0.0))
    index.insert(6)
    index.tick(9)
    index.insert(4)
    stats = index.stats()
    assert stats.effective_size == pytest.approx(10)
    assert (stats.age_counts[0], stats.age_counts[-1], sum(stats.age_counts)) == (4, 6, 10)


# Kernels, copies, threads.


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_numba_and_numpy_indexes_are_bit_equal(data: st.DataObject) -> None:
    capacity = data.draw(st.integers(1, 30))
    law = data.draw(st.sampled_from([Law(), RICH, Law(eta=1e4, max_rule_share=0.2, stratified=False)]))
    seed = data.draw(st.integers(0, 99))
    states, draws = [], []
    for compiled in "10":
        os.environ["NSER_NUMBA"] = compiled
        index, rng = ReplayIndex(capacity, law, seed=seed), np.random.default_rng(seed)
        for step in range(25):
            n = int(rng.integers(1, capacity + 1))
            index.insert(n, None if step % 3 == 0 else rng.random(n), rng.random(n) if step % 4 == 1 else None)
            drawn = index.draw(6, replace=step % 2 == 0)
            index.update(drawn, rng.random(len(drawn)))
            index.tick(int(rng.integers(0, 9)))
            draws.append((drawn.slots.tobytes(), drawn.weights.tobytes()))
        states.append(state_of(index) | {"nodes": index._forest.base.nodes.tobytes()})
    assert states[0] == states[1]
    assert draws[:25] == draws[25:]


def test_copies_and_pickles_go_on_alike() -> None:
    index = filled(8, RICH)
    index.relate([1, 2], [1.0, 0.5], 1)
    index.tick(3)
    twins = [copy.deepcopy(index), pickle.loads(pickle.dumps(index))]
    expected = index.draw(64)
    for twin in twins:
        drawn = twin.draw(64)
        assert drawn.slots.tolist() == expected.slots.tolist()
        assert drawn.weights.tolist() == expected.weights.tolist()


def test_threads_may_share_an_index() -> None:
    index = filled(64, RICH)
    faults: list[BaseException] = []

    def run(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for step in range(120):
                draw = index.draw(16)
                index.insert(3)
                index.update(draw, rng.random(16))
                index.relate(draw.slots, rng.random(16), 1, draw.generations)
                if step % 40 == 0:
                    index.tick()
                    index.stats()
                    index.state_dict()
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert len(index) == 64
    assert index.stats().inserted == 64 + 4 * 120 * 3
    explained = index.explain(range(64))
    assert explained.probability.sum() == pytest.approx(1)
    assert index._forest.peak.root == explained.signal.max()
    assert index._forest.base.root == pytest.approx(index._forest.base.leaves.sum())


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, nser.replay; print([name for name in ('torch', 'numba', 'scipy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
