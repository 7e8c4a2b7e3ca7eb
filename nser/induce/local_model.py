"""A local `transformers` model as a proposer's model, its answers held to the grammar by llguidance."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from nser.induce.cassette import Call, Reply
from nser.induce.model import NoAnswerError, RefusedCallError, TooLongError
from nser.rules.grammar import Engine


class LocalModel:
    """A causal language model from a folder or a cached hub name, with its tokenizer and chat template.

    seed: of its own generator, so that equal calls give equal answers; the global one is left as it was
    Raises `RefusedCallError` where the model can't be loaded.
    """

    def __init__(self, path: str, seed: int = 0, device: str | None = None) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        try:
            self.tokenizer: Any = AutoTokenizer.from_pretrained(path)
            model: Any = AutoModelForCausalLM.from_pretrained(path)
        except (OSError, ValueError, ImportError) as error:
            reason = " ".join(str(error).split())[:160]
            raise RefusedCallError(
                f"can't load hf:{path}: {reason}; name a folder with a model, or one in the cache"
            ) from error
        self.model = model
        self.model.train(False)
        self.name = f"hf:{path}"
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.seed = seed
        self.model.to(self.device)

    def engine(self) -> Engine | None:
        """llguidance masks the logits here, so that the grammar always holds."""
        return "llguidance"

    def count_tokens(self, text: str) -> int:
        """Tokens by the model's own tokenizer."""
        return len(self.tokenizer.encode(text, add_special_tokens=False))

    def complete(self, call: Call) -> Reply:
        """Generate an answer; the grammar, if there is one, masks every token that would leave it."""
        prompt = self._prompt(call)
        limit = int(call.sampling.get("max_tokens", 256))
        temperature = float(call.sampling.get("temperature", 0.0))
        processors = [GrammarMask(self.tokenizer, call.grammar, prompt.shape[1])] if call.grammar else []
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed + call.number)
            sampling = {"do_sample": True, "temperature": temperature} if temperature > 0 else {"do_sample": False}
            ids = self.model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=limit,
                pad_token_id=self._end(),
                logits_processor=processors,
                **sampling,
            )
        answer = ids[0, prompt.shape[1] :]
        text = self.tokenizer.decode(answer, skip_special_tokens=True)
        if not text.strip():
            raise NoAnswerError(f"{self.name} answered with nothing; choose another model")
        ended = len(answer) < limit or int(answer[-1]) == self._end()
        return Reply(text, "stop" if ended else "length", prompt.shape[1], len(answer))

    def _prompt(self, call: Call) -> torch.Tensor:
        messages = [dict(message) for message in call.messages]
        if getattr(self.tokenizer, "chat_template", None):
            text = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        else:
            text = "\n\n".join(message["content"] for message in messages) + "\n"
        ids = self.tokenizer(text, return_tensors="pt").input_ids
        room = int(getattr(self.model.config, "max_position_embeddings", 0) or 0)
        if room and ids.shape[1] + int(call.sampling.get("max_tokens", 256)) > room:
            raise TooLongError(
                f"the prompt takes {ids.shape[1]} tokens and {self.name} has room for {room}; show fewer episodes"
            )
        moved: torch.Tensor = ids.to(self.device)
        return moved

    def _end(self) -> int:
        end = self.tokenizer.eos_token_id
        return int(end if end is not None else 0)


class GrammarMask:
    """A logits processor: −∞ for every token that the grammar does not allow next. For batches of one."""

    def __init__(self, tokenizer: Any, grammar: str, prompt_length: int) -> None:
        import llguidance
        import llguidance.hf

        vocabulary = llguidance.hf.from_tokenizer(tokenizer)
        self._matcher = llguidance.LLMatcher(vocabulary, llguidance.grammar_from("lark", grammar), log_level=0)
        self._read = prompt_length

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores [1, V] of the next token, as a masked copy."""
        for token in input_ids[0, self._read :].tolist():
            self._matcher.consume_token(token)
        self._read = input_ids.shape[1]
        if self._matcher.is_stopped():
            return scores
        # A bit for each token, the lowest first; a model may have more rows than its tokenizer has tokens.
        bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        allowed = torch.zeros(scores.shape[1], dtype=torch.bool)
        flags = torch.from_numpy(np.unpackbits(bits, bitorder="little").astype(np.bool_))[: scores.shape[1]]
        allowed[: len(flags)] = flags
        return scores.masked_fill(~allowed.to(scores.device), -torch.inf)
