"""Rollouts as padded arrays and back to parts: what converters of every trainer build on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nser.rollouts.errors import RolloutError
from nser.rollouts.record import Rollout


@dataclass(frozen=True, eq=False)
class Batch:
    """``B`` rollouts, prompts padded on the left to ``P``, responses on the right to ``T``.

    - ``prompt_ids`` int32 [B, P], ``prompt_mask`` bool [B, P] True for real tokens;
    - ``response_ids`` int32 [B, T], ``response_mask`` bool [B, T] True for real tokens;
    - ``loss_mask`` bool [B, T] True for tokens that are trained on; never more than ``response_mask``;
    - ``behavior_logps`` float32 [B, T], 0 at padding;
    - ``advantages`` float32 [B], or [B, T] as soon as one rollout has them per token, 0 at padding;
    - ``rewards`` float32 [B]; ``rule_scores`` float32 [B] in [0, 1]; ``versions`` int64 [B, 2]; ``uses`` int64 [B].
    """

    prompt_ids: NDArray[np.int32]
    prompt_mask: NDArray[np.bool_]
    response_ids: NDArray[np.int32]
    response_mask: NDArray[np.bool_]
    loss_mask: NDArray[np.bool_]
    behavior_logps: NDArray[np.float32]
    advantages: NDArray[np.float32]
    rewards: NDArray[np.float32]
    rule_scores: NDArray[np.float32]
    versions: NDArray[np.int64]
    uses: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.prompt_ids)


def pad_batch(
    rollouts: Sequence[Rollout], pad_id: int, prompt_width: int | None = None, response_width: int | None = None
) -> Batch:
    """Collate ``rollouts``; widths are those of the longest, or as given. Raises ``RolloutError`` if one is longer."""
    rows = len(rollouts)
    prompt = _width("prompt_width", prompt_width, (len(rollout.prompt_ids) for rollout in rollouts))
    width = _width("response_width", response_width, (len(rollout.response_ids) for rollout in rollouts))
    per_token = any(not isinstance(rollout.advantage, float) for rollout in rollouts)
    batch = Batch(
        prompt_ids=np.full((rows, prompt), pad_id, np.int32),
        prompt_mask=np.zeros((rows, prompt), np.bool_),
        response_ids=np.full((rows, width), pad_id, np.int32),
        response_mask=np.zeros((rows, width), np.bool_),
        loss_mask=np.zeros((rows, width), np.bool_),
        behavior_logps=np.zeros((rows, width), np.float32),
        advantages=np.zeros((rows, width) if per_token else rows, np.float32),
        rewards=np.array([rollout.reward for rollout in rollouts], np.float32),
        rule_scores=np.array([rollout.rule_score for rollout in rollouts], np.float32),
        versions=np.array([rollout.policy_version for rollout in rollouts], np.int64).reshape(rows, 2),
        uses=np.array([rollout.uses for rollout in rollouts], np.int64),
    )
    for row, rollout in enumerate(rollouts):
        start, stop = prompt - len(rollout.prompt_ids), len(rollout.response_ids)
        batch.prompt_ids[row, start:] = rollout.prompt_ids
        batch.prompt_mask[row, start:] = True
        batch.response_ids[row, :stop] = rollout.response_ids
        batch.response_mask[row, :stop] = True
        batch.loss_mask[row, :stop] = rollout.response_mask
        batch.behavior_logps[row, :stop] = rollout.behavior_logps
        if per_token:
            batch.advantages[row, :stop] = rollout.advantage
        else:
            batch.advantages[row] = rollout.advantage
    return batch


def concat(batches: Sequence[Batch], pad_id: int) -> Batch:
    """Several batches as one, all padded to the widest; raises ``RolloutError`` without any."""
    if not batches:
        raise RolloutError("batches", "none", "at least one", "Leave the call out.")
    prompt = max(batch.prompt_ids.shape[1] for batch in batches)
    width = max(batch.response_ids.shape[1] for batch in batches)
    per_token = any(batch.advantages.ndim == 2 for batch in batches)
    parts = [_widened(batch, prompt, width, pad_id, per_token) for batch in batches]
    return Batch(**{item.name: np.concatenate([getattr(part, item.name) for part in parts]) for item in fields(Batch)})


def apply_weights(batch: Batch, weights: ArrayLike) -> Batch:
    """The batch with advantages times ``weights`` (B,) > 0: an exact weight of each rollout's policy loss.

    It does not touch KL or entropy terms. Raises ``RolloutError``.
    """
    factors = np.asarray(weights, np.float32)
    if factors.shape != (len(batch),):
        raise RolloutError("weights", f"the shape {factors.shape}", f"({len(batch)},)", "Pass one for each rollout.")
    wrong = ~((factors > 0) & np.isfinite(factors))
    if wrong.any():
        at = int(wrong.argmax())
        raise RolloutError(
            f"weights[{at}]", float(factors[at]), "a finite number > 0", "Leave the rollout out instead."
        )
    shaped = factors[:, None] if batch.advantages.ndim == 2 else factors
    return replace(batch, advantages=batch.advantages * shaped)


def _width(name: str, given: int | None, lengths: Iterable[int]) -> int:
    longest = max(lengths, default=0)
    if given is not None and given < longest:
        raise RolloutError(name, given, f"at least {longest}, the longest", "Leave it out, or leave that rollout out.")
    return longest if given is None else given


def _widened(batch: Batch, prompt: int, width: int, pad_id: int, per_token: bool) -> Batch:
    """The batch padded to these widths, with advantages per token if asked for."""
    left = ((0, 0), (prompt - batch.prompt_ids.shape[1], 0))
    right = ((0, 0), (0, width - batch.response_ids.shape[1]))
    advantages = batch.advantages
    if per_token and advantages.ndim == 1:
        advantages = advantages[:, None] * batch.response_mask
    return replace(
        batch,
        prompt_ids=np.pad(batch.prompt_ids, left, constant_values=pad_id),
        prompt_mask=np.pad(batch.prompt_mask, left),
        response_ids=np.pad(batch.response_ids, right, constant_values=pad_id),
        response_mask=np.pad(batch.response_mask, right),
        loss_mask=np.pad(batch.loss_mask, right),
        behavior_logps=np.pad(batch.behavior_logps, right),
        advantages=np.pad(advantages, right) if per_token else advantages,
    )
