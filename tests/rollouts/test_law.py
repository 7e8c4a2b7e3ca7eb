"""Draws from a store follow the law, by |advantage|, by age and by rules, also where rollouts arrive late."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare

from nser.replay import Law
from nser.rollouts import Replayed, RolloutStore, StoreSettings
from tests.rollouts.making import rollout
from tests.rollouts.twin import StoreTwin

LAWS = {
    "advantage": Law(alpha=0.5),
    "advantage alone, no floor": Law(alpha=1.0, epsilon=0.0),
    "age": Law(alpha=0.6, tau=3.0),
    "eviction": Law(max_age=4, mix=0.7),
    "rules": Law(eta=4.0, max_rule_share=1.0),
    "uniform": Law(alpha=0.0, mix=0.0, max_age=5),
    "everything": Law(alpha=0.7, tau=4.0, max_age=5, mix=0.9, eta=6.0, max_rule_share=1.0, epsilon=0.05),
}


def filled(law: Law, replace_: bool, lags: bool) -> tuple[RolloutStore, StoreTwin]:
    """Forty items of seven versions, through one wrap, some of them three versions late."""
    settings = StoreSettings(capacity=40, law=law, replace=replace_, zero_signal=None)
    store, twin, rng = RolloutStore(settings, seed=3), StoreTwin(settings), np.random.default_rng(7)
    for version in range(7):
        store.advance(version)
        twin.advance(version)
        first = [max(version - int(rng.integers(4)), 0) if lags else version for _ in range(8)]
        new = [
            rollout(8 * version + i, policy_version=(first[i], version), advantage=float(rng.normal()),
                    rule_score=float(rng.random() * (rng.random() < 0.5)))
            for i in range(8)
        ]  # fmt: skip
        store.admit(new)
        twin.admit(new)
    store.advance(8)
    twin.advance(8)
    return store, twin


def expected(twin: StoreTwin, capacity: int = 40) -> np.ndarray:
    q = np.zeros(capacity)
    for slot, probability in twin.densities().items():
        q[slot] = probability
    return q


@pytest.mark.parametrize("lags", [False, True])
@pytest.mark.parametrize("name", LAWS)
def test_draws_with_replacement_follow_the_law(name: str, lags: bool) -> None:
    # Independent draws: the counts of stratified ones vary less than chi-square takes for granted.
    store, twin = filled(replace(LAWS[name], stratified=False), True, lags)
    q = expected(twin)
    draw = store.draw(10_000).draw
    counts = np.bincount(draw.slots, minlength=40)
    np.testing.assert_allclose(draw.probabilities, q[draw.slots], rtol=1e-9)
    assert counts[q == 0].sum() == 0
    assert chisquare(counts[q > 0], 10_000 * q[q > 0]).pvalue > 0.01


@pytest.mark.parametrize("lags", [False, True])
def test_stratified_draws_have_the_same_expectation(lags: bool) -> None:
    store, twin = filled(LAWS["everything"], True, lags)
    counts = np.bincount(store.draw(10_000).draw.slots, minlength=40)
    # What is too old is drawn again, by independent draws for the few that hit it.
    np.testing.assert_allclose(counts / 10_000, expected(twin), atol=0.008)


@pytest.mark.parametrize("lags", [False, True])
@pytest.mark.parametrize("name", ["age", "eviction", "uniform", "everything"])
def test_draws_without_replacement_are_successive_draws(name: str, lags: bool) -> None:
    """The first follows q; the second follows q without the first."""
    store, twin = filled(LAWS[name], False, lags)
    q = expected(twin)
    draw = store.draw(5).draw
    np.testing.assert_allclose(draw.probabilities, q[draw.slots], rtol=1e-9)
    pairs = np.array([store.draw(2).draw.slots for _ in range(1_500)])
    assert (pairs[:, 0] != pairs[:, 1]).all()
    second = sum(q[first] * np.where(np.arange(40) == first, 0.0, q / (1 - q[first])) for first in range(40))
    for counts, law in ((np.bincount(pairs[:, 0], minlength=40), q), (np.bincount(pairs[:, 1], minlength=40), second)):
        assert counts[law == 0].sum() == 0
        assert chisquare(counts[law > 0], 1_500 * law[law > 0]).pvalue > 0.01


def test_any_first_part_of_a_draw_is_a_draw() -> None:
    store, twin = filled(LAWS["age"], True, False)
    firsts = [int(store.draw(8).draw.slots[0]) for _ in range(1_500)]
    q = expected(twin)
    assert chisquare(np.bincount(firsts, minlength=40)[q > 0], 1_500 * q[q > 0]).pvalue > 0.01


def test_a_lag_is_the_same_law_as_an_early_admission() -> None:
    """Born at 2 and admitted at 5 is drawn as often as born and admitted at 2."""
    law = Law(alpha=0.6, tau=2.0, epsilon=0.3)
    early, late = (RolloutStore(StoreSettings(capacity=4, law=law, zero_signal=None)) for _ in range(2))
    old, new = rollout(1, 2, advantage=0.0), rollout(2, 5)
    for version in range(6):
        early.advance(version)
        early.admit([one for one in (old, new) if one.policy_version[0] == version])
    late.advance(5)
    late.admit([old, new])
    np.testing.assert_allclose(early.explain([0, 1]).probability, late.explain([0, 1]).probability, rtol=1e-12)
    assert late.explain([0, 1]).age.tolist() == [3, 0]
    assert late.explain([0, 1]).signal.tolist() == [0.0, 1.0]


def test_the_share_owed_to_rules_is_held_and_told() -> None:
    law = Law(eta=1e4, max_rule_share=0.3)
    store = RolloutStore(StoreSettings(capacity=50, law=law, replace=True))
    store.admit([rollout(i, rule_score=float(i == 0)) for i in range(50)])
    assert store.metrics().rule_share == pytest.approx(0.3)
    explained = store.explain(store.live_slots())
    assert explained.rule_share[0] > 0.9
    assert explained.probability[0] == pytest.approx(0.3 + 0.7 / 50)
    assert (store.draw(8_000).draw.slots == 0).mean() == pytest.approx(0.314, abs=0.02)


def test_weights_undo_the_law_and_are_divided_by_the_largest_of_the_batch() -> None:
    law = Law(alpha=1.0, beta=1.0, correct="full", mix=0.9)
    store = RolloutStore(StoreSettings(capacity=64, law=law, replace=True))
    store.admit([rollout(i, advantage=float(1 + i)) for i in range(64)])
    drawn: Replayed = store.draw(512)
    assert drawn.weights.max() == 1.0
    np.testing.assert_allclose(drawn.weights * drawn.draw.probabilities, drawn.draw.probabilities.min(), rtol=1e-9)
