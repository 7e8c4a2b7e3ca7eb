"""verl's `DataProto` and rollouts: one to the other, two batches joined, weights applied.

Tried with the real `verl.protocol.DataProto` of verl 0.9.1. What a batch looks like before `_update_actor`, with
prompts padded on the left to P and responses on the right to T::

    prompts [B, P]   responses [B, T]   input_ids, attention_mask, position_ids [B, P + T]
    response_mask [B, T]      1 for tokens that are trained on, 0 for tools, environments and padding
    advantages, returns, old_log_probs, rollout_log_probs, ref_log_prob, token_level_* [B, T]

Nothing of verl is imported here: a batch brings its own class along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from nser.rollouts import Rollout, RolloutError, Sampling, pad_batch
from nser.trainers.rows import folded, jsonable, loss_weights, spread, widen

BESIDE = "verl"  # metadata key of the non-tensor fields
SPAN = ("min_global_steps", "max_global_steps")
WHOLE = ("input_ids", "attention_mask", "position_ids")
REWARDS = ("token_level_scores", "rm_scores", "token_level_rewards")
REQUIRED = ("prompts", "responses", "attention_mask", "response_mask", "advantages")
WAY_OUT = "Convert the batch that goes into _update_actor."


def from_batch(batch: Any, version: int = 0, sampling: Sampling | None = None) -> list[Rollout]:
    """The rows of a `DataProto` whose advantages are computed, as rollouts, padding cut off.

    - the behaviour policy's log-probs are `rollout_log_probs` (the inference engine's) or, without them,
      `old_log_probs` (the trainer's, before this step's first update);
    - versions are `min_global_steps` and `max_global_steps` where verl wrote them, else ``version``. verl counts
      weight updates: at the trainer's `global_steps` the version is `global_steps` − 1;
    - the reward is the sum of `token_level_scores`, the group is `uid`, the task `data_source`;
    - all other non-tensor fields go into ``metadata["verl"]``, and must be JSON.

    ``sampling``: how the responses were sampled, by default at the temperature that `meta_info` names; its source is
    set by the log-probs.
    Raises ``RolloutError``.
    """
    tensors = {key: batch.batch[key].detach().cpu().numpy() for key in list(batch.batch.keys()) if key in _READ}
    for key in REQUIRED:
        if key not in tensors:
            raise RolloutError(key, "no such key", f"the keys {', '.join(REQUIRED)}", WAY_OUT)
    logps, source = _behavior(tensors)
    sampling = sampling or Sampling(float(batch.meta_info.get("temperature", 1.0)))
    how = Sampling(sampling.temperature, sampling.top_p, sampling.top_k, source)
    lengths = _lengths(tensors)
    beside = [_beside(batch, row) for row in range(len(batch))]
    rollouts = []
    for row, (start, stop) in enumerate(lengths):
        mask = tensors["response_mask"][row, :stop].astype(np.bool_)
        advantages = tensors["advantages"][row, :stop].astype(np.float32)
        fields = beside[row]
        first, last = (_step(fields, name, version) for name in SPAN)
        rollouts.append(
            Rollout(
                prompt_ids=tensors["prompts"][row, start:].astype(np.int32),
                response_ids=tensors["responses"][row, :stop].astype(np.int32),
                response_mask=mask,
                behavior_logps=logps[row, :stop].astype(np.float32),
                advantage=folded(advantages, mask),
                reward=_reward(tensors, row),
                policy_version=(first, last),
                group=str(fields.pop("uid", "")),
                task=str(fields.pop("data_source", "")),
                sampling=how,
                metadata={BESIDE: fields} if fields else {},
            )
        )
    return rollouts


def to_batch(rollouts: Sequence[Rollout], like: Any, pad_id: int = 0) -> Any:
    """Rollouts as a `DataProto` with the keys, types, device and at least the widths of ``like``.

    Exact inverse of ``from_batch``, apart from what a rollout does not hold: `old_log_probs` become the behaviour
    policy's, a reward stands at the last token of its response, and keys that take another forward pass
    (`ref_log_prob`, `values`, …) are left out; compute them, or take them out of the other batch, before ``concat``.

    ``pad_id``: token at padding, where ``like`` has none to look at. Raises ``RolloutError``.
    """
    if not rollouts:
        raise RolloutError("rollouts", "none", "at least one rollout", "Skip the step's replay when nothing is drawn.")
    columns = _columns(rollouts, like, pad_id)
    tensors = {
        key: torch.from_numpy(columns[key]).to(device=present.device, dtype=present.dtype)
        for key, present in like.batch.items()
        if key in columns
    }
    others = {key: _others(rollouts, key, values) for key, values in like.non_tensor_batch.items()}
    meta = dict(like.meta_info)
    for key, value in meta.items():
        if isinstance(value, list) and value and len(value) == len(like):
            if key != "global_token_num":
                raise RolloutError(
                    f"meta_info[{key!r}]", "a list with an entry a row", "values of the whole batch", _OUT
                )
            meta[key] = columns["attention_mask"].sum(1).tolist()
    return type(like).from_dict(tensors=tensors, non_tensors=others, meta_info=meta)


def concat(batches: Sequence[Any], pad_id: int = 0) -> Any:
    """Several `DataProto`s as one, all padded to the widest: `DataProto.concat` refuses differing widths.

    All have the same keys; entries a row in `meta_info` are joined, all else there is the first one's. Raises
    ``RolloutError``.
    """
    if not batches:
        raise RolloutError("batches", "none", "at least one batch", "Pass the fresh batch first.")
    first = batches[0]
    for kind in ("batch", "non_tensor_batch"):
        names = {frozenset(getattr(batch, kind).keys()) for batch in batches}
        if len(names) > 1:
            odd = sorted(frozenset.union(*names) - frozenset.intersection(*names))
            raise RolloutError(kind, f"{', '.join(odd)} in some batches only", "the same keys in all", _COMPUTE)
    prompt, response = (max(batch.batch[key].shape[1] for batch in batches) for key in ("prompts", "responses"))
    parts = [_widened(batch, prompt, response, pad_id) for batch in batches]
    tensors = {key: torch.cat([part[key] for part in parts]) for key in list(first.batch.keys())}
    others = {key: np.concatenate([batch.non_tensor_batch[key] for batch in batches]) for key in first.non_tensor_batch}
    meta = dict(first.meta_info)
    for key, value in meta.items():
        lists = [batch.meta_info.get(key) for batch in batches]
        if isinstance(value, list) and value and len(value) == len(first):
            meta[key] = [entry for entries in lists for entry in entries or ()]
            if len(meta[key]) != sum(map(len, batches)):
                raise RolloutError(f"meta_info[{key!r}]", len(meta[key]), f"{sum(map(len, batches))} entries", _OUT)
    return type(first).from_dict(tensors=tensors, non_tensors=others, meta_info=meta)


def apply_weights(batch: Any, weights: ArrayLike, native: bool = False) -> Any:
    """The batch with each row's policy loss weighted by ``weights`` [B] > 0; KL and entropy terms stay as they are.

    By default the advantages are multiplied. ``native`` multiplies verl's own `rollout_is_weights` instead, which
    its policy losses apply after clipping; the two are the same for losses linear in the advantage, as the clipped
    one is. Raises ``RolloutError``.
    """
    values = loss_weights(weights, len(batch))
    key = "rollout_is_weights" if native else "advantages"
    mask = batch.batch["response_mask"]
    present = batch.batch[key] if key in list(batch.batch.keys()) else mask.to(torch.float32)
    tensors = dict(batch.batch.items())
    tensors[key] = present * torch.from_numpy(values).to(present.device).unsqueeze(1)  # [B, T] · [B, 1]
    return type(batch).from_dict(
        tensors=tensors, non_tensors=dict(batch.non_tensor_batch), meta_info=dict(batch.meta_info)
    )


_READ = {*REQUIRED, *REWARDS, "rollout_log_probs", "old_log_probs"}
_OUT = "Take it out of meta_info before the batches are joined."
_COMPUTE = "Compute them for the other batches, or select the keys that all have."


def _behavior(tensors: Mapping[str, NDArray]) -> tuple[NDArray, Any]:
    for key, source in (("rollout_log_probs", "sampler"), ("old_log_probs", "trainer")):
        if key in tensors:
            return tensors[key], source
    raise RolloutError(
        "rollout_log_probs",
        "no such key, nor old_log_probs",
        "log-probs of the policy that generated",
        "Set actor_rollout_ref.rollout.calculate_log_probs=True.",
    )


def _lengths(tensors: Mapping[str, NDArray]) -> list[tuple[int, int]]:
    """(first token of the prompt, one past the last of the response) of every row."""
    width = tensors["prompts"].shape[1]
    real = tensors["attention_mask"].astype(np.bool_)
    left, right = real[:, :width], real[:, width:]
    stops = right.sum(1)
    starts = width - left.sum(1)
    columns = np.arange(width)
    if (left != (columns >= starts[:, None])).any() or (right != (np.arange(right.shape[1]) < stops[:, None])).any():
        raise RolloutError("attention_mask", "holes", "prompts padded left, responses padded right", WAY_OUT)
    return list(zip(starts.tolist(), stops.tolist(), strict=True))


def _reward(tensors: Mapping[str, NDArray], row: int) -> float:
    for key in REWARDS:
        if key in tensors:
            return float(tensors[key][row].sum(dtype=np.float64))
    raise RolloutError(
        "token_level_scores", "no such key", f"one of {', '.join(REWARDS)}", "Convert after rewards are computed."
    )


def _beside(batch: Any, row: int) -> dict[str, Any]:
    fields = {}
    for key, values in batch.non_tensor_batch.items():
        try:
            fields[key] = jsonable(values[row])
        except TypeError as error:
            raise RolloutError(
                key, str(error), "what JSON can say", "Leave rows with images out of the store.", f"row {row}"
            ) from error
    return fields


def _step(fields: dict[str, Any], name: str, version: int) -> int:
    value = fields.pop(name, None)
    return version if value is None else int(value)


def _columns(rollouts: Sequence[Rollout], like: Any, pad_id: int) -> dict[str, NDArray]:
    """Every key that rollouts can fill, [n, …]."""
    prompt = max(like.batch["prompts"].shape[1], *(len(rollout.prompt_ids) for rollout in rollouts))
    response = max(like.batch["responses"].shape[1], *(len(rollout.response_ids) for rollout in rollouts))
    padded = pad_batch(rollouts, _pad_id(like, pad_id), prompt, response)
    attention = np.concatenate((padded.prompt_mask, padded.response_mask), 1)
    advantages, rewards = (np.zeros((len(rollouts), response), np.float32) for _ in range(2))
    for row, rollout in enumerate(rollouts):
        advantages[row, : len(rollout.response_ids)] = spread(rollout)
        rewards[row, max(len(rollout.response_ids) - 1, 0)] = rollout.reward
    logps = padded.behavior_logps
    columns = {
        "prompts": padded.prompt_ids,
        "responses": padded.response_ids,
        "input_ids": np.concatenate((padded.prompt_ids, padded.response_ids), 1),
        "attention_mask": attention,
        # As verl counts them: 0 at left padding, standing still at right padding.
        "position_ids": np.maximum(np.cumsum(attention, 1) - 1, 0),
        "rollout_is_weights": padded.loss_mask,
    }
    columns |= dict.fromkeys(("response_mask", "loss_mask"), padded.loss_mask)
    columns |= dict.fromkeys(("rollout_log_probs", "old_log_probs"), logps)
    columns |= dict.fromkeys(("advantages", "returns"), advantages)
    return columns | dict.fromkeys(REWARDS, rewards)


def _others(rollouts: Sequence[Rollout], key: str, present: NDArray) -> NDArray:
    values = np.empty(len(rollouts), object)
    for row, rollout in enumerate(rollouts):
        own = {
            "uid": rollout.group,
            "data_source": rollout.task,
            **dict(zip(SPAN, rollout.policy_version, strict=True)),
        }
        values[row] = own[key] if key in own else rollout.metadata.get(BESIDE, {}).get(key)
    numbers = present.dtype != object and all(value is not None for value in values)
    return values.astype(present.dtype) if numbers else values


def _pad_id(batch: Any, default: int) -> int:
    if "input_ids" not in list(batch.batch.keys()):
        return default
    ids, empty = batch.batch["input_ids"], batch.batch["attention_mask"] == 0
    return int(ids[empty][0]) if bool(empty.any()) else default


def _widened(batch: Any, prompt: int, response: int, pad_id: int) -> dict[str, Tensor]:
    """The tensors of a batch with prompts [B, prompt] and responses [B, response]."""
    pad = _pad_id(batch, pad_id)
    old = batch.batch["prompts"].shape[1], batch.batch["responses"].shape[1]
    tensors: dict[str, Tensor] = {}
    for key, tensor in batch.batch.items():
        fill = pad if key in ("prompts", "responses", "input_ids") else 0
        if key == "prompts":
            tensors[key] = widen(tensor, prompt, "left", fill)
        elif key in WHOLE:
            if tensor.ndim != 2:
                raise RolloutError(key, f"{tensor.ndim} dimensions", "[B, P + T]", "Leave images out of replay.")
            left, right = tensor.split(old, 1)
            wide = widen(right, response, "right", fill)
            if key == "position_ids" and response > old[1]:
                wide[:, old[1] :] = right[:, -1:]
            tensors[key] = torch.cat((widen(left, prompt, "left", fill), wide), 1)
        elif tensor.ndim == 2 and tensor.shape[1] == old[1]:
            tensors[key] = widen(tensor, response, "right", fill)
        else:
            tensors[key] = tensor
    return tensors
