"""The published methods: every fact and fault of the acceptance lists, one by one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nser.replay import preset
from nser.rollouts import RolloutStore, StoreSettings, plan, store_preset
from tests.rollouts.making import content, rollout

GROUP_OF_8 = (0.378, 0.577, 0.775, 1.0, 1.291, 1.732, 2.646)


def grpo(**changes: object) -> StoreSettings:
    return replace(store_preset("rollout-grpo", **changes), capacity=400)


def fresh(version: int, count: int = 16) -> list:
    """A step's rollouts: advantages of groups of eight, a quarter of them from groups that all agree."""
    sizes = [GROUP_OF_8[(version + i) % 7] for i in range(count)]
    return [
        rollout(1000 * version + i, version, advantage=(0.0 if i % 4 == 3 else size * (-1) ** i))
        for i, size in enumerate(sizes)
    ]


def run(store: RolloutStore, steps: int, first: int = 0) -> list:
    taken = []
    for version in range(first, first + steps):
        store.advance(version)
        taken.append(plan(store, fresh(version)))
    return taken


# rollout-grpo (methods.md §3)


def test_replayed_ages_are_one_to_ten() -> None:
    store = RolloutStore(grpo(warm_up=0))
    ages = np.concatenate([step.updates[0].replayed.draw.ages for step in run(store, 60)[1:]])
    assert (ages.min(), ages.max()) == (1, 10)
    metrics = store.metrics()
    assert metrics.age_max == 10
    assert metrics.age_counts[0] == 0
    assert sum(metrics.age_counts) == metrics.drawn == len(ages)
    assert metrics.age_mean == pytest.approx(ages.mean())


def test_every_batch_holds_all_fresh_survivors_and_half_as_many_replayed() -> None:
    store = RolloutStore(grpo(warm_up=0))
    for version, step in enumerate(run(store, 20)):
        (update,) = step.updates
        survivors = [one.key for one in fresh(version) if one.advantage != 0.0]
        assert [one.key for one in update.rollouts[: step.fresh]] == survivors
        assert step.fresh == 12
        assert step.replayed == (6 if version else 0)
        assert update.is_fresh.tolist() == [True] * step.fresh + [False] * step.replayed
        assert not {one.key for one in update.rollouts[step.fresh :]} & set(survivors)
        assert step.admission.refused == {"zero signal": 4}


def test_nothing_is_drawn_twice_in_a_step() -> None:
    for step in run(RolloutStore(grpo(warm_up=0)), 30):
        keys = [one.key for one in step.updates[0].rollouts]
        assert len(set(keys)) == len(keys)


def test_fewer_are_replayed_when_fewer_are_there() -> None:
    store = RolloutStore(grpo(warm_up=0))
    store.admit([rollout(1), rollout(2)])
    store.advance(1)
    assert plan(store, fresh(1)).replayed == 2


def test_twenty_steps_of_warm_up_replay_nothing() -> None:
    for first in (0, 5000):
        steps = run(RolloutStore(grpo()), 25, first)
        assert [step.replayed for step in steps] == [0] * 20 + [6] * 5
        assert all(step.fresh == 12 for step in steps)


def test_advantages_and_log_probs_are_those_of_birth_after_any_number_of_draws() -> None:
    store = RolloutStore(grpo())
    born = fresh(0)
    slots = store.admit(born).slots
    for version in range(1, 10):
        store.advance(version)
        drawn = store.draw(8)
        store.update(drawn, np.full(len(drawn), 0.123))
    kept = [one for one in born if one.advantage != 0.0]
    assert [content(one, uses=False) for one in store.rollouts(slots)] == [content(one) for one in kept]


def test_a_rollout_is_replayed_as_often_as_the_ratio_says_whatever_the_age_limit() -> None:
    for limit in (2, 5, 10):
        store = RolloutStore(grpo(warm_up=0, law=preset("rollout-grpo", max_age=limit)))
        run(store, 120)
        assert store.metrics().gone_uses_mean == pytest.approx(0.5, abs=0.03)


def test_the_steady_size_is_the_age_limit_times_the_mean_survivors() -> None:
    for limit in (2, 5, 10):
        store = RolloutStore(grpo(law=preset("rollout-grpo", max_age=limit)))
        run(store, 40)
        store.advance(40)  # as the next draw finds it
        assert len(store) == limit * 12


def test_an_old_rollout_is_evicted_before_the_draw() -> None:
    store = RolloutStore(grpo(warm_up=0))
    store.admit([rollout(1)])
    store.advance(10)
    assert len(store) == 1
    store.advance(11)
    assert len(store) == 0
    assert len(store.draw(4)) == 0
    assert store.metrics().bytes == 0


