"""The store behind a Ray actor, and scoring as Ray tasks: one local Ray for the whole file, on 127.0.0.1."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nser.rollouts import Rollout, RolloutError, RolloutStore, StoreStateError, plan, store_preset
from nser.trainers.ray_scoring import RemoteScore
from nser.trainers.ray_store import RemoteStore, connect_store, start_store, store_bytes
from nser.trainers.replayer import Replayer
from nser.trainers.verl.sampling import SamplerOptions
from tests.trainers.rollout_makers import rollout, same

ray = pytest.importorskip("ray")
SETTINGS = store_preset("nser", warm_up=0, ratio=0.5)


@pytest.fixture(scope="module", autouse=True)
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Two CPUs' worth of tasks on one, no dashboard, 80 MB of object store."""
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
        object_store_memory=80_000_000,
        _node_ip_address="127.0.0.1",
    )
    yield
    ray.shutdown()


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Iterator[RemoteStore]:
    started = start_store(request.node.name, SETTINGS)
    yield started
    started.stop()


def made(count: int, version: int = 0, response: int = 4) -> list[Rollout]:
    return [rollout(1000 * version + number, 3, response, version) for number in range(count)]


def test_it_is_the_store_that_it_stands_for(store: RemoteStore) -> None:
    """The same calls to both give the same draws, figures and shares, step by step."""
    twin = RolloutStore(SETTINGS)
    for version in range(4):
        for one in (store, twin):
            one.advance(version)
        left, right = store.draw(5), twin.draw(5)
        assert left.draw.slots.tolist() == right.draw.slots.tolist()
        assert all(same(a, b) for a, b in zip(left.rollouts, right.rollouts, strict=True))
        if len(left):
            assert store.update(left, np.arange(len(left))) == twin.update(right, np.arange(len(right)))
            assert store.give_back(left, 2).draw.slots.tolist() == twin.give_back(right, 2).draw.slots.tolist()
        fresh = made(6, version)
        assert store.admit(fresh).slots.tolist() == twin.admit(fresh).slots.tolist()
        slots = twin.live_slots()
        assert store.live_slots().tolist() == slots.tolist()
        scores = np.linspace(0, 1, len(slots))
        assert store.relate(slots, scores, version) == twin.relate(slots, scores, version) == 0
        assert store.metrics() == twin.metrics()
        assert store.explain(slots).probability.tolist() == twin.explain(slots).probability.tolist()
        assert store.teaches(fresh).tolist() == twin.teaches(fresh).tolist()
    assert (len(store), store.version, store.warming_up) == (len(twin), twin.version, twin.warming_up)


def test_it_takes_the_place_of_a_store_in_a_trainer(store: RemoteStore, tmp_path: Path) -> None:
    memory, twin = Replayer(store), Replayer(RolloutStore(SETTINGS))
    for version in range(3):
        left, right = (one.step(made(4, version), version) for one in (memory, twin))
        assert [part.draw.slots.tolist() for part in left] == [part.draw.slots.tolist() for part in right]
    memory.save(tmp_path / "store.npz")
    before = [part.draw.slots.tolist() for part in memory.step(made(4, 3), 3)]
    memory.restore(tmp_path / "store.npz")
    assert [part.draw.slots.tolist() for part in memory.step(made(4, 3), 3)] == before


def test_a_whole_step_can_be_planned_on_it(store: RemoteStore) -> None:
    store.admit(made(8))
    store.advance(1)
    step = plan(store, made(4, 1))  # type: ignore[arg-type]
    assert (step.fresh, step.replayed) == (4, 2)


def test_arrays_of_a_draw_are_not_copied(store: RemoteStore) -> None:
    """Read twice, a draw stands at one place: in the object store."""
    store.admit(made(64, response=2000))
    store.advance(1)
    reference = store.actor.draw.remote(32)
    first, second = ray.get(reference), ray.get(reference)
    for left, right in zip(first.rollouts, second.rollouts, strict=True):
        assert np.shares_memory(left.response_ids, right.response_ids)
        assert not left.behavior_logps.flags.writeable


def test_others_find_it_by_its_name(store: RemoteStore, request: pytest.FixtureRequest) -> None:
    store.admit(made(3))
    assert len(connect_store(request.node.name)) == 3
    assert len(SamplerOptions.of({"store": request.node.name}).open_store()) == 3

    @ray.remote(num_cpus=0)
    def elsewhere(found: RemoteStore) -> int:
        return len(found)

    assert ray.get(elsewhere.remote(store)) == 3


def test_errors_are_those_of_the_store(store: RemoteStore, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with pytest.raises(RolloutError, match="Versions never fall") as caught:
        store.advance(-1)
    assert caught.value.field == "version"
    with pytest.raises(RolloutError, match="Use connect_store"):
        start_store(request.node.name)
    with pytest.raises(RolloutError, match="Call start_store first"):
        connect_store("nobody")
    with pytest.raises(RolloutError, match="preset: found nothing"):
        start_store("other", "nothing")
    (tmp_path / "foreign.npz").write_bytes(b"PK")
    with pytest.raises(StoreStateError):
        store.restore(tmp_path / "foreign.npz")


def parity(rollouts: Sequence[Rollout]) -> Any:
    """A made-up rule: 1 for an even first token."""
    return [1.0 - int(one.response_ids[0]) % 2 for one in rollouts]


def test_scores_come_in_order_whatever_the_batches() -> None:
    rollouts = made(23)
    for rows in (1, 5, 23, 100):
        assert RemoteScore(parity, rows)(rollouts).tolist() == parity(rollouts)
    assert RemoteScore(parity)([]).tolist() == []
    with pytest.raises(RolloutError, match="rows: found 0"):
        RemoteScore(parity, 0)


def test_a_store_is_scored_anew_by_other_rules(store: RemoteStore) -> None:
    store.admit(made(23))
    assert RemoteScore(parity, 2).rescore(store, 5) == 0
    slots = store.live_slots()
    explained = store.explain(slots)
    assert explained.relevance.tolist() == parity(store.rollouts(slots))
    assert set(explained.version.tolist()) == {5}


def test_the_size_on_paper_is_the_size(store: RemoteStore) -> None:
    """Within a tenth of what the store says it wrote, its rows and its index."""
    store.admit(made(200, response=500))
    metrics = store.metrics()
    rows_and_index = 200 * (150 + 24)
    assert store_bytes(200, 3, 500) == pytest.approx(metrics.bytes + rows_and_index, rel=0.1)
