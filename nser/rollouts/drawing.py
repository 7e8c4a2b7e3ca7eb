"""Draws from the index of a store, with the store's definition of age.

The index forgets items ``max_age`` versions after their *admission*. Where rollouts arrive with a lag, some are too
old before that: draws leave them out, and so follow the law of all items that the index holds, given that the item is
young enough. (Without replacement the order of the others does not depend on them; with replacement a draw is
repeated.) Probabilities and weights are those of this density. It is the law over the young ones alone wherever λ is 0
or 1 and the guard of the rules idle; else their parts of the mixture differ by the little that the old ones would get.
"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nser.replay import Draw, Explanation, ReplayIndex
from nser.replay.types import Floats, Ints
from nser.rollouts.settings import StoreSettings

ROUNDS = 64  # of a draw with replacement, before fewer items are accepted


class Drawing:
    """Draws slots of ``index``; ``rows`` of a store say how old they are; ``rng`` is for the order alone."""

    def __init__(self, index: ReplayIndex, rows: NDArray, settings: StoreSettings, rng: np.random.Generator) -> None:
        self.index = index
        self.rows = rows
        self.settings = settings
        self.rng = rng
        self.lagging = False  # whether anything was ever admitted later than in the version that generated it

    def too_old(self) -> Ints:
        """The slots that the index holds and that no draw may give, oldest admission first."""
        limit = self.settings.law.max_age
        if limit is None or not self.lagging:
            return np.zeros(0, np.int64)
        live = self.index.live_slots()
        return live[self.rows["first"][live] < self.index.clock - limit]

    def folded(self, signals: Floats, lags: Ints) -> Floats:
        """What the index takes for signals σ (n,) ≥ 0 of items with these lags (n,): (σ + ε) exp(−lag/τ)."""
        law = self.settings.law
        return (signals + law.epsilon) * np.exp(-lags / law.tau)

    def draw(self, count: int) -> Draw:
        """At most ``count`` items in random order, weights divided by the largest; nothing is marked."""
        out = self.too_old()
        if count == 0 or len(self.index) == len(out):
            return self._with_ages(_empty())
        if self.settings.replace:
            draw = self._with_replacement(count, out)
        else:
            draw = self.index.draw(count + len(out), replace=False)
            draw = _take(draw, ~np.isin(draw.slots, out))
        if len(out):
            rest = 1.0 - float(self.index.explain(out).probability.sum())
            draw = replace(draw, probabilities=draw.probabilities / rest)
        return self.first(self._with_ages(draw), count)

    def first(self, draw: Draw, count: int) -> Draw:
        """The first ``count`` items of a draw, weights divided by their largest."""
        part = _take(draw, slice(count))
        return replace(part, weights=part.weights / part.weights.max(initial=0.0)) if len(part) else part

    def explain(self, slots: ArrayLike) -> Explanation:
        """The factors of ``slots`` (n,), with the store's signals and ages; raises ``SlotError``."""
        told = self.index.explain(slots)
        out = self.too_old()
        barred = np.isin(told.slots, out)
        rest = 1.0 - float(self.index.explain(out).probability.sum()) if len(out) else 1.0
        ever = told.generation > 0
        age = np.where(ever, self.index.clock - self.rows["first"][told.slots], 0)
        return replace(
            told,
            live=told.live & ~barred,
            signal=np.where(ever, self.rows["signal"][told.slots], 0.0),
            age=age,
            decay=np.exp(-age / self.settings.law.tau),
            probability=np.where(barred, 0.0, told.probability / rest if rest > 0 else 0.0),
            rule_share=np.where(barred, 0.0, told.rule_share),
            weight=np.where(barred, 0.0, told.weight),
        )

    def _with_replacement(self, count: int, out: Ints) -> Draw:
        parts: list[Draw] = []
        missing = count
        for _ in range(ROUNDS):
            draw = self.index.draw(missing)
            parts.append(_take(draw, ~np.isin(draw.slots, out)))
            missing -= len(parts[-1])
            if missing == 0:
                break
        joined = Draw(*(np.concatenate([getattr(part, item.name) for part in parts]) for item in fields(Draw)))
        # Stratified draws come sorted by slot, and any first part of this one should be a draw.
        return _take(joined, self.rng.permutation(len(joined)))

    def _with_ages(self, draw: Draw) -> Draw:
        return replace(draw, ages=self.index.clock - self.rows["first"][draw.slots])


def _take(draw: Draw, part: NDArray | slice) -> Draw:
    return Draw(*(getattr(draw, item.name)[part] for item in fields(Draw)))


def _empty() -> Draw:
    return Draw(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0, np.int64))
