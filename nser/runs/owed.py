"""Which rule is to thank for which share of the draws, and which fires on which share of what is stored."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nser.runs.session import Session
from nser.scorers.rules import RuleScorer

LOOKED_AT = 8_192  # rows; of a larger buffer this many stand for all, since a look at every row would show in the speed
BLOCK = 256  # rows that are looked at together, so that temporal rules find their neighbours


@dataclass(frozen=True)
class RuleShares:
    """What each rule in force has a part in; a transition counts for the rule that gives it most of its score.

    owed:   share of expected draws owed to the rule, in [0, 1]
    firing: share of the stored transitions, in [0, 1]
    """

    owed: dict[str, float] = field(default_factory=dict)
    firing: dict[str, float] = field(default_factory=dict)


def rule_shares(session: Session) -> RuleShares:
    """The shares of each rule in force; empty without rules in replay.

    What the rules as a whole add to an item's probability is owed to one rule. The shares owed sum to the index's
    `rule_share`, less what items hold whose score came from an older set; in a large buffer both are estimated from
    blocks of rows spread evenly over it.
    """
    scorer, ruleset, buffer = session.buffer.scorer, session.ruleset, session.buffer
    if ruleset is None or not isinstance(scorer, RuleScorer):
        return RuleShares()
    stored = buffer.stored_rows()
    blocks = _blocks(stored)
    looked_at = max(sum(map(len, blocks)), 1)
    owed, firing = np.zeros(len(ruleset.rules)), np.zeros(len(ruleset.rules))
    for env in range(buffer.n_envs):
        for rows in blocks:
            slots = rows * buffer.n_envs + env
            strongest = scorer.strongest(buffer.steps_of(slots))
            explained = buffer.index.explain(slots)
            added = explained.probability * explained.rule_share * len(stored) / looked_at
            fires = strongest >= 0
            owed += np.bincount(strongest[fires], weights=added[fires], minlength=len(owed))
            firing += np.bincount(strongest[fires], minlength=len(firing))
    names = [rule.name for rule in ruleset.rules]
    return RuleShares(_rounded(names, owed), _rounded(names, firing / (looked_at * buffer.n_envs)))


def _rounded(names: list[str], shares: NDArray[np.float64]) -> dict[str, float]:
    return {name: round(float(share), 6) for name, share in zip(names, shares, strict=True)}


def _blocks(rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The rows in order of time, as one block where they are few."""
    if len(rows) <= LOOKED_AT:
        return [rows] if len(rows) else []
    starts = np.linspace(0, len(rows) - BLOCK, LOOKED_AT // BLOCK).astype(np.int64)
    return [rows[start : start + BLOCK] for start in starts]
