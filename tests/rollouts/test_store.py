"""The store: what it takes and refuses, what feedback does, what it tells, and calls from several threads."""

from __future__ import annotations

import json
import math
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nser.replay import Law, RelevanceError, SlotError
from nser.rollouts import RolloutError, RolloutStore, StoreSettings, pad_batch
from nser.rollouts.shards import Shards
from tests.rollouts.making import content, random_rollout, rollout


def store(**changes: Any) -> RolloutStore:
    directory = changes.pop("directory", None)
    given: dict[str, Any] = {"capacity": 20, "law": Law(max_age=5, eta=4.0)}
    return RolloutStore(StoreSettings(**(given | changes)), directory=directory, shard_bytes=400)


def test_every_refusal_has_its_reason_and_its_task() -> None:
    one = store(capacity=3)
    one.advance(9)
    one.admit([rollout(0, 9, task="old")])
    admission = one.admit(
        [
            rollout(1, 9, task="sums"),
            rollout(0, 9, task="sums"),
            rollout(2, 9, task="sums", advantage=0.0),
            rollout(3, 9, task="maze", advantage=[0.0, 1e-7, 0.0, 0.0]),
            rollout(4, 3, task="maze"),
            rollout(5, 4, task="maze"),
            rollout(6, 9, task="maze", response_mask=[0] * 4),
            rollout(7, 9, task="maze", prompt_ids=[], response_ids=[], response_mask=[], behavior_logps=[]),
            rollout(8, 9, task="maze"),
            rollout(9, 9, task="maze"),
        ]
    )
    assert admission.slots.tolist() == [1, 2, 0]
    assert admission.refused == {
        "duplicate": 1, "zero signal": 2, "too old": 1, "nothing to train on": 2, "no room": 1,
    }  # fmt: skip
    assert admission.by_task == {"sums": (1, 2), "maze": (2, 5)}
    tasks = one.metrics().tasks
    assert (tasks["sums"].admitted, tasks["sums"].rate) == (1, 1 / 3)
    assert tasks["maze"].refused == {"zero signal": 1, "too old": 1, "nothing to train on": 2, "no room": 1}


def test_shaped_rewards_that_are_all_equal_are_no_reason_to_refuse() -> None:
    admission = store().admit([rollout(i, reward=0.5, advantage=0.1) for i in range(4)])
    assert len(admission.slots) == 4


def test_one_token_with_an_advantage_is_a_signal() -> None:
    many = [
        rollout(1, advantage=[0.0, 0.0, 0.5, 0.0]),
        rollout(2, advantage=[0.0, 0.0, 0.5, 0.0], response_mask=[1, 1, 0, 1]),
    ]
    one = store()
    assert one.teaches(many).tolist() == [True, False]
    assert one.admit(many).refused == {"zero signal": 1}


def test_equal_answers_of_a_batch_are_samples_of_their_own(tmp_path: Path) -> None:
    group = [rollout(1), rollout(1), rollout(2), rollout(1)]
    one = store(directory=tmp_path / "shards")
    assert len(one.admit(group).slots) == 4
    assert one.admit(group).refused == {"duplicate": 4}
    assert one.admit([*group, rollout(1)]).refused == {"duplicate": 4}, "a fourth equal answer is new"
    one.save(tmp_path / "store.npz")
    again = RolloutStore.load(tmp_path / "store.npz", tmp_path / "others")
    assert again.admit([*group, rollout(1)]).refused == {"duplicate": 5}
    assert again.draw(3).rollouts


def test_a_rollout_may_come_again_once_it_is_gone() -> None:
    one = store(capacity=2)
    one.admit([rollout(1)])
    assert one.admit([rollout(1)]).refused == {"duplicate": 1}
    one.admit([rollout(2), rollout(3)])
    assert one.admit([rollout(1)]).refused == {}


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ([rollout(1), rollout(2, 4)], r"rollout 1: policy_version: found \(4, 4\), expected at most 3.*advance\(4\)"),
        ([rollout(1), rollout(2, policy_version=(0, 4))], "rollout 1: policy_version"),
        ([rollout(1), rollout(2, metadata={"a": {1}})], "rollout 1: metadata: found .*set"),
        ([rollout(1), rollout(2, metadata={"a": math.nan})], "rollout 1: metadata"),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(wrong: list[Any], expected: str) -> None:
    one = store()
    one.advance(3)
    one.admit([rollout(9, 3)])
    before = json.dumps({name: str(value) for name, value in one.state_dict().items()})
    with pytest.raises(RolloutError, match=expected):
        one.admit(wrong)
    assert json.dumps({name: str(value) for name, value in one.state_dict().items()}) == before


