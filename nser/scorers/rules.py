"""Relevance from rules: the evaluator's score, as the replay index wants it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from nser.grounding.evaluator import Evaluator
from nser.grounding.steps import Steps
from nser.grounding.vocabulary import Vocabulary
from nser.rules.ruleset import UNPROVEN, RuleSet, is_unproven
from nser.rules.syntax import Rule


class RuleScorer:
    """Scores steps by a rule set; every score carries the set's version.

    Rules that were induced have passed their test by data. One that a person put in force counts for `UNPROVEN` of its
    weight until the lower end of its lift lies above 0: a wrong one would otherwise draw the replay to the wrong
    steps for as long as there is too little evidence to refute it. Rules of no known origin count in full.
    """

    def __init__(self, ruleset: RuleSet, vocabulary: Vocabulary) -> None:
        self.ruleset = ruleset
        self.vocabulary = vocabulary
        self.evaluator = Evaluator(_trusted(ruleset), vocabulary).requires_grad_(False)
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


def _trusted(ruleset: RuleSet) -> tuple[Rule, ...]:
    """The rules with the weights that their evidence allows."""
    return tuple(
        replace(rule, weight=UNPROVEN * rule.weight) if is_unproven(ruleset.provenance.get(rule.name)) else rule
        for rule in ruleset.rules
    )
