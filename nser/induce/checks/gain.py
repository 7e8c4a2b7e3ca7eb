"""Check 8: does a rule add anything to the better rules of its set."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nser.induce.figures import lower_bound
from nser.rules.syntax import Rule
from nser.rules.verdict import Verdict, refusal

REDUNDANT, FULL, NOT_PROPOSED = "D801", "D802", "D803"


def check(rule: Rule, firings: int, new: NDArray[np.float64], least: int) -> Verdict | None:
    """A refusal where too few firings are left, or none worth anything, once better rules have had theirs.

    new: outcomes, signed as the head claims them, of the firings on which no better rule fires
    """
    if len(new) >= least and lower_bound(new) > 0:
        return None
    sentence = f"better rules fire on all of its {firings:,} firings"
    if len(new):
        sentence = f"better rules leave {len(new):,} of its {firings:,} firings, which is too few to judge by"
    if len(new) >= least:
        sentence = f"on the {len(new):,} of its {firings:,} firings that better rules leave it is worth nothing"
    return refusal(rule, REDUNDANT, sentence, "propose something that the rules kept so far do not say")


def check_room(rule: Rule, kept: int, most: int) -> Verdict | None:
    """A refusal where the set is full."""
    if kept < most:
        return None
    return refusal(rule, FULL, f"the set holds {most} better rules already, which is its limit", "raise max_rules")
