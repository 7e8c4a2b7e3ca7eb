"""verl's V1: our sampler on verl's real `ReplayBuffer`, with a stand-in for the queue (see `queue_stand_in`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nser.rollouts import RolloutError
from nser.trainers.verl.queue_rows import group_advantages
from nser.trainers.verl.sampling import SamplerOptions
from tests.trainers.queue_stand_in import Queue, installed

SESSIONS = 4


@pytest.fixture(scope="module")
def module() -> Iterator[Queue]:
    with installed() as queue:
        yield queue


@pytest.fixture
def queue(module: Queue) -> Queue:
    module.held.clear()
    return module


def sampler(name: str = "ReplaySampler", **options: Any) -> Any:
    """Found and built as verl's trainer does it."""
    from omegaconf import OmegaConf
    from verl.utils.import_utils import load_extern_object

    cls: Any = load_extern_object("pkg://nser.trainers.verl.v1", name)
    return cls(
        trainer_mode="sync" if name == "ReplaySampler" else "colocate_async",
        trainer_config={},
        max_off_policy_threshold=8,
        max_off_policy_strategy="drop",
        sampler_kwargs=OmegaConf.create({"preset": "nser", "ratio": 0.5, **options}),
        refill_fn=lambda count: None,
    )


def generate(queue: Queue, step: int, groups: int = 2, partition: str = "train", **extra: Any) -> None:
    """What the agent loop of a step puts into the queue: `groups` prompts, each with SESSIONS answers."""
    from verl.utils.tensordict_utils import list_of_dict_to_tensordict

    rng = torch.Generator().manual_seed(step)
    for group in range(groups):
        uid = f"prompt{step}x{group}"
        queue.kv_batch_put([uid], partition, tags=[{"is_prompt": True, "status": "finished", "global_steps": step}])
        rows, tags = [], []
        for session in range(SESSIONS):
            prompt, response = 2 + group, int(torch.randint(1, 6, (), generator=rng))
            ids = torch.randint(5, 99, (prompt + response,), generator=rng)
            scores = torch.zeros(response)
            scores[-1] = float(session < 1 + group)
            mask = torch.ones(response, dtype=torch.int64)
            rows.append(
                {
                    "prompts": ids[:prompt],
                    "responses": ids[prompt:],
                    "input_ids": ids,
                    "position_ids": torch.arange(len(ids)),
                    "response_mask": mask,
                    "loss_mask": mask,
                    "rollout_log_probs": -torch.rand(response, generator=rng),
                    "rm_scores": scores,
                    "uid": uid,
                    "session_id": session,
                    "data_source": "sums",
                    "num_turns": 2,
                    "raw_prompt": [{"role": "user", "content": f"question {group}"}],
                    "multi_modal_inputs": {},
                    **extra,
                }
            )
            tags.append(
                {
                    "status": "success",
                    "prompt_len": prompt,
                    "response_len": response,
                    "seq_len": prompt + response,
                    "global_steps": step,
                    "min_global_steps": step - 1,
                    "max_global_steps": step - 1,
                }
            )
        keys = [f"{uid}_{session}_0" for session in range(SESSIONS)]
        queue.kv_batch_put(keys, partition, fields=list_of_dict_to_tensordict(rows), tags=tags)


def take(queue: Queue, source: Any, step: int) -> tuple[Any, dict[str, Any], list[dict[str, Any]]]:
    """One step of the trainer: generate, sample, read, clear."""
    from nser.trainers.verl.queue_rows import unstacked

    generate(queue, step)
    batch, metrics = source.sample(global_steps=step, partition_id="train", batch_size=2)
    rows = unstacked(queue.kv_batch_get(batch.keys, "train"))
    queue.kv_clear(batch.keys, "train")
    return batch, metrics, rows


def estimated(rows: list[dict[str, Any]]) -> list[float]:
    """Advantages of rows by verl's real GRPO estimator."""
    core = pytest.importorskip("verl.trainer.ppo.core_algos")
    width = max(len(row["rm_scores"]) for row in rows)
    rewards, mask = torch.zeros(len(rows), width), torch.zeros(len(rows), width)
    for place, row in enumerate(rows):
        rewards[place, : len(row["rm_scores"])] = row["rm_scores"]
        mask[place, : len(row["response_mask"])] = row["response_mask"]
    index = np.array([row["uid"] for row in rows], object)
    advantages, _ = core.compute_grpo_outcome_advantage(rewards, mask, index)
    return [float(advantages[place][mask[place].bool()][0]) for place in range(len(rows))]


def test_replayed_rows_get_the_advantage_of_their_birth_from_verls_own_estimator(queue: Queue) -> None:
    source = sampler()
    batch, metrics, born = take(queue, source, 1)
    assert len(batch) == 2 * SESSIONS
    assert metrics["nser/replayed"] == 0
    batch, metrics, rows = take(queue, source, 2)
    assert metrics["nser/replayed"] == 4
    assert metrics["nser/age_mean"] == 1
    fresh, old = rows[: 2 * SESSIONS], rows[2 * SESSIONS :]
    frozen = dict(zip((tuple(row["input_ids"].tolist()) for row in born), estimated(born), strict=True))
    together = estimated(rows)
    assert together[: len(fresh)] == estimated(fresh)
    for row, advantage in zip(old, together[len(fresh) :], strict=True):
        assert advantage == pytest.approx(frozen[tuple(row["input_ids"].tolist())], abs=1e-6)


