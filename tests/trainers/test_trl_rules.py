"""What rules do inside TRL: decide what is drawn, weigh the loss, or give a reward."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("trl", reason="needs the extra: pip install nser[trl]")

from nser.replay import ArgumentError, Law
from nser.rollouts import Rollout, StoreSettings
from nser.rules.parse import parse_rules
from nser.scorers.rollouts import RolloutScorer
from nser.trainers import digits
from nser.trainers.trl import RolloutReplay, rule_reward
from tests.trainers.trl_host import graded, record_batches, record_draws, trainer

SEVENS = RolloutScorer(parse_rules('rule sevens [0.5]: forall r in rollout: contains(r, "7") -> good(r)').rules)
EAGER = StoreSettings(law=Law(eta=1e6, max_rule_share=1.0, beta=0.0))


def last_word_is_early(rollouts: Sequence[Rollout]) -> list[float]:
    return [float(rollout.response_ids[-1] < 11) for rollout in rollouts]


def test_relevance_decides_what_is_drawn(tmp_path: Path) -> None:
    host = trainer(tmp_path, replay=RolloutReplay(store=EAGER, scorer=last_word_is_early), max_steps=6)
    drawn = record_draws(host)
    host.train()
    chosen = [rollout for replayed in drawn[2:] for rollout in replayed.rollouts]
    assert len(chosen) == 16
    assert all(rollout.rule_score == 1.0 for rollout in chosen)
    stored = host.rollout_store.rollouts(host.rollout_store.live_slots())
    assert [rollout.rule_score for rollout in stored] == last_word_is_early(stored)


def test_weights_multiply_fresh_and_replayed_advantages(tmp_path: Path) -> None:
    advantages = {}
    for strength in (0.0, 3.0):
        replay = RolloutReplay(scorer=last_word_is_early, use="weight", strength=strength)
        host = trainer(tmp_path / str(strength), replay=replay, max_steps=1)
        batches = record_batches(host)
        host.train()
        advantages[strength] = batches[0]["advantages"]
    last = batches[0]["completion_ids"].gather(1, batches[0]["completion_mask"].sum(1, keepdim=True) - 1).squeeze(1)
    wanted = torch.where(last < 11, 4.0, 1.0)
    torch.testing.assert_close(advantages[3.0], advantages[0.0] * wanted)
    assert len(wanted.unique()) == 2
    # What is stored is the advantage of birth, and the law sees no rules.
    host._replayer.store.advance(1)
    host._replayer._admit()
    assert host.rollout_store.settings.law.eta == 0.0
    replayed = host.rollout_store.draw(4)
    weights = host._replayer._loss_weights(replayed.rollouts)
    assert weights.tolist() == [1 + 3 * score for score in last_word_is_early(replayed.rollouts)]
    assert all(abs(r.advantage) <= advantages[0.0].abs().max() for r in replayed.rollouts)


def test_other_rules_score_what_is_stored_anew(tmp_path: Path) -> None:
    host = trainer(tmp_path, replay=RolloutReplay(scorer=last_word_is_early), max_steps=4)
    host.train()
    host.rescore(SEVENS.score, version=2)
    stored = host.rollout_store.rollouts(host.rollout_store.live_slots())
    assert [rollout.rule_score for rollout in stored] == SEVENS.score(stored).tolist()
    host.rescore(None, version=3)
    stored = host.rollout_store.rollouts(host.rollout_store.live_slots())
    assert {rollout.rule_score for rollout in stored} == {0.0}


def test_rules_as_a_reward_of_the_real_trainer(tmp_path: Path) -> None:
    host = trainer(
        tmp_path,
        reward=[graded, rule_reward(SEVENS.score, "sevens")],
        reward_weights=[1.0, 2.0],
        max_steps=3,
        logging_strategy="steps",
        logging_steps=1,
    )
    host.train()
    assert all(0 <= logged["rewards/sevens/mean"] <= 0.5 for logged in host.state.log_history[:3])
    for rollout in host.rollout_store.rollouts(host.rollout_store.live_slots()):
        seven = 0.5 if "7" in rollout.metadata["messages"][-1]["content"] else 0.0
        assert rollout.reward == pytest.approx(graded([rollout.response_ids.tolist()])[0] + 2 * seven, abs=1e-5)


def test_a_reward_sees_text_ids_and_columns() -> None:
    seen: list[Rollout] = []

    def scorer(rollouts: Sequence[Rollout]) -> list[float]:
        seen.extend(rollouts)
        return [0.25] * len(rollouts)

    reward = rule_reward(scorer, "rules", task="digit")
    found = reward(prompts=["say 1"], completions=["1 2"], completion_ids=[[5, 6]], digit=["1"], trainer_state=object())
    assert found == [0.25]
    assert reward.__name__ == "rules"
    assert seen[0].task == "1"
    assert seen[0].metadata["columns"] == {"digit": "1"}
    assert [message["content"] for message in seen[0].metadata["messages"]] == ["say 1", "1 2"]
    assert seen[0].response_ids.tolist() == [5, 6]


@pytest.mark.parametrize("scores", [[0.5], [0.5, 1.5], [0.5, np.nan]])
def test_scores_that_are_none_are_refused(scores: list[float]) -> None:
    reward = rule_reward(lambda rollouts: scores)
    with pytest.raises(ArgumentError, match="scorer"):
        reward(prompts=["a", "b"], completions=["", ""], completion_ids=[[1], [2]])


def test_the_word_world_is_what_it_says() -> None:
    tokens = digits.tokenizer()(["say 7", "say"], padding=True)
    assert tokens["input_ids"] == [[3, 11], [0, 3]]
    assert digits.prompts(12)["digit"][10] == "0"
    before = torch.random.get_rng_state()
    one, other = digits.model(3), digits.model(3)
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert sum(weight.numel() for weight in one.parameters()) == 85_056
