"""Which rule is to thank for which share of the draws."""

from __future__ import annotations

import numpy as np

from nser.runs.session import Session
from nser.scorers.rules import RuleScorer


def owed_shares(session: Session) -> dict[str, float]:
    """For each rule in force the share of expected draws that is owed to it, in [0, 1].

    What the rules as a whole add to an item's probability is owed to the rule that gives the item most of its
    score. The shares sum to the index's `rule_share`, less what items hold whose score came from an older set.
    """
    scorer, ruleset, buffer = session.buffer.scorer, session.ruleset, session.buffer
    if ruleset is None or not isinstance(scorer, RuleScorer):
        return {}
    rows = buffer.stored_rows()
    owed = np.zeros(len(ruleset.rules))
    for env in range(buffer.n_envs):
        slots = rows * buffer.n_envs + env
        strongest = scorer.strongest(buffer.steps_of(slots))
        explained = buffer.index.explain(slots)
        added = explained.probability * explained.rule_share
        fires = strongest >= 0
        owed += np.bincount(strongest[fires], weights=added[fires], minlength=len(owed))
    return {rule.name: round(float(share), 6) for rule, share in zip(ruleset.rules, owed, strict=True)}
