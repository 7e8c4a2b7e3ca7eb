"""Relevance from rules: the evaluator's score, as the replay index wants it."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from nser.grounding.evaluator import Evaluator
from nser.grounding.steps import Steps
from nser.grounding.vocabulary import Vocabulary
from nser.rules.store import RuleSet


class RuleScorer:
    """Scores steps by a rule set; every score carries the set's version."""

    def __init__(self, ruleset: RuleSet, vocabulary: Vocabulary) -> None:
        self.ruleset = ruleset
        self.vocabulary = vocabulary
        self.evaluator = Evaluator(ruleset.rules, vocabulary).requires_grad_(False)
        self.version = ruleset.version
        self.past, self.future = self.evaluator.past, self.evaluator.future

    def relevance(self, steps: Steps) -> NDArray[np.float64]:
        """[T] scores in [0, 1]."""
        if not self.ruleset.rules:
            return np.zeros(len(steps))
        return self.evaluator.score(steps).numpy().astype(np.float64)

    @torch.no_grad()
    def strongest(self, steps: Steps) -> NDArray[np.int64]:
        """[T] number of the rule that gives each step most of its score; −1 where none gives any."""
        if not self.ruleset.rules:
            return np.full(len(steps), -1)
        best = self.evaluator.contributions(self.evaluator.firings(steps)).max(1)
        return torch.where(best.values > 0.05, best.indices, -1).numpy()
