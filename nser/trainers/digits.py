"""A world for trying LLM trainers without a download: "emit the given digit", a word tokenizer, an 85k-parameter Llama.

The prompt is ``say 7``; the reward of a completion is the share of its ``LENGTH`` places that hold the digit 7.
A fresh model gets 1/22 of it by chance, and a trainer on one CPU thread takes 200 steps in seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

DIGITS = tuple("0123456789")
WORDS = ("<pad>", "<eos>", "<unk>", "say", *DIGITS, *"abcdefgh")
LENGTH = 2
"""Completion length that the reward expects, in words."""


def tokenizer() -> PreTrainedTokenizerFast:
    """One token a word, padded on the left, with `<pad>` and `<eos>`."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left"
    )


def model(seed: int = 0, **overrides: Any) -> LlamaForCausalLM:
    """A Llama of 2 layers, 64 wide, with fresh weights; torch's global generator is left as it was.

    overrides: fields of its `LlamaConfig`
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    settings = {
        "vocab_size": len(WORDS),
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 64,
        "pad_token_id": WORDS.index("<pad>"),
        "eos_token_id": WORDS.index("<eos>"),
        "bos_token_id": None,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(LlamaConfig(**(settings | overrides)))


def prompts(count: int) -> Dataset:
    """`count` rows of `prompt` and `digit`, every digit alike."""
    from datasets import Dataset

    digits = [DIGITS[row % len(DIGITS)] for row in range(count)]
    return Dataset.from_dict({"prompt": [f"say {digit}" for digit in digits], "digit": digits})


def reward(completions: list[str], digit: list[str], **_: Any) -> list[float]:
    """Share of the `LENGTH` places that hold the digit, in [0, 1].

    >>> reward(["7 a", "7"], ["7", "3"])
    [0.5, 0.0]
    """
    return [said.split().count(wanted) / LENGTH for said, wanted in zip(completions, digit, strict=True)]
