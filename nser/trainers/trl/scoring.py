"""Rules over rollouts, seen from a trainer: any function that scores rollouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nser.replay.errors import ArgumentError
from nser.rollouts import Rollout

Scorer = Callable[[Sequence[Rollout]], ArrayLike]
"""Rollouts (n) → how much the rules speak for each, (n,) in [0, 1]."""


def scores_of(scorer: Scorer, rollouts: Sequence[Rollout]) -> NDArray[np.float64]:
    """(n,) scores; raises ``ArgumentError`` unless they are n numbers in [0, 1]."""
    if not rollouts:
        return np.zeros(0)
    scores = np.asarray(scorer(rollouts), np.float64)
    if scores.shape != (len(rollouts),):
        raise ArgumentError("scorer", f"scores {scores.shape}", f"({len(rollouts)},)", "Give one for each rollout.")
    if not ((scores >= 0) & (scores <= 1)).all():
        worst = float(scores[~((scores >= 0) & (scores <= 1))][0])
        raise ArgumentError("scorer", worst, "scores in [0, 1]", "Rescale them.")
    return scores


def messages_of(prompt: Any, completion: Any) -> list[dict[str, Any]]:
    """Prompt and completion, each a text or a list of messages, as one list of messages.

    >>> [message["role"] for message in messages_of("2 + 2?", "4")]
    ['user', 'assistant']
    """
    before = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    after = [{"role": "assistant", "content": completion}] if isinstance(completion, str) else list(completion)
    return [*before, *after]
