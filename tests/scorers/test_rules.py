from __future__ import annotations

from dataclasses import replace

import numpy as np

from nser.rules.parse import parse_rules
from nser.rules.ruleset import PERSON, UNPROVEN, Provenance, RuleSet
from nser.scorers.rules import RuleScorer
from tests.induce.planted import CHAIN, play

RULES = parse_rules(
    "rule proven: forall t in step: inside(t, r0) & action_is(t, push) -> good(t)\n"
    "rule unproven [0.8]: forall t in step: inside(t, r1) & action_is(t, pull) -> good(t)\n"
    "rule learnt: forall t in step: inside(t, r2) & action_is(t, lift) -> good(t)\n"
    "rule found: forall t in step: inside(t, r1) & action_is(t, wait) -> good(t)\n"
).rules
THEIRS = {
    "proven": Provenance(PERSON, 0, lift=0.2, lift_low=0.1, lift_high=0.3),
    "unproven": Provenance(PERSON, 0, lift=0.2, lift_low=-0.1, lift_high=0.5),
    "learnt": Provenance("symbolic", 0, lift=0.2, lift_low=-0.1, lift_high=0.5),
}


def test_a_persons_rule_counts_for_little_until_data_support_it() -> None:
    played = play(50, 0)
    rows, scorer = played.observations[:, 0], RuleScorer(RuleSet(RULES, 3, THEIRS), CHAIN)
    found = scorer.relevance(played.steps())
    for room, action, score in ((0, 1, 1.0), (1, 2, 0.8 * UNPROVEN), (2, 3, 1.0), (1, 0, 1.0), (0, 2, 0.0)):
        fires = (rows == room) & (played.actions == action)
        assert fires.any()
        assert np.allclose(found[fires], score)
    assert scorer.ruleset.rules == RULES, "the rules themselves keep their weights"


def test_without_figures_a_persons_rule_is_unproven() -> None:
    bare = {"proven": replace(THEIRS["proven"], lift_low=None)}
    assert RuleScorer(RuleSet(RULES[:1], 1, bare), CHAIN).relevance(play(20, 1).steps()).max() <= UNPROVEN + 1e-6
