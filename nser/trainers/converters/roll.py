"""ROLL's `DataProto` and rollouts. Written after ROLL's source of August 2026; untested against the running framework.

`input_ids`, `attention_mask`, `response_mask` [B, L] are padded on the right and aligned with tokens; `infer_logprobs`,
`old_log_probs`, `advantages`, `returns` and `token_level_rewards` [B, L − 1] are shifted: place t is about token t + 1.
`response_level_rewards` [B].

Where to hook in: before the actors train (`ActorWorker.train_step`). Loss weights go into the advantages, or into the
[B] result of an overridden `ActorWorker.compute_sample_weights`. `enable_old_logprobs_recompute` gives the proximal
policy's `old_log_probs`, and `train_infer_correction` the importance weight against `infer_logprobs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from nser.rollouts import Rollout, RolloutError, Sampling
from nser.trainers.rows import Flat, joined, loss_weights, split, widen

REQUIRED = ("input_ids", "attention_mask", "response_mask", "advantages", "response_level_rewards")
SHIFTED = ("infer_logprobs", "old_log_probs", "advantages", "returns", "token_level_rewards", "raw_advantages")


def from_batch(batch: Any, version: int) -> list[Rollout]:
    """The rows of a batch whose advantages are computed; groups by `prompt_id`, tasks by `domain`.

    Raises ``RolloutError``.
    """
    keys = set(batch.batch.keys())
    for key in REQUIRED:
        if key not in keys:
            raise RolloutError(key, "no such key", f"{', '.join(REQUIRED)}", "Convert after compute_advantage.")
    engine = "infer_logprobs" in keys
    logps = batch.batch["infer_logprobs" if engine else "old_log_probs"].float().cpu().numpy()
    columns = {key: batch.batch[key].float().cpu().numpy() for key in REQUIRED}
    ids = batch.batch["input_ids"].cpu().numpy()
    others = batch.non_tensor_batch
    rollouts = []
    for row, stop in enumerate(columns["attention_mask"].sum(1).astype(int).tolist()):
        aligned = (np.append(np.float32(0), values[row, : stop - 1]) for values in (logps, columns["advantages"]))
        flat = Flat(ids[row, :stop].astype(np.int32), columns["response_mask"][row, :stop].astype(np.bool_), *aligned)
        rollouts.append(
            split(
                flat,
                reward=float(columns["response_level_rewards"][row]),
                policy_version=(version, version),
                group=str(batch.batch["prompt_id"][row].item()) if "prompt_id" in keys else "",
                task=str(others["domain"][row]) if "domain" in others else "",
                sampling=Sampling(source="sampler" if engine else "trainer"),
            )
        )
    return rollouts


def to_tensors(rollouts: Sequence[Rollout], like: Any, pad_id: int) -> dict[str, torch.Tensor]:
    """The tensors of rollouts with the types and at least the width of ``like``, for `DataProto.from_dict`.

    Of the keys of ``like`` those that a rollout holds: `prompts` and `responses`, which training does not read, and
    what takes another forward pass are left out. Raises ``RolloutError``.
    """
    if not rollouts:
        raise RolloutError("rollouts", "none", "at least one rollout", "Skip the step's replay when nothing is drawn.")
    flats = [joined(rollout) for rollout in rollouts]
    width = max(like.batch["input_ids"].shape[1], *(len(flat.ids) for flat in flats))
    own: dict[str, NDArray] = {
        key: np.zeros((len(flats), width), np.float32)
        for key in ("attention_mask", "response_mask", "prompt_mask", "logps", "advantages", "rewards")
    }
    own["input_ids"] = np.full((len(flats), width), pad_id, np.int64)
    for row, (rollout, flat) in enumerate(zip(rollouts, flats, strict=True)):
        stop = len(flat.ids)
        own["input_ids"][row, :stop] = flat.ids
        own["attention_mask"][row, :stop] = 1
        own["response_mask"][row, :stop] = flat.acted
        own["prompt_mask"][row, : len(rollout.prompt_ids)] = 1
        own["logps"][row, :stop] = flat.logps
        own["advantages"][row, :stop] = flat.advantages
        own["rewards"][row, stop - 1] = rollout.reward
    shifted = {name: own.pop(name)[:, 1:] for name in ("logps", "advantages", "rewards")}
    own["position_ids"] = np.maximum(np.cumsum(own["attention_mask"], 1) - 1, 0)
    own["response_level_rewards"] = np.array([rollout.reward for rollout in rollouts], np.float32)
    own |= dict.fromkeys(("infer_logprobs", "old_log_probs"), shifted["logps"])
    own |= dict.fromkeys(("advantages", "returns", "raw_advantages"), shifted["advantages"])
    own["token_level_rewards"] = shifted["rewards"]
    return {key: torch.from_numpy(own[key].copy()).to(tensor.dtype) for key, tensor in like.batch.items() if key in own}


def concat(tensors: Sequence[dict[str, torch.Tensor]], pad_id: int) -> dict[str, torch.Tensor]:
    """Tensors of several batches, of the keys that all have, padded on the right to the longest."""
    width = max(part["input_ids"].shape[1] for part in tensors)
    keys = [key for key in tensors[0] if all(key in part for part in tensors)]
    found = {}
    for key in keys:
        parts = [part[key] for part in tensors]
        if parts[0].ndim == 2:
            target = width - 1 if key in SHIFTED else width
            parts = [widen(part, target, "right", pad_id if key == "input_ids" else 0) for part in parts]
        found[key] = torch.cat(parts)
    return found


def apply_weights(tensors: dict[str, torch.Tensor], weights: ArrayLike) -> dict[str, torch.Tensor]:
    """The tensors with advantages times ``weights`` [B] > 0. Raises ``RolloutError``."""
    scale = torch.from_numpy(loss_weights(weights, len(tensors["input_ids"]))).unsqueeze(1)
    return tensors | {"advantages": tensors["advantages"] * scale}
