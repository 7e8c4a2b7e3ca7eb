"""Which rule is to thank for which share of the draws."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nser.runs.session import Session
from nser.scorers.rules import RuleScorer

LOOKED_AT = 8_192  # rows; of a larger buffer this many stand for all, since a look at every row would show in the speed
BLOCK = 256  # rows that are looked at together, so that temporal rules find their neighbours


def owed_shares(session: Session) -> dict[str, float]:
    """For each rule in force the share of expected draws that is owed to it, in [0, 1].

    What the rules as a whole add to an item's probability is owed to the rule that gives the item most of its
    score. The shares sum to the index's `rule_share`, less what items hold whose score came from an older set; in a
    large buffer they are estimated from blocks of rows spread evenly over it.
    """
    scorer, ruleset, buffer = session.buffer.scorer, session.ruleset, session.buffer
    if ruleset is None or not isinstance(scorer, RuleScorer):
        return {}
    stored = buffer.stored_rows()
    blocks = _blocks(stored)
    times = len(stored) / max(sum(map(len, blocks)), 1)
    owed = np.zeros(len(ruleset.rules))
    for env in range(buffer.n_envs):
        for rows in blocks:
            slots = rows * buffer.n_envs + env
            strongest = scorer.strongest(buffer.steps_of(slots))
            explained = buffer.index.explain(slots)
            added = explained.probability * explained.rule_share * times
            fires = strongest >= 0
            owed += np.bincount(strongest[fires], weights=added[fires], minlength=len(owed))
    return {rule.name: round(float(share), 6) for rule, share in zip(ruleset.rules, owed, strict=True)}


def _blocks(rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The rows in order of time, as one block where they are few."""
    if len(rows) <= LOOKED_AT:
        return [rows] if len(rows) else []
    starts = np.linspace(0, len(rows) - BLOCK, LOOKED_AT // BLOCK).astype(np.int64)
    return [rows[start : start + BLOCK] for start in starts]
