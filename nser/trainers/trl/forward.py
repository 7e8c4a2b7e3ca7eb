"""Log-probabilities of a batch under the policy or the reference of a TRL trainer, without gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from trl.models.utils import disable_gradient_checkpointing
from trl.trainer.utils import use_adapter

from nser.trainers.trl.batches import Tensors


def policy_logps(trainer: Any, batch: Tensors) -> Tensor:
    """[B, T] log-probabilities of the completions under the present policy, at the trainer's temperature."""
    return _logps(trainer, trainer.model, batch)


def reference_logps(trainer: Any, batch: Tensors) -> Tensor:
    """[B, T] the same under the reference: a model of its own, or the policy without its adapter."""
    if trainer.ref_model is not None:
        return _logps(trainer, trainer.ref_model, batch)
    model = trainer.accelerator.unwrap_model(trainer.model)
    with use_adapter(model, adapter_name="ref" if "ref" in model.peft_config else None):
        return _logps(trainer, trainer.model, batch)


def _logps(trainer: Any, model: Any, batch: Tensors) -> Tensor:
    tokens = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)  # [B, P + T]
    attended = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
    with torch.no_grad(), disable_gradient_checkpointing(trainer.model, trainer.args.gradient_checkpointing_kwargs):
        logps: Tensor = trainer._get_per_token_logps_and_entropies(
            model,
            tokens,
            attended,
            batch["completion_ids"].shape[1],
            batch_size=trainer.args.per_device_train_batch_size,
        )[0]
    return logps
