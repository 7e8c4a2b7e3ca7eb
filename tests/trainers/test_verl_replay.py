"""verl's trainer V0: fresh rows stay as they are, replayed rows carry their correction.

`RayPPOTrainer` itself can't be imported without verl's whole cluster stack, so the mixin stands on a trainer with its
methods; batches are the real `DataProto`, and the correction is held against verl's own `rollout_corr_helper`.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from nser.rollouts import RolloutError, RolloutStore, store_preset
from nser.trainers.verl import from_batch, with_replay
from tests.trainers.verl_batches import batch


class Trainer:
    """The methods of `RayPPOTrainer` that replay touches; its policy drifts with every step."""

    def __init__(self, folder: Path) -> None:
        self.global_steps = 0
        self.config = SimpleNamespace(trainer=SimpleNamespace(default_local_dir=str(folder)))
        self.seen: list[Any] = []
        self.asked = 0

    def _update_actor(self, data: Any) -> Any:
        self.seen.append(data)
        return type(data).from_single_dict(data={}, meta_info={"metrics": {"actor/loss": [0.0]}})

    def _compute_old_log_prob(self, data: Any) -> tuple[Any, float]:
        self.asked += 1
        drift = 0.9 * torch.sin(data.batch["responses"].float())
        logps = (data.batch["old_log_probs"] + drift).clamp(max=0) * data.batch["response_mask"]
        return type(data).from_dict(tensors={"old_log_probs": logps}), 0.0

    def _compute_ref_log_prob(self, data: Any) -> Any:
        return type(data).from_dict(tensors={"ref_log_prob": -torch.ones_like(data.batch["advantages"])})

    def _save_checkpoint(self) -> None:
        self._folder().mkdir(parents=True)

    def _load_checkpoint(self) -> None:
        self.global_steps = 2

    def _folder(self) -> Path:
        return Path(self.config.trainer.default_local_dir) / f"global_step_{self.global_steps}"

    def train(self, steps: int, **extra: Any) -> list[Any]:
        """What `_update_actor` of the host got, and what it gave."""
        given = []
        for _ in range(steps):
            self.global_steps += 1
            given.append(self._update_actor(batch(4, seed=self.global_steps, **extra)))
        return given


def trainer(folder: Path, preset: str = "nser", seed: int = 0, **changes: Any) -> Any:
    settings = store_preset(preset, **({"warm_up": 0, "ratio": 0.5} | changes))
    return with_replay(Trainer, RolloutStore(settings, seed))(folder)


def test_old_rows_come_behind_fresh_ones_that_stay_as_they_are(tmp_path: Path) -> None:
    host = trainer(tmp_path)
    outputs = host.train(2)
    assert len(host.seen[0]) == 4
    mixed, fresh = host.seen[1], batch(4, seed=2)
    assert len(mixed) == 6
    for key in list(fresh.batch.keys()):
        assert torch.equal(mixed.batch[key][:4], fresh.batch[key]), key
    assert torch.equal(mixed.batch["rollout_is_weights"][:4], fresh.batch["response_mask"].float())
    born = {one.key: one.advantage for one in from_batch(batch(4, seed=1))}
    old = from_batch(mixed.select_idxs([4, 5]))
    assert [born[one.key] for one in old] == [one.advantage for one in old]
    assert outputs[1].meta_info["metrics"]["nser/replayed"] == 2
    assert outputs[1].meta_info["metrics"]["nser/age_mean"] == 1


def test_the_decoupled_correction_is_verls_own(tmp_path: Path) -> None:
    """proximal log-probs in `old_log_probs`, min(proximal/behaviour, 2) in `rollout_is_weights`."""
    helper = pytest.importorskip("verl.trainer.ppo.rollout_corr_helper")
    host = trainer(tmp_path)
    host.train(2)
    mixed = host.seen[1].select_idxs([4, 5])
    proximal, mask = mixed.batch["old_log_probs"], mixed.batch["response_mask"]
    behaviour = {one.key: one.behavior_logps for one in from_batch(batch(4, seed=1))}
    gaps = proximal.clone()
    for row, one in enumerate(from_batch(mixed)):
        gaps[row, : len(one.response_ids)] -= torch.from_numpy(behaviour[one.key].copy())
    weights, _ = helper.compute_rollout_correction_weights(
        log_ratio=gaps, response_mask=mask, rollout_is="token", rollout_is_threshold=2.0
    )
    assert torch.allclose(mixed.batch["rollout_is_weights"], weights, atol=1e-6)
    assert (gaps[mask.bool()].abs() > 0.1).any()
    assert host.asked == 1


def test_clip_takes_the_behaviour_policy_for_the_old_one(tmp_path: Path) -> None:
    host = trainer(tmp_path, correction="clip")
    host.train(2)
    mixed = host.seen[1]
    assert "rollout_is_weights" not in list(mixed.batch.keys())
    behaviour = {one.key: one.behavior_logps.tolist() for one in from_batch(batch(4, seed=1))}
    assert all(behaviour[one.key] == one.behavior_logps.tolist() for one in from_batch(mixed.select_idxs([4, 5])))
    assert host.asked == 0


def test_reference_log_probs_are_computed_and_values_left_out(tmp_path: Path) -> None:
    host = trainer(tmp_path)
    host.train(2, ref_log_prob=torch.zeros(4, 5), values=torch.zeros(4, 5))
    mixed = host.seen[1]
    assert "values" not in list(mixed.batch.keys())
    assert mixed.batch["ref_log_prob"][4:].eq(-1).all()
    assert mixed.batch["ref_log_prob"][:4].eq(0).all()


def test_separate_updates_follow_the_fresh_one(tmp_path: Path) -> None:
    host = trainer(tmp_path, "freshper", updates=2)
    host.train(2)
    assert [len(data) for data in host.seen] == [4, 4, 2, 2]


def test_keys_that_no_stored_rollout_has_are_refused_in_words(tmp_path: Path) -> None:
    host = trainer(tmp_path)
    host.train(1, routed_experts=torch.zeros(4, 5))
    with pytest.raises(RolloutError, match="routed_experts in some batches only"):
        host.train(1, routed_experts=torch.zeros(4, 5))
    with pytest.raises(RolloutError, match="composition: found pool"):
        trainer(tmp_path, composition="pool")
    with pytest.raises(RolloutError, match="multiple_of: found 0"):
        with_replay(Trainer, RolloutStore("nser"), multiple_of=0)


def test_replayed_rows_are_a_multiple_of_what_the_trainer_splits(tmp_path: Path) -> None:
    settings = store_preset("nser", warm_up=0, ratio=2.0, max_share=1.0)
    host = with_replay(Trainer, RolloutStore(settings), multiple_of=3)(tmp_path)
    host.train(3)
    assert [len(data) for data in host.seen] == [4, 4 + 3, 4 + 6]


def test_rule_scores_of_fresh_rows_become_relevance(tmp_path: Path) -> None:
    store = RolloutStore(store_preset("nser", warm_up=0, ratio=0.5))
    host = with_replay(Trainer, store, lambda fresh: np.linspace(0, 1, len(fresh)))(tmp_path)
    host.train(2)
    assert store.explain(store.live_slots()).relevance.tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1])


def test_a_resumed_run_replays_the_same(tmp_path: Path) -> None:
    host = trainer(tmp_path)
    host.train(2)
    host._save_checkpoint()
    host.train(2)
    resumed = trainer(tmp_path, seed=99)
    resumed._load_checkpoint()
    resumed.train(2)
    for left, right in zip(host.seen[2:], resumed.seen, strict=True):
        assert len(left) == 6
        assert all(torch.equal(left.batch[key], right.batch[key]) for key in list(left.batch.keys()))
