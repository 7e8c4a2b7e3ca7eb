"""Steps: how many are replayed, beside what, in which order; equal counts on all ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nser.rollouts import RolloutStore, StoreSettings, agreed_count, plan, replay_count, store_preset
from tests.rollouts.making import rollout


def store_of(stored: int = 40, **changes: Any) -> RolloutStore:
    """A store at version 1 that holds rollouts of version 0."""
    store = RolloutStore(replace(store_preset("nser"), capacity=100, **changes))
    store.admit([rollout(i) for i in range(stored)])
    store.advance(1)
    return store


def fresh(count: int, version: int = 1) -> list:
    return [rollout(500 + i, version, advantage=float(i % 3 - 1)) for i in range(count)]


@given(st.integers(0, 200), st.floats(0, 3), st.floats(0.01, 1))
def test_replay_keeps_its_share_of_the_batch(survivors: int, ratio: float, share: float) -> None:
    store = store_of(1, ratio=ratio, max_share=share)
    count = replay_count(store, survivors)
    assert 0 <= count <= ratio * survivors + 0.5
    assert count <= share * (count + survivors) + 1e-6
    if share == 1.0:
        assert count == round(ratio * survivors)


def test_by_default_a_third_of_the_batch_is_replayed() -> None:
    for survivors in (2, 16, 30, 300):
        assert replay_count(store_of(), survivors) == survivors // 2


def test_what_teaches_nothing_is_in_no_update_and_not_stored() -> None:
    store = store_of()
    step = plan(store, fresh(9))
    assert (step.fresh, step.replayed) == (6, 3)
    assert step.admission is not None
    assert (len(step.admission.slots), step.admission.refused) == (6, {"zero signal": 3})


def test_a_duplicate_is_trained_on_and_not_stored_again() -> None:
    store = store_of()
    store.admit([rollout(900, 1)])
    step = plan(store, [rollout(900, 1), rollout(901, 1)])
    assert step.fresh == 2
    assert step.admission is not None
    assert step.admission.refused == {"duplicate": 1}


def test_no_replay_stores_nothing() -> None:
    store = RolloutStore("none")
    for version in range(3):
        store.advance(version)
        step = plan(store, fresh(8, version), agree=lambda count: 1 / 0)  # type: ignore[arg-type,return-value]
        assert (step.fresh, step.replayed, step.admission) == (5, 0, None)
    assert len(store) == 0


def test_a_pool_gives_the_whole_batch() -> None:
    store = store_of(composition="pool")
    step = plan(store, fresh(30))
    (update,) = step.updates
    assert len(update) == 20
    assert 0 < update.fresh < 20
    assert update.replayed is not None
    ages = update.replayed.draw.ages
    assert (ages == 0).tolist() == update.is_fresh.tolist()
    assert [one.policy_version[0] == 1 for one in update.rollouts] == update.is_fresh.tolist()


def test_a_pool_warms_up_on_fresh_ones() -> None:
    store = RolloutStore(replace(store_preset("nser"), composition="pool", warm_up=2))
    replayed = []
    for version in range(4):
        store.advance(version)
        step = plan(store, fresh(9, version))
        assert step.updates[0].weights.shape == (6,)
        replayed.append(step.updates[0].replayed is not None)
    assert replayed == [False, False, True, True]


@pytest.mark.parametrize("composition", ["anchored", "separate"])
def test_ranks_replay_equal_counts_and_give_the_rest_back(composition: str) -> None:
    """Four ranks with stores of different sizes; the all-reduce is a minimum over what each has drawn."""
    stores = [store_of(size, composition=composition, updates=2) for size in (40, 5, 3, 17)]
    asked: list[list[int]] = [[] for _ in stores]
    for rank, store in enumerate(stores):
        plan(store, fresh(30), agree=lambda count, rank=rank: asked[rank].append(count) or count)  # type: ignore[func-returns-value,misc]
    assert len({len(counts) for counts in asked}) == 1, "every rank must ask equally often"
    agreed = [agreed_count(counts) for counts in zip(*asked, strict=True)]
    for size in (40, 5, 3, 17):
        store, answers = store_of(size, composition=composition, updates=2), iter(agreed)
        step = plan(store, fresh(30), agree=lambda count, answers=answers: next(answers))  # type: ignore[misc]
        assert step.replayed == 3 * len(agreed)
        metrics = store.metrics()
        assert metrics.drawn == step.replayed
        uses = [one.uses for one in store.rollouts(store.live_slots())]
        assert sum(uses) == step.replayed


def test_a_rank_with_nothing_to_replay_asks_all_the_same() -> None:
    asked: list[int] = []
    plan(RolloutStore("nser"), fresh(6, 0), agree=lambda count: asked.append(count) or 0)  # type: ignore[func-returns-value]
    assert asked == [0]


def test_replayed_rows_are_a_multiple() -> None:
    step = plan(store_of(), fresh(30), multiple_of=4)
    assert step.replayed == 8
    assert step.updates[0].weights.shape == (28,)


def test_weights_of_fresh_ones_are_one() -> None:
    settings = StoreSettings(law=replace(store_preset("freshper").law, beta=1.0), replace=True)
    store = RolloutStore(settings)
    store.admit([rollout(i, advantage=float(i + 1)) for i in range(20)])
    store.advance(1)
    (update,) = plan(store, fresh(30)).updates
    assert (update.weights[update.is_fresh] == 1.0).all()
    assert update.replayed is not None
    np.testing.assert_array_equal(update.weights[~update.is_fresh], update.replayed.weights)
    assert update.replayed.weights.min() < 0.9


def test_the_agreed_count_is_the_minimum_as_a_multiple() -> None:
    assert agreed_count([3]) == 3
    assert agreed_count([9, 4, 6]) == 4
    assert agreed_count([9, 7, 8], multiple_of=3) == 6
    assert agreed_count([2, 9], multiple_of=4) == 0
