"""Rollouts as padded arrays and back to parts: what converters of every trainer build on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
    raise NotImplementedError


def concat(batches: Sequence[Batch], pad_id: int) -> Batch:
    """Several batches as one, all padded to the widest; raises ``RolloutError`` without any."""
    raise NotImplementedError


def apply_weights(batch: Batch, weights: ArrayLike) -> Batch:
    """The batch with advantages times ``weights`` (B,) > 0: an exact weight of each rollout's policy loss.

    It does not touch KL or entropy terms. Raises ``RolloutError``.
    """
    raise NotImplementedError
