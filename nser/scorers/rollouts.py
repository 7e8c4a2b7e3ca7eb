"""Relevance of rollouts from rules over rollouts and turns.

A rule over `rollout` fires to the degree that its body (and head) holds of the rollout. A rule over `turn` is asked of
every message; what the turns of a rollout come to is a choice: `max`, the rule fired somewhere (the default: one bad
call or one good step is what such rules look for), or `mean`, the share of the messages on which it fired. With weight
w and firing f of each rule the score is 1 − Π(1 − w·f), as for transitions; rules that blame take no part in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from nser.errors import NserError
from nser.grounding.evaluator import Evaluator
from nser.grounding.rollout_words import ROLLOUTS
from nser.grounding.text_steps import text_steps
from nser.grounding.transcripts import Decode, RolloutLike, Transcript, as_transcript
from nser.grounding.vocabulary import Vocabulary
from nser.rules.ruleset import RuleSet
from nser.rules.scope import check_names
from nser.rules.syntax import Rule, blames

OverTurns = Literal["max", "mean"]


class RolloutScorerError(NserError, ValueError):
    """Rules or a setting by which no rollout can be scored."""


class RolloutScorer:
    """Scores rollouts by rules; no gradient, nothing learnt.

    - `rules`: over `rollout` or `turn`, mixed as they come; a `RuleSet` brings its version along;
    - `vocabulary`: what the rules may say, `ROLLOUTS` or one of your own over the same sorts;
    - `over_turns`: what the firings of a turn rule come to, "max" or "mean";
    - `sharpness`: None compares numbers with thresholds exactly (`turns(r) >= 5` is 1 at 5), a number softly, see
      `Evaluator`;
    - `decode`: a tokenizer's `decode`, for rollouts that were stored without their text.

    Raises the `RuleError` of the first rule that the vocabulary can't ground, `RolloutScorerError` for a setting.
    """

    def __init__(
        self,
        rules: RuleSet | Sequence[Rule],
        vocabulary: Vocabulary = ROLLOUTS,
        *,
        over_turns: OverTurns = "max",
        sharpness: float | None = None,
        decode: Decode | None = None,
    ) -> None:
        if over_turns not in get_args(OverTurns):
            raise RolloutScorerError(f"found over_turns {over_turns!r}, expected {' or '.join(get_args(OverTurns))}")
        self.rules = tuple(rules.rules if isinstance(rules, RuleSet) else rules)
        self.version = rules.version if isinstance(rules, RuleSet) else 0
        self.over_turns = over_turns
        self.decode = decode
        for rule in self.rules:
            if rule.sort not in ("rollout", "turn"):
                expected = "expected rollout or turn, as in `forall r in rollout: …`"
                raise RolloutScorerError(f"rule {rule.name} is over the sort {rule.sort}, {expected}")
            for problem in check_names(rule, vocabulary.signature):
                raise problem
        self._evaluators = {}
        for sort in ("rollout", "turn"):
            places = [place for place, rule in enumerate(self.rules) if rule.sort == sort]
            if places:
                own = [self.rules[place] for place in places]
                evaluator = Evaluator(own, vocabulary.about(sort), sharpness=sharpness).requires_grad_(False)
                self._evaluators[sort] = (places, evaluator)
        # [R] weights, 0 for rules that blame
        self._strengths = np.array([0.0 if blames(rule) else rule.weight for rule in self.rules])

    @property
    def names(self) -> tuple[str, ...]:
        """The rules, in the order of the firings' columns."""
        return tuple(rule.name for rule in self.rules)

    def score(self, rollouts: Sequence[Transcript | RolloutLike]) -> NDArray[np.float64]:
        """[n] scores in [0, 1]; raises `TranscriptError` for a rollout without text."""
        return self.combine(self.firings(rollouts))

    def combine(self, firings: NDArray[np.float64]) -> NDArray[np.float64]:
        """[n] scores in [0, 1] of [n, R] firings."""
        return np.asarray(1.0 - (1.0 - firings * self._strengths).prod(1), np.float64)

    @torch.no_grad()
    def firings(self, rollouts: Sequence[Transcript | RolloutLike]) -> NDArray[np.float64]:
        """[n, R] degrees in [0, 1] to which each rule fires, its weight not yet applied."""
        texts = [as_transcript(rollout, self.decode) for rollout in rollouts]
        found = np.zeros((len(texts), len(self.rules)))
        if not texts:
            return found
        for sort, (places, evaluator) in self._evaluators.items():
            rows = evaluator.firings(text_steps(texts, sort)).numpy().astype(np.float64)
            found[:, places] = rows if sort == "rollout" else self._gathered(rows, texts)
        return found

    def _gathered(self, rows: NDArray[np.float64], texts: Sequence[Transcript]) -> NDArray[np.float64]:
        """[n, R] of [turns, R]: what the turns of each rollout come to."""
        lengths = np.array([len(text.messages) for text in texts])
        starts = np.cumsum(lengths) - lengths
        if self.over_turns == "max":
            return np.asarray(np.maximum.reduceat(rows, starts))
        return np.asarray(np.add.reduceat(rows, starts) / lengths[:, None])
