"""A vision-language model of two layers with random weights, saved and loaded as users do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nser.scorers.local_vision import LocalVisionJudge
from nser.scorers.vision import JudgementError, VisionPrompt

PROMPT = VisionPrompt("Pick up the key.")
TEMPLATE = (
    "{% for m in messages %}{% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}<image>{% else %}{{ c['text'] }}{% endif %}{% endfor %}{% endfor %}"
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import (
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
        PreTrainedTokenizerFast,
    )
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = {symbol: number for number, symbol in enumerate(["<s>", "</s>", "<image>", "Yes", "Ġno", "no", *alphabet])}
    inner = Tokenizer(models.BPE(vocab=words, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens(["<image>"])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>", eos_token="</s>", pad_token="</s>")
    square = {"height": 32, "width": 32}
    processor = LlavaProcessor(
        CLIPImageProcessorPil(size=square, crop_size=square),
        tokenizer,
        patch_size=16,
        vision_feature_select_strategy="default",
        chat_template=TEMPLATE,
        image_token="<image>",
        num_additional_image_tokens=1,
    )
    torch.manual_seed(0)
    small: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(**small, image_size=32, patch_size=16),
        text_config=LlamaConfig(**small, vocab_size=len(tokenizer), max_position_embeddings=4096),
        image_token_index=2,
    )
    path = tmp_path_factory.mktemp("vlm")
    LlavaForConditionalGeneration(config).save_pretrained(path)
    processor.save_pretrained(path)
    return path


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
def test_the_share_of_yes_is_that_of_the_first_token(tiny: Path) -> None:
    judge = LocalVisionJudge(str(tiny), PROMPT, device="cpu")
    assert sorted(judge._yes) == sorted([3, *_letters(judge, "y")])
    assert sorted(judge._no) == sorted([4, 5, *_letters(judge, "n")])
    dark, light = (np.full((2, 40, 40, 3), value, np.uint8) for value in (0, 255))
    found = judge.judge(dark), judge.judge(light)
    assert all(0 < z < 1 for z in found)
    assert found[0] != found[1], "what is shown matters"
    assert judge.judge(dark) == found[0]
    assert judge.version == PROMPT.version


def _letters(judge: LocalVisionJudge, letter: str) -> list[int]:
    """A byte-level vocabulary spells y and n as tokens of their own, which count as short answers."""
    vocabulary = judge.processor.tokenizer.get_vocab()
    return [vocabulary[form] for form in (letter, letter.upper()) if form in vocabulary]


def test_a_model_that_is_nowhere_is_refused_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(JudgementError, match="can't load hf:") as caught:
        LocalVisionJudge(str(tmp_path), PROMPT)
    assert "\n" not in str(caught.value)
