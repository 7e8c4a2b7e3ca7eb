"""Draws, probabilities and weights follow the law, as the slow twin computes it."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from nser.replay import Law, ReplayIndex, Schedule, linear, preset
from tests.replay.twin import Twin

N = 1000


class Pair:
    """An index and its twin, fed the same."""

    def __init__(self, capacity: int, law: Law, seed: int = 0) -> None:
        self.index = ReplayIndex(capacity, law, seed=seed)
        self.twin = Twin(capacity, law)
        self.rng = np.random.default_rng(seed + 1000)

    def insert(self, n: int, related: float = 0.0, signals: Any = None) -> None:
        signals = self.rng.exponential(size=n) if signals is None else np.asarray(signals, np.float64)
        relevances = (self.rng.random(n) < related) * self.rng.random(n)
        slots = self.index.insert(n, signals, relevances)
        assert slots[0] == self.twin.head
        self.twin.insert(signals.tolist(), relevances.tolist())

    def update(self, batch: int = 256) -> None:
        draw = self.index.draw(batch)
        signals = np.zeros(N)
        signals[draw.slots] = self.rng.exponential(size=batch)  # one signal a slot, however often it was drawn
        assert self.index.update(draw, signals[draw.slots]) == 0
        self.twin.update(draw.slots, signals[draw.slots])

    def tick(self, n: int = 1) -> None:
        self.index.tick(n)
        self.twin.tick(n)

    def check(self, draws: int = 200_000) -> None:
        """Chi-square of independent and of stratified draws; stated probabilities and weights to 1e-9."""
        q, _ = self.twin.densities()
        assert np.array_equal(np.sort(self.index.live_slots()), self.twin.live)
        draw = self.index.draw(draws)
        np.testing.assert_allclose(draw.probabilities, q[draw.slots], rtol=1e-9)
        np.testing.assert_allclose(draw.weights, self.twin.weights(draw.slots), rtol=1e-9)
        counts = np.bincount(draw.slots, minlength=len(q)).astype(float)
        assert counts[q == 0].sum() == 0
        if self.index.law.stratified:
            # An item owns a stretch in each of three parts, and each stretch cuts at most two strata.
            assert np.abs(counts - draws * q).max() <= 6
        # Cells that expect fewer than five draws go together.
        rare = draws * q < 5
        observed = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(draws * q[~rare], draws * q[rare].sum())
        if expected[-1] < 5:
            observed, expected = observed[:-1], expected[:-1]
        assert chisquare(observed, expected * (observed.sum() / expected.sum())).pvalue > 0.01
        explained = self.index.explain(np.arange(len(q)))
        np.testing.assert_allclose(explained.probability, q, rtol=1e-9, atol=1e-300)


ETAS: list[float | Schedule] = [0.0, 3.0, 1e3, math.inf, linear(0, 8, 20)]
LAWS = {
    "per": Law(correct="full"),
    "proportional": Law(alpha=1.0, beta=1.0, correct="full"),
    "flat": Law(alpha=0.0),
    "age": Law(tau=300.0),
    "steep age": Law(alpha=1.0, tau=20.0, mix=0.9),
    "eviction": Law(max_age=120, tau=400.0),
    "mixture": Law(mix=0.7, correct="full"),
    "rules": Law(eta=4.0, correct="signal"),
    "rules, all undone": Law(eta=4.0, correct="full", beta=1.0),
    "guard": Law(eta=100.0, max_rule_share=0.2, tau=400.0),
    "guard and mixture": Law(eta=1e4, max_rule_share=0.3, mix=0.6, correct="full"),
    "rules alone": Law(eta=math.inf, max_rule_share=1.0, correct="full", mix=0.5),
    "rules as a component": Law(eta=math.inf, max_rule_share=0.25, mix=0.9),
    "everything": Law(alpha=0.7, tau=150.0, max_age=90, mix=0.8, eta=6.0, beta=0.5, correct="signal"),
    "schedules": Law(eta=linear(0.0, 8.0, 300), mix=linear(0.5, 1.0, 400), beta=linear(0.4, 1.0, 500)),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("stratified", [True, False])
def test_draws_follow_the_law_through_wraps_updates_and_rescoring(name: str, stratified: bool) -> None:
    pair = Pair(N, replace(LAWS[name], stratified=stratified), seed=3)
    for step in range(40):
        pair.insert(37, related=0.2)
        pair.tick(step % 9)
        if step % 5 == 0:
            pair.update()
        if step == 30:
            slots = pair.index.live_slots()[::7]
            scores = pair.rng.random(len(slots))
            pair.index.relate(slots, scores, version=2)
            pair.twin.relate(slots.tolist(), scores.tolist())
    pair.check()


@pytest.mark.parametrize("correct", ["full", "signal", "none"])
@pytest.mark.parametrize("normalise", ["batch", "buffer", "none"])
@pytest.mark.parametrize(
    "law",
    [
        Law(),
        Law(mix=0.8, epsilon=0.0),
        Law(eta=4.0, tau=50.0),
        Law(eta=50.0, max_rule_share=0.1, mix=0.9),
        Law(eta=math.inf, max_rule_share=1.0, mix=0.5, epsilon=0.0),
        Law(eta=math.inf, max_rule_share=1.0),
    ],
)
def test_weights_are_the_formula(law: Law, correct: Any, normalise: Any) -> None:
    pair = Pair(64, replace(law, correct=correct, normalise=normalise, beta=0.7), seed=5)
    for _ in range(9):
        pair.insert(11, related=0.4, signals=pair.rng.choice([0.0, 1.0, 2.5], size=11))
        pair.update(16)
        pair.tick(3)
    draw = pair.index.draw(40)
    np.testing.assert_allclose(draw.weights, pair.twin.weights(draw.slots), rtol=1e-9)
    explained = pair.index.explain(draw.slots)
    if normalise != "batch":
        np.testing.assert_allclose(explained.weight, draw.weights, rtol=1e-12)


@pytest.mark.parametrize("mix", [1.0, 0.5])
def test_the_least_weight_of_the_buffer_follows_updates(mix: float) -> None:
    pair = Pair(8, Law(mix=mix, normalise="buffer", correct="full"))
    pair.insert(8, signals=np.arange(1.0, 9.0))
    for least in (3.0, 0.5):
        draw = pair.index.draw(8, replace=False)
        signals = least + np.arange(8, dtype=np.float64)
        pair.index.update(draw, signals)
        pair.twin.update(draw.slots, signals)
        draw = pair.index.draw(3)
        np.testing.assert_allclose(draw.weights, pair.twin.weights(draw.slots), rtol=1e-9)


def test_the_law_holds_across_anchors_that_move() -> None:
    pair = Pair(N, Law(alpha=1.0, tau=2.0, mix=0.999, stratified=False), seed=8)
    for _ in range(150):
        pair.insert(20)
        pair.tick(7)  # 150 · 7 / 2 = 525: past the bound of 200 twice
    assert pair.index.state_dict()["origin"] > 0
    pair.check()


def test_a_clock_that_runs_on_alone_changes_no_ratio() -> None:
    pair = Pair(100, Law(alpha=1.0, tau=3.0, stratified=False), seed=2)
    for _ in range(10):
        pair.insert(10)
        pair.tick(1)
    before = pair.index.explain(np.arange(100)).probability
    pair.tick(100_000)
    np.testing.assert_allclose(pair.index.explain(np.arange(100)).probability, before, rtol=1e-12)
    pair.check()
    draw = pair.index.draw(50)
    pair.index.update(draw, np.full(50, 2.0))
    pair.twin.update(draw.slots, np.full(50, 2.0))
    pair.insert(1)
    pair.insert(3)
    pair.check()


@pytest.mark.parametrize("scale", [1e-280, 1e-30, 1e30, 1e300])
def test_signals_of_any_size_follow_the_law(scale: float) -> None:
    pair = Pair(50, Law(alpha=1.0, epsilon=0.0, stratified=False, eta=3.0), seed=4)
    pair.insert(25, related=0.5, signals=scale * pair.rng.random(25))
    pair.check(50_000)
    pair.insert(1, signals=[scale * 3])
    pair.insert(40, related=0.5, signals=scale * pair.rng.random(40))
    pair.check(50_000)
    draw = pair.index.draw(9, replace=False)
    signals = scale * np.arange(9, dtype=np.float64)
    pair.index.update(draw, signals)
    pair.twin.update(draw.slots, signals)
    pair.check(50_000)


def test_a_huge_signal_that_comes_and_goes_leaves_the_law_intact() -> None:
    pair = Pair(8, Law(alpha=2.0, epsilon=0.0, stratified=False), seed=6)
    pair.insert(7, signals=np.arange(1.0, 8.0))
    pair.insert(1, signals=[1e305])
    assert pair.index.draw(20).slots.tolist() == [7] * 20
    pair.insert(8, signals=np.arange(1.0, 9.0))
    pair.check(20_000)


def test_a_huge_signal_in_an_update_long_after_the_anchor_overflows_nothing() -> None:
    pair = Pair(8, Law(alpha=2.0, epsilon=0.0, tau=10.0, stratified=False), seed=6)
    pair.insert(4, signals=np.arange(1.0, 5.0))
    pair.tick(900)  # the newest weights are anchored e¹⁸⁰ above the oldest
    pair.insert(4, signals=np.arange(1.0, 5.0))
    draw = pair.index.draw(2, replace=False)
    for signals in (np.array([1e300, 2e300]), np.array([1e-300, 2e-300])):
        pair.index.update(draw, signals)
        pair.twin.update(draw.slots, signals)
        pair.check(20_000)


def test_a_point_that_rounding_put_at_one_finds_an_item_of_the_rules() -> None:
    pair = Pair(8, Law(eta=4.0))
    pair.insert(8, related=1.0)
    found = pair.index._sampler._find_sorted(pair.index._density(), np.array([0.0, 1.0]))
    assert found.tolist() == [0, 7]


def test_mixture_bounds_the_weights() -> None:
    pair = Pair(N, Law(mix=0.75, beta=1.0, normalise="none", epsilon=0.0), seed=7)
    pair.insert(N, signals=pair.rng.choice([0.0, 1.0, 1000.0], size=N))
    assert pair.index.draw(5000).weights.max() <= 0.25**-1 + 1e-12


def test_rules_never_owe_more_than_their_share() -> None:
    for share in (0.1, 0.5, 0.7):
        pair = Pair(N, Law(eta=1e5, max_rule_share=share, mix=0.95))
        pair.insert(N, related=0.02)
        stats = pair.index.stats()
        assert stats.rule_share == pytest.approx(share)
        assert stats.rule_share_unguarded > share
        assert stats.eta_in_force < stats.eta
        explained = pair.index.explain(np.arange(N))
        assert np.sum(explained.probability * explained.rule_share) == pytest.approx(share)
        assert explained.rule_share[explained.relevance == 0].max() == 0


def test_with_alpha_one_the_guard_scales_eta_itself() -> None:
    guarded = Pair(200, Law(alpha=1.0, eta=1000.0, max_rule_share=0.4), seed=1)
    guarded.insert(200, related=0.3)
    eta = guarded.index.stats().eta_in_force
    free = Pair(200, Law(alpha=1.0, eta=eta, max_rule_share=1.0), seed=1)
    free.insert(200, related=0.3)
    slots = np.arange(200)
    np.testing.assert_allclose(
        guarded.index.explain(slots).probability, free.index.explain(slots).probability, rtol=1e-12
    )


def test_relevance_never_lowers_a_weight() -> None:
    index = ReplayIndex(10, Law(eta=4.0))
    index.insert(10, signal=np.ones(10), relevance=np.linspace(0, 1, 10))
    tilted = index.explain(np.arange(10))
    assert (np.diff(tilted.probability) > 0).all()
    assert (tilted.rule_factor >= 1).all()


def test_draws_without_replacement_are_successive_draws() -> None:
    signals = np.array([8.0, 4.0, 2.0, 1.0])
    index = ReplayIndex(4, Law(alpha=1.0, epsilon=0.0, mix=0.9), seed=3)
    index.insert(4, signals)
    q = 0.9 * signals / signals.sum() + 0.1 / 4
    expected = {(a, b): q[a] * q[b] / (1 - q[a]) for a in range(4) for b in range(4) if a != b}
    counts = dict.fromkeys(expected, 0)
    draws = 20_000
    for _ in range(draws):
        first, second = index.draw(2, replace=False).slots.tolist()
        counts[first, second] += 1
    observed, wanted = list(counts.values()), [draws * p for p in expected.values()]
    assert chisquare(observed, wanted).pvalue > 0.01


def test_the_race_that_ends_a_draw_without_replacement_is_fair() -> None:
    # One item takes nearly every draw, so the rest is decided by the race.
    index = ReplayIndex(4, Law(alpha=1.0, epsilon=0.0), seed=4)
    index.insert(4, [1e12, 3.0, 2.0, 1.0])
    seconds = np.zeros(4)
    for _ in range(6000):
        draw = index.draw(2, replace=False)
        assert draw.slots[0] == 0
        seconds[draw.slots[1]] += 1
    assert chisquare(seconds[1:], 6000 * np.array([3, 2, 1]) / 6).pvalue > 0.01


def test_vlm_rb_draws_by_score_and_falls_back_to_uniform() -> None:
    law = preset("vlm-rb", mix=1.0, stratified=False)
    pair = Pair(60, law)
    pair.index.insert(60)
    pair.twin.insert([None] * 60)
    pair.check(20_000)  # unscored: all alike
    scores = np.repeat([1.0, 0.0], 30)
    pair.index.relate(np.arange(60), scores, version=1)
    pair.twin.relate(list(range(60)), scores.tolist())
    pair.check(20_000)
    draw = pair.index.draw(60)
    assert draw.slots.max() < 30
    pair.index.relate(np.arange(60), np.zeros(60), version=2)
    pair.twin.relate(list(range(60)), [0.0] * 60)
    with pytest.warns(UserWarning, match="drawing uniformly"):
        pair.check(20_000)


def test_rollout_grpo_keeps_ages_between_one_and_its_bound() -> None:
    index = ReplayIndex(300, preset("rollout-grpo"), seed=1)
    rng = np.random.default_rng(0)
    for _ in range(60):
        if len(index):
            draw = index.draw(8, replace=False)
            assert len(set(draw.slots.tolist())) == len(draw) == 8
            assert draw.ages.min() >= 1
            assert draw.ages.max() <= 10
            assert (draw.weights == 1).all()
        index.insert(16, rng.choice([0.378, 0.577, 1.0, 1.732, 2.646], size=16))
        index.tick()
    assert len(index) == 160  # τ_max times what is inserted a step, as the next draw sees it
    assert index.stats().eligible == 160


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_course_of_events_keeps_index_and_twin_together(data: st.DataObject) -> None:
    capacity = data.draw(st.integers(1, 12))
    law = Law(
        alpha=data.draw(st.sampled_from([0.0, 0.5, 1.0, 2.0])),
        epsilon=data.draw(st.sampled_from([0.0, 1e-6, 0.1])),
        tau=data.draw(st.sampled_from([1.0, 50.0, math.inf])),
        max_age=data.draw(st.sampled_from([None, 0, 5])),
        mix=data.draw(st.sampled_from([1.0, 0.5])),
        eta=data.draw(st.sampled_from(ETAS)),
        max_rule_share=data.draw(st.sampled_from([0.3, 1.0])),
        normalise=data.draw(st.sampled_from(["batch", "buffer", "none"])),
        correct=data.draw(st.sampled_from(["full", "signal"])),
        stratified=data.draw(st.booleans()),
    )
    pair = Pair(capacity, law)
    signal = st.sampled_from([0.0, 1e-3, 1.0, 40.0])
    relevance = st.sampled_from([0.0, 0.5, 1.0])
    for _ in range(data.draw(st.integers(1, 8))):
        n = data.draw(st.integers(1, capacity))
        signals = data.draw(st.one_of(st.none(), st.lists(signal, min_size=n, max_size=n)))
        scores = data.draw(st.one_of(st.none(), st.lists(relevance, min_size=n, max_size=n)))
        pair.index.insert(n, signals, scores)
        pair.twin.insert([None] * n if signals is None else list(signals), scores)
        pair.tick(data.draw(st.sampled_from([0, 1, 3, 400])))
        live = pair.twin.live
        rescored = data.draw(st.booleans())
        if live and rescored:
            slot = data.draw(st.sampled_from(live))
            score = data.draw(relevance)
            pair.index.relate([slot], [score], version=1)
            pair.twin.relate([slot], [score])
        assert sorted(pair.index.live_slots().tolist()) == live
        if live:
            check_draw(pair, data.draw(signal))


def check_draw(pair: Pair, signal: float) -> None:
    """One draw of either kind is as the twin says; then its first item gets ``signal``."""
    q, _ = pair.twin.densities()
    pair.index._warned = True
    for replaced in (True, False):
        draw = pair.index.draw(5, replace=replaced)
        # A twin in linear space and the index in log space part where weights underflow.
        np.testing.assert_allclose(draw.probabilities, q[draw.slots], rtol=1e-9, atol=1e-200)
        assert (q[draw.slots] > 0).all()
        if (q[q > 0] > 1e-100).all():
            np.testing.assert_allclose(draw.weights, pair.twin.weights(draw.slots), rtol=1e-9)
    fresh = draw.slots[:1]
    assert len(set(draw.slots.tolist())) == len(draw)
    pair.index.update(replace(draw, slots=fresh, generations=draw.generations[:1]), [signal])
    pair.twin.update(fresh, np.array([signal]))
