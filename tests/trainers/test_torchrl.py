from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

pytest.importorskip("torchrl", reason="needs the extra: pip install nser[torchrl]")

from tensordict import TensorDict
from torchrl.data import LazyTensorStorage, ListStorage, ReplayBuffer, TensorDictReplayBuffer

from nser.replay import ArgumentError, Law, SignalError
from nser.trainers.torchrl import IndexSampler

PLAIN = Law(alpha=1.0, epsilon=0.0, beta=1.0, normalise="none", stratified=False)


def numbered(ks: Any) -> TensorDict:
    k = torch.as_tensor(list(ks))
    return TensorDict({"obs": torch.stack([k, -k], 1).float(), "k": k}, [len(k)])


def buffer_of(capacity: int = 10, batch: int = 32, **options: Any) -> tuple[TensorDictReplayBuffer, IndexSampler]:
    sampler = IndexSampler(capacity, **{"law": PLAIN, **options})
    return TensorDictReplayBuffer(storage=LazyTensorStorage(capacity), sampler=sampler, batch_size=batch), sampler


def test_draws_follow_the_priorities_and_weights_undo_them() -> None:
    buffer, sampler = buffer_of(batch=4000)
    buffer.extend(numbered(range(10)))
    buffer.update_priority(torch.arange(10), torch.arange(1.0, 11.0))
    batch = buffer.sample()
    counts = np.bincount(batch["k"], minlength=10)
    expected = np.arange(1.0, 11.0) / 55
    assert chisquare(counts, expected * 4000).pvalue > 0.01
    np.testing.assert_allclose(batch["priority_weight"], (1 / (10 * expected))[batch["k"].numpy()], rtol=1e-6)
    assert batch["priority_weight"].dtype == torch.float32
    assert sampler.index.clock == 1


@pytest.mark.parametrize("count", [3, 10, 17, 25])
def test_places_agree_with_the_storage_below_at_and_past_its_border(count: int) -> None:
    buffer, _ = buffer_of()
    for k in range(count):
        if k % 3:
            buffer.add(numbered([k])[0])
        else:
            buffer.extend(numbered([k]))
    batch = buffer.sample()
    assert (batch["k"] % 10 == batch["index"]).all()
    assert set(batch["k"].tolist()) <= set(range(max(count - 10, 0), count))


def test_feedback_for_what_was_overwritten_is_ignored_and_counted() -> None:
    buffer, sampler = buffer_of()
    buffer.extend(numbered(range(10)))
    batch = buffer.sample()
    buffer.extend(numbered(range(10, 14)))
    buffer.update_priority(batch["index"], torch.full((32,), 7.0))
    assert sampler.index.stats().stale_updates == int((batch["index"] < 4).sum()) > 0
    signal = sampler.index.explain(np.arange(10)).signal
    assert (signal[:4] == 1).all()
    assert (signal[np.unique(batch["index"][batch["index"] >= 4])] == 7).all()
    with pytest.raises(SignalError):
        buffer.update_priority(torch.tensor([5]), torch.tensor([-1.0]))


def test_priorities_may_be_given_before_the_first_draw() -> None:
    buffer, sampler = buffer_of()
    buffer.extend(numbered(range(4)))
    buffer.update_priority(2, 5.0)
    buffer.update_priority(torch.tensor([0, 1]), 3.0)
    assert sampler.index.explain(np.arange(4)).signal.tolist() == [3, 3, 5, 1]


class ByNumber:
    """Relevance of an element from its number, and how many were asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def __call__(self, data: TensorDict) -> np.ndarray:
        self.asked.append(len(data))
        return data["k"].numpy() / 100


def test_new_and_changed_elements_are_scored_before_the_next_draw() -> None:
    scorer = ByNumber()
    buffer, sampler = buffer_of(law="nser", scorer=scorer, version=2)
    buffer.extend(numbered(range(8)))
    buffer.sample()
    found = sampler.index.explain(np.arange(8))
    np.testing.assert_allclose(found.relevance, np.arange(8) / 100)
    assert (found.version == 2).all()
    buffer.sample()
    buffer.extend(numbered(range(8, 13)))
    buffer.sample()
    assert scorer.asked == [8, 5]
    buffer.mark_update(torch.tensor([4]))
    buffer.sample()
    assert scorer.asked == [8, 5, 1]
    sampler.rescore(scorer, version=3)
    buffer.sample()
    assert scorer.asked[-1] == 10
    assert (sampler.index.explain(np.arange(10)).version == 3).all()
    sampler.relate(torch.tensor([1]), torch.tensor([0.9]), version=4)
    assert sampler.index.explain([1]).relevance.tolist() == pytest.approx([0.9])


def test_states_and_folders_bring_the_same_draws_back(tmp_path: Path) -> None:
    buffer, sampler = buffer_of(law="nser")
    buffer.extend(numbered(range(13)))
    batch = buffer.sample()
    buffer.update_priority(batch["index"], torch.rand(32))
    other, _ = buffer_of(law="nser")
    other.load_state_dict(copy.deepcopy(buffer.state_dict()))
    buffer.dumps(tmp_path)
    third, _ = buffer_of(law="nser")
    third.loads(tmp_path)
    for one in (buffer, other, third):
        one.extend(numbered([13]))
    expected = buffer.sample()
    for one in (other, third):
        found = one.sample()
        assert torch.equal(found["k"], expected["k"])
        assert torch.equal(found["priority_weight"], expected["priority_weight"])
    assert "IndexSampler(capacity=10" in repr(sampler)


def test_an_emptied_buffer_starts_anew() -> None:
    buffer, sampler = buffer_of()
    buffer.extend(numbered(range(7)))
    buffer.empty()
    assert not sampler.can_sample(buffer.storage, 1)
    buffer.extend(numbered(range(3)))
    assert set(buffer.sample()["k"].tolist()) <= {0, 1, 2}


def test_other_orders_and_other_sizes_are_refused_in_words() -> None:
    buffer = ReplayBuffer(storage=ListStorage(4), sampler=IndexSampler(5), batch_size=2)
    buffer.extend(list(range(4)))
    with pytest.raises(ArgumentError, match="places in ring order"):
        buffer.add(4)
    with pytest.raises(ArgumentError, match="storage of one dimension"):
        IndexSampler(5).mark_update(torch.zeros(3, 2))
