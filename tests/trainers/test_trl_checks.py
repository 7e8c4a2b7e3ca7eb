"""What can't be replayed is refused at the first batch, in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("trl", reason="needs the extra: pip install nser[trl]")

from nser.replay import ArgumentError
from nser.trainers import digits
from nser.trainers.trl import RolloutReplayMixin
from tests.trainers.trl_host import trainer


def gpt2(**overrides: Any) -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    settings = {"vocab_size": len(digits.WORDS), "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 32}
    quiet = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "eos_token_id": 1, "pad_token_id": 0}
    return GPT2LMHeadModel(GPT2Config(**(settings | quiet | {"bos_token_id": None} | overrides)))


def test_absolute_positions_are_refused(tmp_path: Path) -> None:
    host = trainer(tmp_path, model=gpt2(), max_steps=1)
    with pytest.raises(ArgumentError, match=r"move by .* nats behind 5 more padding tokens.*rotary") as caught:
        host.train()
    assert caught.value.argument == "model"


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (lambda: gpt2(resid_pdrop=0.1), "p = 0.1"),
        (lambda: digits.model(attention_dropout=0.2), "attention_dropout = 0.2"),
    ],
)
def test_active_dropout_is_refused_and_named(tmp_path: Path, model: Any, named: str) -> None:
    host = trainer(tmp_path, model=model(), max_steps=1)
    with pytest.raises(ArgumentError, match=r"differ by .* nats when asked twice") as caught:
        host.train()
    assert caught.value.argument == "dropout"
    assert named in str(caught.value)


def test_an_adapter_with_dropout_is_refused(tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model

    # A fresh adapter adds nothing, dropout or not; one that has learnt something does.
    adapted = get_peft_model(digits.model(), LoraConfig(target_modules=["q_proj"], r=2, lora_dropout=0.5))
    for name, weight in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight)
    with pytest.raises(ArgumentError, match="lora_dropout"):
        trainer(tmp_path, model=adapted, max_steps=1).train()


def test_nothing_is_asked_of_a_model_that_does_not_replay(tmp_path: Path) -> None:
    trainer(tmp_path, model=gpt2(), replay="none", max_steps=1).train()


def test_rloo_is_refused_by_its_key(tmp_path: Path) -> None:
    from trl import RLOOConfig, RLOOTrainer

    class Mixed(RolloutReplayMixin, RLOOTrainer):
        pass

    host = trainer(tmp_path, kind=Mixed, config=RLOOConfig, beta=0.0, max_steps=1)
    with pytest.raises(ArgumentError, match=r"old_logps.*RLOOTrainer.*use GRPOTrainer"):
        host.train()
