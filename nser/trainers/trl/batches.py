"""TRL's dictionary of tensors and rollouts: one to the other, and two dictionaries joined.

Fresh dictionaries come from `GRPOTrainer._generate_and_score_completions`: prompts [B, P] padded on the left,
completions [B, T] on the right, one advantage a row, and what the trainer's settings add.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nser.replay.errors import ArgumentError
from nser.rollouts import Rollout, Sampling, pad_batch

Tensors = dict[str, Any]

PROMPT_FILL: dict[str, float] = {"prompt_ids": 0, "prompt_mask": 0}
"""Keys [B, P] → what pads them; the tokenizer's padding takes the place of the first."""

RESPONSE_FILL: dict[str, float] = {
    "completion_ids": 0,
    "completion_mask": 0,
    "tool_mask": 1,
    "old_per_token_logps": 0,
    "ref_per_token_logps": 0,
    "sampling_per_token_logps": 0,
    "importance_sampling_ratio": 1,
    "advantages": 0,
}
"""Keys [B, T] → what pads them."""

PER_ROW = ("advantages", "importance_sampling_ratio")
"""Those of them that may have one number a row, [B] or [B, 1]."""

REQUIRED = ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "advantages", "num_items_in_batch")


@dataclass(frozen=True, slots=True)
class Note:
    """What a row's tensors do not say: raw ``reward`` (NaN: unscorable), ``task``, ``group``, ``metadata`` (JSON)."""

    reward: float
    task: str
    group: str
    metadata: Mapping[str, Any]


def check_keys(batch: Tensors) -> None:
    """Raise ``ArgumentError`` unless these are the tensors of a text-only `GRPOTrainer`."""
    if "old_logps" in batch:
        raise ArgumentError(
            "old_logps",
            "one log-probability a completion, as RLOOTrainer has it",
            "GRPOTrainer's old_per_token_logps",
            "Replay corrects token by token: use GRPOTrainer or GMPOTrainer.",
        )
    for key in REQUIRED:
        if key not in batch:
            raise ArgumentError(
                key, "no such key", "a batch of trl 1.16's GRPOTrainer", "Install the trl that was tested."
            )
    for key in batch.keys() - PROMPT_FILL.keys() - RESPONSE_FILL.keys() - set(REQUIRED):
        raise ArgumentError(
            key, "a key that a stored rollout can't fill", "tokens only", "Train without images, or without replay."
        )


def loss_mask(batch: Tensors) -> Tensor:
    """[B, T] 1 for the tokens that are trained on."""
    mask: Tensor = batch["completion_mask"]
    return mask * batch["tool_mask"] if "tool_mask" in batch else mask


def rollouts_of(
    batch: Tensors, behavior: Tensor, notes: Sequence[Note], version: int, sampling: Sampling
) -> list[tuple[int, Rollout]]:
    """(row, rollout) of every row that can be stored; ``behavior`` [B, T] are log-probs of the generating policy.

    Left out are rows without a token to train on (TRL masks truncated ones whole), those whose reward nobody could
    give, and those for whose tokens the inference engine gave no log-probs.
    """
    host = {key: batch[key].cpu().numpy() for key in ("prompt_ids", "completion_ids", "advantages")}
    prompts = batch["prompt_mask"].bool().cpu().numpy()
    lengths = batch["completion_mask"].sum(1).cpu().numpy()
    trained = loss_mask(batch).bool().cpu().numpy()
    # Some models give 1e-7 for a certain token.
    logs = behavior.float().clamp(max=0.0).cpu().numpy()
    found = []
    for row, note in enumerate(notes):
        length, mask = lengths[row], trained[row, : lengths[row]]
        logps = np.where(mask, logs[row, :length], np.float32(0.0))
        if not mask.any() or np.isnan(note.reward) or not np.isfinite(logps).all():
            continue
        advantage = host["advantages"][row]
        rollout = Rollout(
            prompt_ids=host["prompt_ids"][row][prompts[row]].astype(np.int32),
            response_ids=host["completion_ids"][row, :length].astype(np.int32),
            response_mask=mask,
            behavior_logps=logps,
            advantage=float(advantage) if advantage.ndim == 0 else advantage[:length].astype(np.float32),
            reward=note.reward,
            policy_version=(version, version),
            group=note.group,
            task=note.task,
            sampling=sampling,
            metadata=note.metadata,
        )
        found.append((row, rollout))
    return found


def tensors_of(rollouts: Sequence[Rollout], pad_id: int, device: torch.device) -> tuple[Tensors, Tensor]:
    """The required tensors of stored rollouts, with `tool_mask` if one needs it; and behaviour log-probs [n, T].

    Advantages are those of birth; `num_items_in_batch` counts these rows alone.
    """
    rows = pad_batch(rollouts, pad_id)
    batch: Tensors = {
        "prompt_ids": torch.from_numpy(rows.prompt_ids.astype(np.int64)).to(device),
        "prompt_mask": torch.from_numpy(rows.prompt_mask.astype(np.int64)).to(device),
        "completion_ids": torch.from_numpy(rows.response_ids.astype(np.int64)).to(device),
        "completion_mask": torch.from_numpy(rows.response_mask.astype(np.int64)).to(device),
        "advantages": torch.from_numpy(rows.advantages).to(device),
        "num_items_in_batch": torch.tensor(int(rows.loss_mask.sum()), device=device),
    }
    if (rows.loss_mask != rows.response_mask).any():
        # Padding counts as the model's own, as in TRL; the completion mask hides it.
        batch["tool_mask"] = torch.from_numpy((rows.loss_mask | ~rows.response_mask).astype(np.int64)).to(device)
    return batch, torch.from_numpy(rows.behavior_logps).to(device)


def join(first: Tensors, second: Tensors, pad_id: int) -> Tensors:
    """The rows of both, padded to the wider; a key that only one has is filled up with what pads it.

    `num_items_in_batch` is the first's: the caller counts over all ranks.
    """
    sides = (first, second)
    width = max(side["prompt_ids"].shape[1] for side in sides), max(side["completion_ids"].shape[1] for side in sides)
    joined: Tensors = {}
    for fills, length in ((PROMPT_FILL, width[0]), (RESPONSE_FILL, width[1])):
        for key, filler in fills.items():
            like = first.get(key, second.get(key))
            if like is None:
                continue
            fill = pad_id if key.endswith("_ids") else filler
            parts = [side[key] if key in side else _filled(like, side, fill) for side in sides]
            flat = key in PER_ROW and all(part.ndim == 1 or part.shape[1] == 1 for part in parts)
            joined[key] = torch.cat(parts if flat else [_widened(part, length, fill, key) for part in parts])
    # Last: TRL takes the number of rows from the first value.
    return joined | {"num_items_in_batch": first["num_items_in_batch"]}


def _filled(like: Tensor, side: Tensors, fill: float) -> Tensor:
    ids = side["completion_ids"]
    shape = (len(ids), *((1,) if like.ndim == 2 and like.shape[1] == 1 else ids.shape[1:] if like.ndim == 2 else ()))
    return torch.full(shape, fill, dtype=like.dtype, device=like.device)


def _widened(part: Tensor, width: int, fill: float, key: str) -> Tensor:
    """[n] or [n, 1] spread, or [n, W] padded, to [n, width]."""
    if part.ndim == 1:
        part = part.unsqueeze(1)
    if part.shape[1] == 1 and key in PER_ROW:
        return part.expand(-1, width)
    missing = width - part.shape[1]
    sides = (missing, 0) if key in PROMPT_FILL else (0, missing)
    return torch.nn.functional.pad(part, sides, value=fill)