def test_replayed_rows_are_whole_and_tagged(queue: Queue) -> None:
    source = sampler()
    _, _, born = take(queue, source, 1)
    batch, _, rows = take(queue, source, 2)
    by_ids = {tuple(row["input_ids"].tolist()): row for row in born}
    for key, tag, row in list(zip(batch.keys, batch.tags, rows, strict=True))[2 * SESSIONS :]:
        original = by_ids[tuple(row["input_ids"].tolist())]
        assert row.keys() == original.keys()
        for name in ("prompts", "responses", "position_ids", "response_mask", "loss_mask", "rollout_log_probs"):
            assert torch.equal(row[name], original[name]), name
        assert row["raw_prompt"] == original["raw_prompt"]
        assert key == f"{row['uid']}_0_0"
        assert tag["is_padding"]
        assert (tag["min_global_steps"], tag["max_global_steps"]) == (0, 0)
        assert tag["seq_len"] == len(row["input_ids"])
    assert not any(tag.get("is_padding") for tag in batch.tags[: 2 * SESSIONS])
    assert len(set(batch.keys)) == len(batch)


def test_nothing_is_left_in_the_queue(queue: Queue) -> None:
    source = sampler()
    for step in (1, 2, 3):
        take(queue, source, step)
    assert queue.held["train"] == {}


def test_validation_goes_by_untouched(queue: Queue) -> None:
    source = sampler()
    take(queue, source, 1)
    generate(queue, 2, partition="val")
    batch, _ = source.sample(global_steps=2, partition_id="val", batch_size=2)
    assert len(batch) == 2 * SESSIONS
    assert source.replayer.pending != []


def test_the_async_buffer_and_several_samples_of_one_step(queue: Queue) -> None:
    """Two samples of one version: the second replays nothing that the first one brought."""
    source = sampler("ReplaySamplerAsync")
    for part in (0, 1):
        generate(queue, 1, groups=2)
        batch, metrics = source.sample(global_steps=1, partition_id="train", batch_size=2)
        assert metrics["nser/replayed"] == 0, part
        queue.kv_clear(batch.keys, "train")
    _, metrics, _ = take(queue, source, 2)
    assert metrics["nser/replayed"] == 4
    assert metrics["nser/age_mean"] == 1


def test_a_resumed_run_replays_the_same(queue: Queue, tmp_path: Path) -> None:
    options: dict[str, Any] = {"folder": str(tmp_path), "save_every": 2}
    source = sampler(**options)
    whole = [take(queue, source, step)[2] for step in (1, 2, 3, 4)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rollouts_2.npz", "rollouts_4.npz"]
    resumed = sampler(**options, seed=99)
    for step in (3, 4):
        _, _, rows = take(queue, resumed, step)
        found, expected = ([row["input_ids"].tolist() for row in part] for part in (rows, whole[step - 1]))
        assert found == expected


def test_only_the_last_saved_stores_are_kept(queue: Queue, tmp_path: Path) -> None:
    source = sampler(folder=str(tmp_path), save_every=1, keep=2)
    for step in range(1, 12):
        take(queue, source, step)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rollouts_10.npz", "rollouts_11.npz"]


def test_sessions_of_several_outputs_share_their_last_reward() -> None:
    keys = ["a_0_0", "a_0_1", "a_1_0", "b_0_0"]
    advantages = group_advantages(keys, [9.0, 1.0, 0.0, 0.25], norm_by_std=True)
    deviation = np.std([1.0, 0.0], ddof=1) + 1e-6
    assert advantages.tolist() == pytest.approx([0.5 / deviation, 0.5 / deviation, -0.5 / deviation, 0.25])
    assert group_advantages(keys, [9.0, 1.0, 0.0, 0.25], norm_by_std=False).tolist() == [0.5, 0.5, -0.5, 0.25]


def test_what_cannot_work_is_said_in_words(queue: Queue) -> None:
    for field, way_out in (("rollout_log_probs", "calculate_log_probs=True"), ("rm_scores", "come too late")):
        queue.held.clear()
        generate(queue, 1)
        for _, row in queue.held["train"].values():
            row.pop(field, None)
        with pytest.raises(RolloutError, match=way_out):
            sampler().sample(global_steps=1, partition_id="train", batch_size=2)
    queue.held.clear()
    generate(queue, 1, routed_experts=torch.zeros(2))
    with pytest.raises(RolloutError, match="routed_experts"):
        sampler().sample(global_steps=1, partition_id="train", batch_size=2)
    with pytest.raises(RolloutError, match="anchored"):
        sampler(preset="freshper")
    with pytest.raises(RolloutError, match=r"rato: found 0\.5"):
        sampler(rato=0.5)


def test_options_are_split_from_the_stores_settings() -> None:
    options = SamplerOptions.of({"preset": "uniform", "seed": 3, "ratio": 0.25})
    assert (options.preset, options.seed, options.settings) == ("uniform", 3, {"ratio": 0.25})
    assert options.open_store().settings.ratio == 0.25
