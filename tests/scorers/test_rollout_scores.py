"""Scores of rollouts: rollout rules, turn rules, and what they come to together."""

from __future__ import annotations

import numpy as np
import pytest

from nser.grounding.transcripts import Transcript, TranscriptError
from nser.rules.errors import UnknownPredicateError
from nser.rules.parse import parse_rules
from nser.rules.ruleset import RuleSet
from nser.scorers.rollouts import RolloutScorer, RolloutScorerError
from tests.grounding.test_transcripts import chat, rollout

RULES = parse_rules(
    """
    rule brief [0.5]: forall r in rollout: length(r) < 3 -> good(r)
    rule sure: forall u in turn: by(u, assistant) & says(u, "sure") -> good(u)
    rule lost: forall r in rollout: length(r) >= 3 -> ~good(r)
    rule polite [0.25]: forall r in rollout: contains(r, "please") -> good(r)
    """
).rules
ROLLOUTS = (
    chat("user: sure?", "assistant: sure", "user: really?", "assistant: quite sure indeed"),
    chat("assistant: please"),
    chat("user: nothing"),
)
FIRINGS = {"max": 1.0, "mean": 0.5}


@pytest.mark.parametrize("over_turns", ["max", "mean"])
def test_firings_and_scores_are_as_written(over_turns: str) -> None:
    scorer = RolloutScorer(RULES, over_turns=over_turns)  # type: ignore[arg-type]
    fired = FIRINGS[over_turns]
    assert scorer.firings(ROLLOUTS) == pytest.approx(np.array([[0, fired, 1, 0], [1, 0, 0, 1], [1, 0, 0, 0]]))
    assert scorer.score(ROLLOUTS).tolist() == pytest.approx([fired, 1 - 0.5 * 0.75, 0.5])
    assert scorer.names == ("brief", "sure", "lost", "polite")


def test_scores_do_not_depend_on_the_company() -> None:
    scorer = RolloutScorer(RULES)
    alone = np.concatenate([scorer.score([one]) for one in ROLLOUTS])
    assert scorer.score(ROLLOUTS).tolist() == alone.tolist()
    assert scorer.score([]).shape == (0,)


def test_stored_rollouts_are_scored_by_their_text() -> None:
    scorer = RolloutScorer(RuleSet(RULES, 7))
    assert scorer.version == 7
    assert scorer.score([rollout(text="please")]).tolist() == scorer.score([chat("assistant: please")]).tolist()
    with pytest.raises(TranscriptError, match="decode"):
        scorer.score([rollout()])
    assert RolloutScorer(RULES, decode=lambda ids: "sure").score([rollout()]).tolist() == [1.0]


def test_no_rules_score_nothing() -> None:
    assert RolloutScorer(()).score(ROLLOUTS).tolist() == [0, 0, 0]


def test_rules_and_settings_that_fit_nothing() -> None:
    (step,) = parse_rules("rule a: forall t in step: p(t) -> good(t)").rules
    with pytest.raises(RolloutScorerError, match="rule a is over the sort step"):
        RolloutScorer([step])
    (unknown,) = parse_rules("rule a: forall r in rollout: lenght(r) < 3 -> good(r)").rules
    with pytest.raises(UnknownPredicateError, match="did you mean `length`"):
        RolloutScorer([unknown])
    with pytest.raises(RolloutScorerError, match="expected max or mean"):
        RolloutScorer(RULES, over_turns="sum")  # type: ignore[arg-type]


def test_many_long_rollouts() -> None:
    """Every turn is read once: no work grows with the square of the turns but looking back for the same speaker."""
    many = [
        Transcript.of_messages([{"role": "assistant", "content": f"{i} {j}"} for j in range(100)]) for i in range(100)
    ]
    scores = RolloutScorer(RULES).score(many)
    assert scores.tolist() == pytest.approx([0.0] * 100)


def test_the_scores_are_a_reward_function_of_trl() -> None:
    pytest.importorskip("trl")
    from nser.trainers.trl.rewards import rule_reward

    reward = rule_reward(RolloutScorer(RULES).score)
    ids = [[1, 2], [3]]
    assert reward(prompts=["q", "q"], completions=["please", "I am sure"], completion_ids=ids) == pytest.approx(
        [1 - 0.5 * 0.75, 1.0]
    )
