"""Trainers for tests: "emit the given digit" in few steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from trl import GRPOConfig

from nser.rollouts import StoreSettings
from nser.trainers import digits
from nser.trainers.trl import ReplayGRPOTrainer, RolloutReplay

Replay = RolloutReplay | StoreSettings | str

PLAIN: dict[str, Any] = {
    "per_device_train_batch_size": 8,
    "num_generations": 4,
    "max_completion_length": digits.LENGTH,
    "learning_rate": 1e-3,
    "lr_scheduler_type": "constant",
    "gradient_checkpointing": False,
    "save_strategy": "no",
    "logging_strategy": "no",
    "use_cpu": True,
    "bf16": False,
    "report_to": [],
    "disable_tqdm": True,
}


def graded(completion_ids: list[list[int]], **_: Any) -> list[float]:
    """A reward that hardly ever ties, so that every rollout teaches something: the mean token id, scaled."""
    return [sum(ids) / len(ids) / len(digits.WORDS) + 0.01 * ids[0] for ids in completion_ids]


def trainer(
    output: Path,
    replay: Replay = "nser",
    kind: Any = ReplayGRPOTrainer,
    model: Any = None,
    reward: Any = graded,
    config: Any = GRPOConfig,
    **settings: Any,
) -> Any:
    """A trainer of the given kind; ``settings`` are fields of its configuration."""
    return kind(
        digits.model() if model is None else model,
        reward,
        args=config(str(output), **(PLAIN | settings)),
        train_dataset=digits.prompts(40),
        processing_class=digits.tokenizer(),
        replay=replay,
    )


def record_batches(host: Any) -> list[dict[str, Any]]:
    """From now on, every generation batch that the host trains on."""
    batches: list[dict[str, Any]] = []
    generate = host._generate_and_score_completions

    def recorded(inputs: Any) -> Any:
        batch = generate(inputs)
        batches.append({key: value.clone() for key, value in batch.items() if isinstance(value, torch.Tensor)})
        return batch

    host._generate_and_score_completions = recorded
    return batches


def record_draws(host: Any) -> list[Any]:
    """From now on, what the host's store hands out, as it was drawn."""
    drawn: list[Any] = []
    draw = host.rollout_store.draw

    def recorded(count: int) -> Any:
        drawn.append(draw(count))
        return drawn[-1]

    host.rollout_store.draw = recorded
    return drawn
