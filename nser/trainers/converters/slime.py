"""slime's training data and rollouts. Written after slime 0.3.1; untested against the running framework.

`RolloutManager._convert_samples_to_train_data` gives a dictionary of lists with an entry a sample: `tokens` [n] of
prompt and response, `response_lengths`, and `loss_masks` and `rollout_log_probs` over the response. For the group
estimators (grpo, gspo, cispo) an entry of `rewards` is the group's advantage already, so a replayed sample keeps that
of its birth. Where to hook in: a function of your own for `--custom-convert-samples-to-train-data-path` that builds
the dictionary of the fresh samples, then ``concat``s the replayed ones; `global_batch_size` counts both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nser.rollouts import Rollout, RolloutError, Sampling
from nser.trainers.rows import loss_weights

REQUIRED = ("tokens", "response_lengths", "rewards", "loss_masks", "rollout_log_probs")


def from_train_data(data: Mapping[str, Any], versions: Sequence[tuple[int, int]]) -> list[Rollout]:
    """The samples of a training dictionary; ``versions`` (first, last) [n] are in `Sample.weight_versions`.

    Raises ``RolloutError``.
    """
    for key in REQUIRED:
        if key not in data:
            raise RolloutError(key, "no such key", f"{', '.join(REQUIRED)}", "Let the engine return log-probs.")
    rollouts = []
    for row, (tokens, length, version) in enumerate(
        zip(data["tokens"], data["response_lengths"], versions, strict=True)
    ):
        prompt, response = np.split(np.asarray(tokens, np.int32), [len(tokens) - length])
        mask = np.asarray(data["loss_masks"][row], np.bool_)
        logps = np.asarray(data["rollout_log_probs"][row], np.float32)
        rollouts.append(
            Rollout(
                prompt_ids=prompt,
                response_ids=response,
                response_mask=mask,
                behavior_logps=np.where(mask, logps, np.float32(0)),
                advantage=float(data["rewards"][row]),
                reward=float(data.get("raw_reward", data["rewards"])[row]),
                policy_version=version,
                task=str(data["source_names"][row]) if "source_names" in data else "",
                sampling=Sampling(source="sampler"),
                metadata={"slime": {"truncated": int(data["truncated"][row])}} if "truncated" in data else {},
            )
        )
    return rollouts


def to_train_data(
    rollouts: Sequence[Rollout], like: Mapping[str, Any], weights: ArrayLike | None = None
) -> dict[str, Any]:
    """Rollouts as a dictionary with the keys of ``like``; each is a rollout (`rollout_ids`) of its own.

    ``weights`` [n] > 0 multiply the advantages. Raises ``RolloutError`` for keys that a rollout does not hold, and for
    advantages per token.
    """
    scale = np.ones(len(rollouts)) if weights is None else loss_weights(weights, len(rollouts))
    signals = []
    for row, rollout in enumerate(rollouts):
        if not isinstance(rollout.advantage, float):
            raise RolloutError("advantage", "per token", "one number", "slime takes one a sample.", f"rollout {row}")
        signals.append(rollout.advantage * float(scale[row]))
    free = 1 + max((int(number) for number in like.get("rollout_ids", [])), default=-1)
    own = {
        "tokens": [[*rollout.prompt_ids.tolist(), *rollout.response_ids.tolist()] for rollout in rollouts],
        "response_lengths": [len(rollout.response_ids) for rollout in rollouts],
        "rewards": signals,
        "raw_reward": [rollout.reward for rollout in rollouts],
        "truncated": [rollout.metadata.get("slime", {}).get("truncated", 0) for rollout in rollouts],
        "sample_indices": [-1] * len(rollouts),
        "rollout_ids": list(range(free, free + len(rollouts))),
        "loss_masks": [rollout.response_mask.astype(int).tolist() for rollout in rollouts],
        "rollout_mask_sums": [int(rollout.response_mask.sum()) for rollout in rollouts],
        "rollout_log_probs": [rollout.behavior_logps.tolist() for rollout in rollouts],
        "source_names": [rollout.task for rollout in rollouts],
    }
    for key in like:
        if key not in own:
            raise RolloutError(key, "a key of the batch", "tokens only", "Take it out, or train without replay.")
    return {key: own[key] for key in like}


def concat(batches: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Several training dictionaries of the same keys as one. Raises ``RolloutError``."""
    keys = {frozenset(batch) for batch in batches}
    if len(keys) != 1:
        raise RolloutError("batches", f"{len(keys)} sets of keys", "the same keys in all", "Convert with like=.")
    return {key: [entry for batch in batches for entry in batch[key]] for key in batches[0]}
