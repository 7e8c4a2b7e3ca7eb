"""The memory beside a trainer: when fresh rollouts become old ones, and what is replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from nser.rollouts import RolloutError, RolloutStore, StoreStateError, store_preset
from nser.trainers.replayer import Replayer
from nser.trainers.rows import Flat, folded, joined, jsonable, loss_weights, split
from tests.trainers.rollout_makers import rollout, rollouts, same


def replayer(seed: int = 0, **changes: Any) -> Replayer:
    return Replayer(RolloutStore(store_preset("nser", **({"warm_up": 0, "ratio": 0.5} | changes)), seed))


def fresh(version: int, count: int = 4) -> list[Any]:
    return [rollout(100 * version + number, version=version) for number in range(count)]


def test_fresh_rollouts_wait_for_the_next_version() -> None:
    memory = replayer()
    assert memory.step(fresh(0), 0) == []
    assert memory.step(fresh(0, 6)[4:], 0) == []
    assert (len(memory.store), len(memory.pending)) == (0, 6)
    (replayed,) = memory.step(fresh(1), 1)
    assert (len(memory.store), len(memory.pending)) == (6, 4)
    assert replayed.draw.ages.tolist() == [1, 1]
    assert memory.figures([replayed]) == {
        "nser/replayed": 2.0,
        "nser/age_mean": 1.0,
        "nser/age_oldest": 1.0,
        "nser/stored": 6.0,
    }


def test_no_replay_keeps_nothing() -> None:
    memory = Replayer(RolloutStore("none"))
    for version in (0, 1, 2):
        assert memory.step(fresh(version), version) == []
    assert memory.pending == []
    assert memory.figures([])["nser/replayed"] == 0


def test_warm_up_is_kept() -> None:
    memory = replayer(warm_up=3)
    counts = [sum(map(len, memory.step(fresh(version), version))) for version in range(6)]
    assert counts == [0, 0, 0, 2, 2, 2]


def test_advantages_are_cut_on_replay_alone() -> None:
    memory = replayer(advantage_clip=0.1)
    memory.step(fresh(0), 0)
    (replayed,) = memory.step(fresh(1), 1)
    assert all(np.abs(one.advantage) <= 0.1 for one in replayed.rollouts)
    stored = memory.store.rollouts(replayed.draw.slots)  # type: ignore[attr-defined]
    born = {one.key: one.advantage for one in fresh(0)}
    assert [one.advantage for one in stored] == [born[one.key] for one in stored]


def test_scores_become_the_rule_score() -> None:
    memory = Replayer(RolloutStore(store_preset("nser", warm_up=0)), lambda rows: [0.5] * len(rows))
    memory.step(fresh(0), 0)
    assert [one.rule_score for one in memory.pending] == [0.5] * 4


def test_a_saved_memory_goes_on_as_it_would_have(tmp_path: Path) -> None:
    one, other = replayer(0), replayer(7)
    for version in (0, 1, 2):
        one.step(fresh(version), version)
    one.save(tmp_path / "later" / "rollouts.npz")
    other.restore(tmp_path / "later" / "rollouts.npz")
    for version in (3, 4):
        (left,), (right,) = one.step(fresh(version), version), other.step(fresh(version), version)
        assert left.draw.slots.tolist() == right.draw.slots.tolist()
        assert all(same(a, b) for a, b in zip(left.rollouts, right.rollouts, strict=True))
    with pytest.raises(StoreStateError):
        replayer(ratio=0.25).restore(tmp_path / "later" / "rollouts.npz")


def test_a_pool_is_refused() -> None:
    with pytest.raises(RolloutError, match="composition: found pool"):
        replayer(composition="pool")


# Rows.


@settings(max_examples=60, deadline=None)
@given(made=rollouts())
def test_flat_tokens_and_back(made: Any) -> None:
    back = split(joined(made), reward=made.reward, task=made.task)
    assert same(back, made)


def test_a_row_without_actions_is_all_prompt() -> None:
    tokens = Flat(np.array([1, 2], np.int32), np.zeros(2, bool), np.zeros(2, "f4"), np.ones(2, "f4"))
    found = split(tokens)
    assert (found.prompt_ids.tolist(), found.response_ids.tolist(), found.advantage) == ([1, 2], [], 0.0)


def test_advantages_are_one_number_only_where_that_says_the_same() -> None:
    mask = np.array([True, False, True])
    assert folded(np.array([2, 0, 2], np.float32), mask) == 2.0
    for values in ([2, 1, 2], [2, 0, 3]):
        assert np.array_equal(folded(np.array(values, np.float32), mask), np.array(values, np.float32))
    assert folded(np.zeros(2, np.float32), np.zeros(2, bool)) == 0.0


def test_json_and_weights_are_checked() -> None:
    with pytest.raises(TypeError, match="object is no JSON"):
        jsonable({"x": [object()]})
    for wrong in ([1.0], [1.0, 0.0], [1.0, np.nan], [1.0, -1.0]):
        with pytest.raises(RolloutError, match="weights"):
            loss_weights(wrong, 2)
