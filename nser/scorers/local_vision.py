"""A local `transformers` vision-language model as a judge of clips."""

from __future__ import annotations

from typing import Any

import torch

from nser.scorers.clips import Frames
from nser.scorers.vision import NO, YES, JudgementError, VisionPrompt, bare_word


class LocalVisionJudge:
    """z = P(yes) / (P(yes) + P(no)) at the first token of the answer, over all tokens that spell either word.

    path: folder, or name in the hub's cache, of an image-text-to-text model with its processor and chat template
    Raises `JudgementError` where it can't be loaded, or knows neither word as one token.
    """

    def __init__(self, path: str, prompt: VisionPrompt, device: str | None = None) -> None:
        from transformers import AutoModelForImageTextToText, AutoProcessor

        self.prompt, self.version = prompt, prompt.version
        self.name = f"hf:{path}"
        try:
            self.processor: Any = AutoProcessor.from_pretrained(path)
            model: Any = AutoModelForImageTextToText.from_pretrained(path)
        except (OSError, ValueError, ImportError) as error:
            reason = " ".join(str(error).split())[:160]
            raise JudgementError(
                f"can't load hf:{path}: {reason}; name a folder with a vision-language model, or one in the cache"
            ) from error
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.model = model.to(self.device).train(False)
        self._yes, self._no = self._spellings(YES), self._spellings(NO)
        if not self._yes or not self._no:
            raise JudgementError(f"hf:{path} has no single token for yes and no; choose another model")

    @torch.no_grad()
    def judge(self, frames: Frames) -> float:
        """z in [0, 1] of frames [K, H, W, 3]."""
        from PIL import Image

        content: list[dict[str, Any]] = [{"type": "text", "text": self.prompt.text}]
        content += [{"type": "image", "image": Image.fromarray(frame)} for frame in frames]
        inputs = self.processor.apply_chat_template(
            [{"role": "user", "content": content}],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
        ).to(self.device)
        chances = self.model(**inputs).logits[0, -1].float().softmax(-1)  # [V]
        yes, no = float(chances[self._yes].sum()), float(chances[self._no].sum())
        return yes / (yes + no)

    def _spellings(self, words: frozenset[str]) -> list[int]:
        tokenizer = self.processor.tokenizer
        return [number for token, number in tokenizer.get_vocab().items() if bare_word(token) in words]
