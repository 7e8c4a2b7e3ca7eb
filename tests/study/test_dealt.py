from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nser.envs.make import make_env, vocabulary_of
from nser.experience.trajectories import as_steps
from nser.scorers.rules import RuleScorer
from nser.study.beforehand import rules_beforehand
from nser.study.dealt import DealtScorer, dealt

SCORES = st.lists(st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=40)


@given(SCORES, st.integers(0, 1000))
def test_the_same_scores_are_dealt_out(scores: list[float], seed: int) -> None:
    lots = np.random.default_rng(seed).random(len(scores))
    found = dealt(np.array(scores), lots)
    assert sorted(found) == sorted(scores)
    assert (np.diff(found[np.argsort(lots)]) >= 0).all()


def test_what_is_dealt_says_nothing_about_what_happened() -> None:
    rng = np.random.default_rng(0)
    scores = (rng.random(20_000) < 0.1).astype(float)
    found = dealt(scores, rng.random(20_000))
    assert abs(np.corrcoef(scores, found)[0, 1]) < 0.02


def test_what_is_boosted_stays_boosted_as_new_transitions_come() -> None:
    env = make_env("MiniGrid-DoorKey-5x5-v0")
    vocabulary = vocabulary_of(env)
    rng = np.random.default_rng(1)
    observations, actions = [env.reset(seed=0)[0]], rng.integers(7, size=400)
    for action in actions[:-1]:
        observations.append(env.step(action)[0])
    steps = as_steps(np.stack(observations), actions, np.zeros(400, np.int64))
    rules = RuleScorer(rules_beforehand(vocabulary, "wrong", audited=False), vocabulary)
    scorer = DealtScorer(rules, rng.random(1000), lambda newest: np.arange(400)[-newest:])
    whole = scorer.relevance(steps)
    assert np.isclose(np.sort(whole), np.sort(rules.relevance(steps))).all()
    assert 0.05 < whole.mean() < 0.9
    part = scorer.relevance(steps[200:])
    assert ((part > 0.5) == (whole[200:] > 0.5)).mean() > 0.9