def test_arguments_that_do_not_fit_are_named() -> None:
    one = store()
    one.advance(2)
    slots = one.admit([rollout(1), rollout(2)]).slots
    drawn = one.draw(2)
    for call, expected in (
        (lambda: one.advance(1), "version: found 1, expected a whole number ≥ 2"),
        (lambda: one.advance(True), "version: found True"),
        (lambda: one.draw(-1), "count: found -1"),
        (lambda: one.give_back(drawn, 3), "keep: found 3, expected a number from 0 to 2"),
        (lambda: one.update(drawn, [1.0]), r"signals: found the shape \(1,\)"),
        (lambda: one.update(drawn, [1.0, math.nan]), r"signals\[1\]: found nan"),
        (lambda: one.admit([rollout(3)], scores=[2.0]), r"scores\[0\]: found 2.0"),
        (lambda: one.admit([rollout(3)], scores=[0.5, 0.5]), r"scores: found the shape \(2,\)"),
        (lambda: one.rollouts([5]), "slots: found 5, expected slots of live items"),
    ):
        with pytest.raises(RolloutError, match=expected):
            call()
    with pytest.raises(SlotError):
        one.rollouts([20])
    with pytest.raises(RelevanceError):
        one.relate(slots, [0.5, 1.5], version=1)
    assert [each.rule_score for each in one.rollouts(slots)] == [0.0, 0.0]


def test_feedback_for_what_is_gone_is_ignored_and_counted() -> None:
    one = store(capacity=2)
    one.admit([rollout(1), rollout(2)])
    drawn, generations = one.draw(2), one.generations_of([0, 1])
    one.admit([rollout(3)])
    assert one.update(drawn, [7.0, 7.0]) == 1
    assert one.explain([0, 1]).signal.tolist() == [1.0, 7.0]
    assert one.relate([0, 1], [0.5, 0.25], version=1, generations=generations) == 1
    assert [each.rule_score for each in one.rollouts([0, 1])] == [0.0, 0.25]
    kept = one.give_back(drawn, 0)
    assert len(kept) == 0
    assert [each.uses for each in one.rollouts([0, 1])] == [0, 0]


def test_scores_become_relevance_and_rule_scores() -> None:
    one = store()
    slots = one.admit([rollout(1), rollout(2, rule_scores={"a": 0.5})], scores=[1.0, 0.25]).slots
    assert one.explain(slots).relevance.tolist() == [1.0, 0.25]
    one.relate(slots[:1], [0.125], version=4)
    explained = one.explain(slots)
    assert explained.relevance.tolist() == [0.125, 0.25]
    assert explained.version.tolist() == [4, -1]
    assert [each.rule_score for each in one.rollouts(slots)] == [0.125, 0.25]
    assert one.metrics().scored == 0.5


def test_a_drawn_rollout_tells_its_uses_and_outlives_its_slot() -> None:
    one = store(capacity=2)
    one.admit([rollout(1), rollout(2)])
    one.draw(2)
    held = one.draw(2).rollouts
    assert [each.uses for each in held] == [2, 2]
    before = [content(each) for each in held]
    for number in range(10, 40):
        one.admit([rollout(number)])
    assert [content(each) for each in held] == before
    with pytest.raises(ValueError, match="read-only"):
        held[0].response_ids[0] = 1


