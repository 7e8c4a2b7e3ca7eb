"""Made-up batches of verl's real `DataProto`, as they are before `_update_actor`, written out independently."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

PAD = 1


def batch(rows: int = 3, prompt: int = 4, response: int = 5, seed: int = 0, **extra: torch.Tensor) -> Any:
    """Rows of random lengths; a tool's token in the middle of every response of more than two."""
    from verl.protocol import DataProto

    rng = torch.Generator().manual_seed(seed)
    before = torch.randint(1, prompt + 1, (rows,), generator=rng)
    after = torch.randint(1, response + 1, (rows,), generator=rng)
    left = torch.arange(prompt) >= (prompt - before).unsqueeze(1)  # [B, P]
    right = torch.arange(response) < after.unsqueeze(1)  # [B, T]
    attention = torch.cat((left, right), 1).long()
    ids = torch.where(attention == 1, torch.randint(5, 99, attention.shape, generator=rng), PAD)
    mask = right.long()
    mask[:, 1:2] *= (after <= 2).unsqueeze(1)
    rewards = torch.zeros(rows, response)
    rewards[torch.arange(rows), after - 1] = torch.rand(rows, generator=rng)
    advantages = torch.randn(rows, 1, generator=rng) * mask
    tensors = {
        "prompts": ids[:, :prompt],
        "responses": ids[:, prompt:],
        "input_ids": ids,
        "attention_mask": attention,
        "position_ids": (attention.cumsum(1) - 1).clip(min=0),
        "response_mask": mask,
        "old_log_probs": -torch.rand(rows, response, generator=rng) * mask,
        "advantages": advantages,
        "returns": advantages,
        "token_level_scores": rewards,
        "token_level_rewards": rewards,
    }
    others = {
        "uid": np.array([f"group {row // 2}" for row in range(rows)], object),
        "data_source": np.array(["sums"] * rows, object),
        "extra_info": np.array([{"row": row, "spans": [1, 2]} for row in range(rows)], object),
        "__num_turns__": np.arange(rows),
    }
    meta = {"global_token_num": attention.sum(1).tolist(), "temperature": 1.0, "images_seqlens": []}
    return DataProto.from_dict(tensors=tensors | extra, non_tensors=others, meta_info=meta)
