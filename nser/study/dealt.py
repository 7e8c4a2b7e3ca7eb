"""The placebo of rules: their scores, dealt to other transitions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nser.grounding.steps import Steps
from nser.scorers.rules import RuleScorer

Ints = NDArray[np.int64]


class DealtScorer:
    """Scores as high and as many as those of the rules in force, but given by lot instead of by what happened.

    An item's lot is drawn once for all, so that what is boosted stays boosted from one rule set to the next, as what
    rules boost does. Only so do rules and placebo differ in nothing but the meaning.

    lots:   [capacity] numbers in [0, 1), one for each slot
    newest: the slots of the newest n transitions in the order of time; steps that are scored end with the newest
    """

    def __init__(self, rules: RuleScorer, lots: NDArray[np.float64], newest: Callable[[int], Ints]) -> None:
        self.rules, self.lots, self.newest = rules, lots, newest
        self.version, self.past, self.future = rules.version, rules.past, rules.future

    def relevance(self, steps: Steps) -> NDArray[np.float64]:
        """[T] scores in [0, 1]."""
        return dealt(self.rules.relevance(steps), self.lots[self.newest(len(steps))])


def dealt(scores: NDArray[np.float64], lots: NDArray[np.float64]) -> NDArray[np.float64]:
    """[n] the same scores in another order: the highest for the highest lot.

    >>> dealt(np.array([0.0, 1.0, 0.5]), np.array([0.9, 0.1, 0.2])).tolist()
    [1.0, 0.0, 0.5]
    """
    given = np.empty_like(scores)
    given[np.argsort(lots, kind="stable")] = np.sort(scores)
    return given