def test_resuming_restores_the_buffer_bit_for_bit(tmp_path: Path) -> None:
    store = RolloutStore(grpo(warm_up=3))
    run(store, 15)
    store.save(tmp_path / "store.npz")
    other = RolloutStore.load(tmp_path / "store.npz")
    for one, two in zip(run(store, 15, 15), run(other, 15, 15), strict=True):
        assert [content(a) for a in one.updates[0].rollouts] == [content(b) for b in two.updates[0].rollouts]
        assert one.updates[0].weights.tobytes() == two.updates[0].weights.tobytes()


# freshper (methods.md §2): the faults of the published code


def fresh_per(capacity: int = 32, **law: float) -> StoreSettings:
    return replace(store_preset("freshper"), capacity=capacity, law=preset("freshper", **law))


def test_after_a_wrap_a_slot_holds_what_is_drawn_from_it() -> None:
    store = RolloutStore(fresh_per(capacity=10))
    newest = {}
    for number in range(57):
        store.advance(number)
        slots = store.admit([rollout(number, number, reward=1.0 + number)]).slots
        newest[int(slots[0])] = number
    drawn = store.draw(64)
    for slot, one in zip(drawn.draw.slots.tolist(), drawn.rollouts, strict=True):
        assert one.prompt_ids[0] == newest[slot]
        assert store.explain([slot]).signal[0] == 1.0 + newest[slot]


def test_binary_rewards_do_not_shrink_every_gradient() -> None:
    """Weights are divided by the batch's largest: rewards of 1 keep weight 1 though zeros lie in the store."""
    store = RolloutStore(fresh_per())
    store.admit([rollout(i, reward=float(i % 2)) for i in range(32)])
    drawn = store.draw(8)
    assert all(one.reward == 1.0 for one in drawn.rollouts)
    np.testing.assert_allclose(drawn.weights, 1.0)


def test_the_floor_is_an_option_that_lets_items_of_reward_zero_be_drawn() -> None:
    drawn = {}
    for floor in (1e-6, 0.2):
        store = RolloutStore(fresh_per(epsilon=floor))
        store.admit([rollout(i, reward=float(i % 2)) for i in range(32)])
        drawn[floor] = sum(one.reward == 0.0 for _ in range(20) for one in store.draw(16).rollouts)
    assert drawn[1e-6] == 0
    assert drawn[0.2] > 40


def test_log_probs_are_those_that_came_in_whatever_the_trainer_does_to_its_array() -> None:
    mine = np.full(4, -1.0, np.float32)
    store = RolloutStore(fresh_per())
    slots = store.admit([rollout(1, behavior_logps=mine)]).slots
    mine[:] = -9.0
    assert store.rollouts(slots)[0].behavior_logps.tolist() == [-1.0] * 4


def test_age_decay_needs_no_second_flag() -> None:
    store = RolloutStore(fresh_per(tau=10.0))
    store.admit([rollout(1)])
    store.advance(10)
    store.admit([rollout(2, 10)])
    old, new = store.explain([0, 1]).probability
    assert old / new == pytest.approx(np.exp(-0.6))


def test_one_fresh_update_then_k_replayed_ones() -> None:
    store = RolloutStore(replace(fresh_per(), updates=3))
    assert [len(update) for update in plan(store, fresh(0)).updates] == [16]
    store.advance(1)
    step = plan(store, fresh(1))
    assert [(update.fresh, len(update)) for update in step.updates] == [(16, 16), (0, 16), (0, 16), (0, 16)]
    for update in step.updates[1:]:
        assert update.replayed is not None
        assert update.replayed.draw.ages.tolist() == [1] * 16
        store.update(update.replayed, np.ones(16))


def test_a_resumed_run_goes_on_replaying(tmp_path: Path) -> None:
    store = RolloutStore(fresh_per())
    run(store, 3)
    store.save(tmp_path / "store.npz")
    store = RolloutStore.load(tmp_path / "store.npz")
    store.advance(3)
    assert plan(store, fresh(3)).replayed == 16


def test_a_step_is_a_turn_if_the_unit_says_so() -> None:
    settings = replace(fresh_per(), unit="turn", signal="advantage")
    store = RolloutStore(settings)
    one = rollout(1, response_mask=[1, 0, 1, 1], advantage=[0.5, 9.0, 1.0, 2.0], reward=1.0)
    slots = store.admit([one]).slots
    first, second = store.rollouts(slots)
    assert first.response_mask.tolist() == [True]
    assert second.response_mask.tolist() == [False, False, True, True]
    assert second.response_ids.tolist() == one.response_ids.tolist()
    assert store.explain(slots).signal.tolist() == [0.5, 1.5]
    assert store.admit([one]).refused == {"duplicate": 1}