def test_metrics_tell_ages_reuse_and_bytes() -> None:
    one = store(capacity=4, law=Law())
    one.admit([rollout(i) for i in range(4)])
    for version in (1, 3):
        one.advance(version)
        one.draw(2)
    metrics = one.metrics()
    assert (metrics.drawn, metrics.age_mean, metrics.age_max, metrics.age_counts[:4]) == (4, 2.0, 3, (0, 2, 2, 0))
    assert (metrics.last_age_mean, metrics.last_age_max) == (3.0, 3)
    assert (metrics.uses_mean, metrics.gone) == (1.0, 0)
    # Each: 3 + 2·4 words of tokens and log-probs, 1 of mask, texts filled up to whole words.
    assert metrics.bytes >= 4 * 4 * (3 + 2 * 4 + 1)
    one.admit([rollout(9, 3)])
    after = one.metrics()
    assert (after.gone, after.gone_uses_mean) == (1, after.gone_uses_mean)
    assert json.loads(json.dumps(after.to_dict()))["version"] == 3
    assert after.scalars()["items"] == 4.0
    assert one.metrics().effective_size == pytest.approx(4.0)


def test_a_store_of_files_leaves_nothing_in_its_folder_and_frees_its_shards(tmp_path: Path) -> None:
    one = store(directory=tmp_path)
    rng = np.random.default_rng(0)
    held = 0
    for version in range(30):
        one.advance(version)
        new = [random_rollout(rng, version, advantage=1.0) for _ in range(6)]
        slots = one.admit(new).slots
        assert [content(each) for each in one.rollouts(slots)] == [content(each) for each in new]
        held = max(held, one.metrics().bytes_allocated)
    assert list(tmp_path.iterdir()) == []
    assert held < 12_000, "20 rollouts of at most 700 bytes, and the oldest and newest shard"
    one.advance(99)
    assert one.metrics().bytes_allocated == 0


def test_a_full_disk_is_an_error_that_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = store(directory=tmp_path)
    one.admit([rollout(1)])

    def full(file: int, start: int, length: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    before = one.metrics()
    with pytest.raises(OSError, match="No space left"):
        one.admit([rollout(i) for i in range(2, 12)])
    assert one.metrics() == before
    monkeypatch.undo()
    assert len(one.admit([rollout(i) for i in range(2, 12)]).slots) == 10
    assert [each.prompt_ids[0] for each in one.rollouts(range(11))] == list(range(1, 12))


def test_a_record_larger_than_a_shard_gets_one_of_its_own() -> None:
    shards = Shards(40, None)
    assert shards.place([16, 120, 16, 24], [1, 1, 1, 2]) == [(0, 0), (1, 0), (2, 0), (2, 4)]
    assert shards.allocated == 4 * (10 + 30 + 10)
    shards.release(np.array([0, 1, 2]))
    assert list(shards.by_number) == [2]
    shards.release(np.array([2, 2]))
    assert shards.place([12], [1]) == [(3, 0)]


def test_a_new_store_draws_nothing() -> None:
    one = RolloutStore()
    assert (len(one), one.version, one.warming_up) == (0, 0, True)
    assert len(one.draw(4)) == 0
    assert pad_batch(one.draw(4).rollouts, 0).prompt_ids.shape == (0, 0)
    assert one.metrics().items == 0
    assert one.admit([]).slots.tolist() == []


def test_an_index_whose_items_are_all_too_old_draws_nothing() -> None:
    one = store(replace=True)
    one.advance(6)
    one.admit([rollout(1, policy_version=(2, 6))])
    assert len(one.draw(3)) == 3
    one.advance(8)
    assert len(one) == 0
    assert len(one.draw(3)) == 0
    assert one.explain([0]).probability.tolist() == [0.0]
    assert one.metrics().effective_size == 0.0


def test_threads_may_draw_admit_relate_and_save_at_once(tmp_path: Path) -> None:
    one = store(capacity=64, law=Law(eta=2.0), directory=tmp_path)
    one.admit([rollout(i) for i in range(64)])
    faults: list[BaseException] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for step in range(40):
                drawn = one.draw(8)
                assert all(each.response_ids[0] == each.prompt_ids[0] for each in drawn.rollouts)
                one.update(drawn, rng.random(8))
                one.admit([rollout(1000 * seed + 8 * step + i) for i in range(8)])
                one.relate(one.live_slots()[:4], rng.random(4), step)
                one.state_dict()
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    metrics = one.metrics()
    assert (metrics.drawn, metrics.items, metrics.gone) == (4 * 40 * 8, 64, 4 * 40 * 8)
