from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from nser.envs.automatic import automatic_vocabulary
from nser.envs.known import KNOWN
from nser.envs.make import make_env, vocabulary_of
from nser.grounding.vocabulary import Vocabulary
from nser.rules.checks.pipeline import check_file
from nser.rules.printer import print_rule
from nser.scorers.events import EventScorer
from nser.study.beforehand import events_beforehand, rules_beforehand
from nser.study.errors import NothingKnownError

WITH_RULES = {
    "MiniGrid-DoorKey-6x6-v0", "MiniGrid-KeyCorridorS3R1-v0", "nser/Sokoban-6x6-1-v0", "FrozenLake-v1",
    "CliffWalking-v1", "Taxi-v4", "CartPole-v1", "LunarLander-v3",
}  # fmt: skip


def vocabulary_for(env: str) -> Vocabulary:
    if env != "LunarLander-v3":
        return vocabulary_of(make_env(env))
    # Box2D's bindings don't survive warnings that are errors; the spaces are all that a vocabulary is made of.
    known = KNOWN["LunarLander"]
    space = spaces.Box(-1, 1, (8,), np.float32)
    return automatic_vocabulary(space, spaces.Discrete(4), known.features, "lunarlander", actions=known.actions)


@pytest.mark.parametrize("env", sorted(WITH_RULES))
def test_shipped_rules_are_rules_of_their_vocabulary(env: str) -> None:
    vocabulary = vocabulary_for(env)
    hand, wrong = rules_beforehand(vocabulary, "hand"), rules_beforehand(vocabulary, "wrong")
    for ruleset in (hand, wrong):
        checked = check_file("\n".join(print_rule(rule) for rule in ruleset.rules), vocabulary.signature)
        assert not checked.refused
        assert ruleset.rules
    assert not {rule.body for rule in hand.rules} & {rule.body for rule in wrong.rules}


@pytest.mark.parametrize("env", sorted(WITH_RULES - {"CartPole-v1", "LunarLander-v3"}))
def test_shipped_events_can_be_judged(env: str) -> None:
    vocabulary = vocabulary_of(make_env(env))
    assert EventScorer(events_beforehand(vocabulary), vocabulary).future == 31


def test_what_nobody_wrote_is_told_in_words() -> None:
    vocabulary = vocabulary_of(make_env("Acrobot-v1"))
    with pytest.raises(
        NothingKnownError, match=r"found no acrobot\.hand\.rules, expected it beside those for cartpole, "
    ):
        rules_beforehand(vocabulary, "hand")
    with pytest.raises(NothingKnownError, match=r"acrobot\.events\.txt"):
        events_beforehand(vocabulary)
