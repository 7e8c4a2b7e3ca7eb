"""The neutral record of one rollout: what every trainer's batch is converted to and from."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nser.rollouts.checking import (
    as_advantage,
    as_ids,
    as_logps,
    as_mask,
    check_count,
    check_number,
    check_sampling,
    check_scores,
    check_versions,
)
from nser.rollouts.errors import RolloutError

Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Sampling:
    """How the response was sampled, and which policy its log-probs come from.

    - ``temperature`` ≥ 0, ``top_p`` in (0, 1], ``top_k`` ≥ 0 (0 for no limit);
    - ``source``: "trainer" when the trainer's own forward pass gave ``behavior_logps``, "sampler" when the
      inference engine did (the two differ by the engines' numerics, and by temperature and truncation).

    Raises ``RolloutError``.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    source: Literal["trainer", "sampler"] = "trainer"

    def __post_init__(self) -> None:
        temperature, top_p, top_k = check_sampling(self.temperature, self.top_p, self.top_k, self.source)
        self.__dict__.update(temperature=temperature, top_p=top_p, top_k=top_k)


@dataclass(frozen=True, eq=False, kw_only=True)
class Rollout:
    """One prompt and what a policy answered to it, with everything that replay needs. No padding.

    - ``prompt_ids`` int32 [P], ``response_ids`` int32 [T], ≥ 0; empty in transcripts that hold only text;
    - ``response_mask`` bool [T]: False for tokens of tools and environments, which are not trained on;
    - ``behavior_logps`` float32 [T] ≤ 0: log-probs under the policy that generated, taken at generation, before
      any update; the ratio of every later update needs them. 0 where the mask is False;
    - ``advantage``: one finite number, or float32 [T] per token; frozen at birth;
    - ``reward``: the raw, finite reward of the whole rollout;
    - ``rule_scores``: name of a rule → its score in [0, 1]; ``rule_score`` in [0, 1] the score of all rules
      together, by default 1 − Π (1 − score);
    - ``policy_version`` (first, last): the trainer's version that generated the first and the last token;
    - ``group``: rollouts of one prompt in one step share it; ``task``: where the prompt comes from;
    - ``uses``: how often it was replayed so far;
    - ``sampling``; ``metadata``: JSON-able (text, messages, tool calls, …).

    Arrays of the right type are not copied, and are read-only here. Raises ``RolloutError`` for a field that does
    not fit.
    """

    prompt_ids: Ids
    response_ids: Ids
    response_mask: Mask
    behavior_logps: Floats
    advantage: float | Floats = 0.0
    reward: float = 0.0
    rule_scores: Mapping[str, float] = field(default_factory=dict)
    rule_score: float = math.nan
    policy_version: tuple[int, int] = (0, 0)
    group: str = ""
    task: str = ""
    uses: int = 0
    sampling: Sampling = field(default_factory=Sampling)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        prompt = as_ids("prompt_ids", self.prompt_ids)
        response = as_ids("response_ids", self.response_ids)
        mask = as_mask("response_mask", self.response_mask, len(response))
        scores = check_scores(self.rule_scores, self.rule_score)
        for name in ("group", "task"):
            if not isinstance(getattr(self, name), str):
                raise RolloutError(name, getattr(self, name), "a text", "Convert it with str().")
        if not isinstance(self.metadata, Mapping):
            raise RolloutError("metadata", self.metadata, "a mapping of names to JSON values", "Pass a dictionary.")
        # The one place where a frozen record is written: plain values of the right types.
        self.__dict__.update(
            prompt_ids=prompt,
            response_ids=response,
            response_mask=mask,
            behavior_logps=as_logps("behavior_logps", self.behavior_logps, mask),
            advantage=as_advantage("advantage", self.advantage, len(response)),
            reward=check_number("reward", self.reward),
            rule_scores=scores,
            rule_score=combined(scores) if math.isnan(self.rule_score) else float(self.rule_score),
            policy_version=check_versions(self.policy_version),
            uses=check_count("uses", self.uses),
        )

    @property
    def key(self) -> bytes:
        """16 bytes that tell rollouts apart: a hash of the tokens, the first version and the group."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(f"{len(self.prompt_ids)} {self.policy_version[0]} {self.group}\n".encode())
        digest.update(np.ascontiguousarray(self.prompt_ids).data)
        digest.update(np.ascontiguousarray(self.response_ids).data)
        return digest.digest()

    @property
    def signal(self) -> float:
        """|advantage|, ≥ 0; of a per-token advantage the mean over the tokens that are trained on, 0 without any."""
        if isinstance(self.advantage, float):
            return abs(self.advantage)
        trained = self.advantage[self.response_mask]
        return float(np.abs(trained).mean(dtype=np.float64)) if trained.size else 0.0

    def age(self, version: int) -> int:
        """Age at the trainer's ``version``: that version minus the one that generated the first token."""
        return version - self.policy_version[0]


def combined(scores: Mapping[str, float]) -> float:
    """1 − Π (1 − score): how strongly any of the rules speaks; 0 without rules.

    >>> round(combined({"a": 0.5, "b": 0.5}), 3)
    0.75
    """
    rest = 1.0
    for score in scores.values():
        rest *= 1.0 - score
    return 1.0 - rest
