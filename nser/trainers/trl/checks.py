"""Models that replay can't serve, found by trying them once on the first batch, not by their names."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nser.replay.errors import ArgumentError
from nser.trainers.trl.batches import PROMPT_FILL, Tensors, loss_mask
from nser.trainers.trl.forward import policy_logps

TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-3}
HALF_TOLERANCE = 0.1
"""Nats. Rounding alone moves log-probabilities of half precision by some hundredths."""

EXTRA_PADDING = 5


def check_model(trainer: Any, batch: Tensors) -> None:
    """Raise ``ArgumentError`` unless the policy says the same of a rollout twice, and behind more padding.

    Active dropout makes every log-probability a random number. And TRL passes no position ids, so a model that counts
    positions absolutely (GPT-2) sees other positions whenever a replayed row meets another longest prompt. Either
    turns the ratio to the stored log-probability into noise.
    """
    rows: Tensors = {key: value[:2] for key, value in batch.items() if value.ndim > 0}
    mask = loss_mask(rows).bool()
    first = policy_logps(trainer, rows)
    tolerance = TOLERANCE.get(next(trainer.model.parameters()).dtype, HALF_TOLERANCE)
    repeated = _difference(first, policy_logps(trainer, rows), mask)
    if repeated > tolerance:
        raise ArgumentError(
            "dropout",
            f"log-probabilities that differ by {repeated:.2g} nats when asked twice",
            "a policy without active dropout",
            f"Set the dropout probabilities of the model and of the adapter to 0 ({_active(trainer.model)}).",
        )
    shifted = rows | {
        key: torch.nn.functional.pad(rows[key], (EXTRA_PADDING, 0), value=_padding(trainer, key)) for key in PROMPT_FILL
    }
    moved = _difference(first, policy_logps(trainer, shifted), mask)
    if moved > tolerance:
        raise ArgumentError(
            "model",
            f"log-probabilities that move by {moved:.2g} nats behind {EXTRA_PADDING} more padding tokens",
            "relative (rotary) positions",
            "Models with absolute positions, such as GPT-2, can't replay inside TRL, which passes no position ids.",
        )


def _difference(one: Tensor, other: Tensor, mask: Tensor) -> float:
    return (one - other).abs()[mask].mean().item() if mask.any() else 0.0


def _padding(trainer: Any, key: str) -> float:
    return float(trainer._tokenizer.pad_token_id) if key.endswith("_ids") else 0.0


def _active(model: Any) -> str:
    """The first module that drops something, for the message."""
    for name, module in model.named_modules():
        rates = {"p": getattr(module, "p", 0)} if isinstance(module, torch.nn.Dropout) else vars(module)
        for field, rate in rates.items():
            if (field == "p" or "dropout" in field) and isinstance(rate, float) and rate > 0:
                return f"{name}: {field} = {rate:g}"
    return "no module names one"
