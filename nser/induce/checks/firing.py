"""Where rules fire, and what their claims are worth there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nser.grounding.evaluator import Evaluator
from nser.induce.evidence import Evidence
from nser.rules.syntax import Rule, blames, praises

Mask = NDArray[np.bool_]


def crisp_firings(rules: Sequence[Rule], evidence: Evidence) -> list[Mask]:
    """For each rule the [N] rows on which body and head hold."""
    if not rules:
        return []
    evaluator = Evaluator(rules, evidence.vocabulary, sharpness=None)
    firing = evaluator.firings(evidence.trajectories.steps()).detach().numpy() > 0.5
    return list(firing.T)


def claimed(rule: Rule, outcomes: NDArray[np.float64]) -> NDArray[np.float64]:
    """[N] outcomes as the head claims them: as they are for `good(t)`, with the other sign for `~good(t)`."""
    return -outcomes if blames(rule) else outcomes


def is_judged(rule: Rule) -> bool:
    """Whether outcomes can judge the head."""
    return praises(rule) or blames(rule)
