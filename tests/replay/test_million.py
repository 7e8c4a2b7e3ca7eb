"""The exact law at 10⁶ items, where no item is drawn often enough to be counted by itself: bins are."""

from __future__ import annotations

import numpy as np
from scipy.stats import chisquare

from nser.replay import Law, ReplayIndex
from nser.replay.draw import Draw

ITEMS = 10**6
LAW = Law(alpha=0.6, epsilon=1e-3, tau=400.0, mix=0.9, beta=0.5, eta=4.0, correct="full", normalise="none")


def test_a_million_items_are_drawn_by_the_law_after_two_wraps_with_age_rules_and_updates() -> None:
    generator = np.random.default_rng(5)
    index = ReplayIndex(ITEMS, LAW, seed=9)
    signal, birth = np.zeros(ITEMS), np.zeros(ITEMS)
    for _ in range(24):  # 2.4 times the capacity
        given = generator.exponential(size=ITEMS // 10)
        slots = index.insert(len(given), given)
        signal[slots], birth[slots] = given, index.clock
        index.tick(25)
        drawn = index.draw(5000)
        mended = generator.exponential(size=5000)
        index.update(drawn, mended)
        signal[drawn.slots] = mended  # of an item drawn twice the last one counts, here as there
    relevance = np.zeros(ITEMS)
    chosen = generator.choice(ITEMS, ITEMS // 50, replace=False)
    relevance[chosen] = generator.random(len(chosen))
    index.relate(chosen, relevance[chosen], 3)

    age = index.clock - birth
    plain = ((signal + LAW.epsilon) * np.exp(-age / LAW.tau)) ** LAW.alpha
    tilted = plain * (1 + 4.0 * relevance) ** LAW.alpha
    assert (tilted.sum() - plain.sum()) / tilted.sum() < LAW.max_rule_share, "the guard would have a part in it"
    expected = 0.9 * tilted / tilted.sum() + 0.1 / ITEMS

    draws = [index.draw(20_000) for _ in range(20)]
    _check_weights(draws[0], expected)
    slots = np.concatenate([draw.slots for draw in draws])
    # By place, by age and by relevance: each cuts the items into bins that hold 1,000 draws and more.
    for bins in (np.arange(ITEMS) * 100 // ITEMS, (age / 25).astype(int), (relevance * 10).astype(int)):
        counts = np.bincount(bins[slots], minlength=bins.max() + 1)
        share = np.bincount(bins, weights=expected, minlength=bins.max() + 1)
        kept = share * len(slots) > 20
        rest = np.append(counts[kept], counts[~kept].sum()), np.append(share[kept], share[~kept].sum()) * len(slots)
        observed, wanted = (part[: len(part) if rest[1][-1] > 5 else -1] for part in rest)
        assert chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue > 0.01


def _check_weights(draw: Draw, expected: np.ndarray) -> None:
    np.testing.assert_allclose(draw.probabilities, expected[draw.slots], rtol=1e-9)
    np.testing.assert_allclose(draw.weights, (ITEMS * expected[draw.slots]) ** -0.5, rtol=1e-9)
