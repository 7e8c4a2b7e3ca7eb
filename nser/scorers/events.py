"""Scripted events as a judge: the ceiling that a vision model is measured against.

A transition is relevant when one of the events happens within the next `length` steps of its episode, itself
included: what a perfect model would say of the clips that end with an event.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from nser.grounding.evaluator import Evaluator
from nser.grounding.steps import Steps
from nser.grounding.vocabulary import Vocabulary
from nser.rules.parse import parse_formula
from nser.rules.syntax import GOOD, Atom, Rule, Temporal, Variable, Window


class EventScorer:
    """Relevance 1 in the `length` steps up to and with an event, 0 elsewhere.

    events: formulas over the vocabulary, such as `~carrying(t) & next(carrying(t))`
    """

    def __init__(self, events: Sequence[str], vocabulary: Vocabulary, length: int = 32, version: int = 0) -> None:
        if not events:
            raise ValueError("found no events, expected at least one formula such as `carrying(t)`")
        good = Atom(GOOD, (Variable("t"),))
        window = Window(0, length - 1)
        rules = [
            Rule(f"event_{number}", Temporal("eventually", parse_formula(text), window), good)
            for number, text in enumerate(events)
        ]
        self._evaluator = Evaluator(rules, vocabulary, sharpness=None).requires_grad_(False)
        self.version = version
        self.past, self.future = self._evaluator.past, self._evaluator.future

    @torch.no_grad()
    def relevance(self, steps: Steps) -> NDArray[np.float64]:
        """[T] zeros and ones."""
        return (self._evaluator.score(steps).numpy() > 0.5).astype(np.float64)
