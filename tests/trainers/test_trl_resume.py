"""A run that was interrupted goes on as if it had not been."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("trl", reason="needs the extra: pip install nser[trl]")

from nser.replay import ArgumentError
from nser.rollouts import StoreStateError, store_preset
from tests.trainers.trl_host import record_batches, trainer

SAVING: dict[str, Any] = {"save_strategy": "steps", "save_steps": 4}


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize("replay", ["nser", "freshper"])
def test_store_batches_and_weights_are_the_same_bit_for_bit(tmp_path: Path, replay: str) -> None:
    whole = trainer(tmp_path / "whole", replay=replay, max_steps=7, **SAVING)
    wanted = record_batches(whole)
    whole.train()

    half = trainer(tmp_path / "half", replay=replay, max_steps=7, **SAVING)
    half.add_callback(stop_at(4))
    half.train()
    resumed = trainer(tmp_path / "half", replay=replay, max_steps=7, **SAVING)
    found = record_batches(resumed)
    resumed.train(resume_from_checkpoint=True)

    assert len(found) == 3
    for expected, batch in zip(wanted[4:], found, strict=True):
        assert expected.keys() == batch.keys()
        assert all(torch.equal(expected[key], batch[key]) for key in expected)
    assert same(whole.rollout_store.state_dict(), resumed.rollout_store.state_dict())
    weights = zip(whole.model.parameters(), resumed.model.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in weights)


def stop_at(step: int) -> Any:
    from transformers import TrainerCallback

    class Stop(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            control.should_training_stop = state.global_step >= step

    return Stop()


def test_saving_in_between_changes_nothing(tmp_path: Path) -> None:
    states = []
    often: dict[str, Any] = {"save_strategy": "steps", "save_steps": 1}
    for name, saving in (("often", often), ("never", {})):
        host = trainer(tmp_path / name, max_steps=4, **saving)
        host.train()
        host._replayer.settle()
        states.append(host.rollout_store.state_dict())
    assert same(*states)


def test_a_checkpoint_without_a_store_says_so(tmp_path: Path) -> None:
    trainer(tmp_path, max_steps=4, **SAVING).train()
    (tmp_path / "checkpoint-4" / "rollouts_0.npz").unlink()
    host = trainer(tmp_path, max_steps=5, **SAVING)
    with pytest.warns(UserWarning, match="starts with an empty store"):
        host.train(resume_from_checkpoint=True)


def test_a_store_of_other_settings_or_a_cut_one_is_refused(tmp_path: Path) -> None:
    trainer(tmp_path, max_steps=4, **SAVING).train()
    other = trainer(tmp_path, replay=store_preset("nser", ratio=0.25), max_steps=5, **SAVING)
    with pytest.raises(ArgumentError, match=r"ratio: found 0.25, expected 0.5, as saved"):
        other.train(resume_from_checkpoint=True)
    path = tmp_path / "checkpoint-4" / "rollouts_0.npz"
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(StoreStateError):
        trainer(tmp_path, max_steps=5, **SAVING).train(resume_from_checkpoint=True)


def test_weights_alone_come_without_a_store(tmp_path: Path) -> None:
    trainer(tmp_path, max_steps=4, save_only_model=True, **SAVING).train()
    assert (tmp_path / "checkpoint-4" / "model.safetensors").is_file()
    assert not list((tmp_path / "checkpoint-4").glob("rollouts*"))
