"""The weights g and h of the law as trees, kept exact while items come, age, and change.

All items share τ, so the factor exp(−αt/τ) of the clock t cancels in every ratio. Weights are therefore
*birth-anchored*: g_i = exp(α ln b_i + (α/τ)(t_i − origin) − offset). Growing older touches nothing; only
inserts and changes of signal or relevance do. When exponents grow too large, ``rebuild`` moves origin and
offset in one vectorised pass, in log space: the largest weight becomes 1, the oldest underflow to 0 quietly.
"""

import math

import numpy as np

from nser.replay.items import Items
from nser.replay.law import Law
from nser.replay.sum_tree import Kernels, MaxTree, Peak, SumTree
from nser.replay.types import Floats, Ints, Numbers

MAX_DRIFT = 200.0  # of (α/τ)(t − origin), before the anchor moves
MAX_EXPONENT = 300.0  # of any weight: 10⁹ times e³⁰⁰ times the largest rule factor is still finite
LEAST_TOTAL = 1e-200  # a smaller sum has lost precision


class Forest:
    """Trees over the columns ``items`` under ``law``; the columns are written first, then the trees.

    ``base`` sums g. ``bonus`` sums h = g · boost, None when the law has no rules; ``boost`` (capacity,) is
    r^α − 1 (η = ∞: s^α) at the η in force. ``peak`` is the maximum of the live signals. ``least`` and
    ``least_positive`` hold −g of live items and of those with g > 0, None unless weights need them.
    """

    def __init__(self, items: Items, law: Law, eta: float, kernels: Kernels) -> None:
        self.items = items
        self.law = law
        self.eta = eta
        self.origin = 0
        self.offset = 0.0
        self.base = SumTree(items.capacity, kernels)
        self.peak = Peak(items.signal_blocks, items.generation_blocks, kernels)
        self.bonus = SumTree(items.capacity, kernels) if law.uses_rules else None
        self.boost: Floats | None = np.zeros(items.capacity) if law.uses_rules else None
        self.related = False  # whether any boost was ever positive
        wanted = law.normalise == "buffer" and law.correct != "none"
        self.least = MaxTree(items.capacity, kernels) if wanted else None
        self.least_positive = MaxTree(items.capacity, kernels) if wanted else None
        # (α/τ)(t_i − origin) − offset of each slot; None while that is the same for all.
        self.log_decay: Floats | None = np.zeros(items.capacity) if law.rate > 0 else None
        self.kernels = kernels

    def put_one(self, slot: int, signal: float, boost: float, clock: int) -> None:
        """Write the trees for one new item of ``slot``, whose columns are written; ``boost`` of its relevance."""
        weight = self.weight_of(signal, clock)
        self.peak.mend(slot, slot + 1)
        if weight is None:
            self._set_boost(slot, slot + 1, boost)
            self.rebuild(clock)
            return
        if self.log_decay is not None:
            self.log_decay[slot] = self._drift(clock)
        self.kernels.put_one(self.base.nodes, self.base.leaf + slot, weight)
        if self.least is not None:
            self._put_least(slot, slot + 1, weight)
        if boost > 0 or (self.boost is not None and self.boost[slot] > 0):
            self._set_boost(slot, slot + 1, boost)
            self._put_bonus(slot, slot + 1)

    def put_same(self, start: int, stop: int, numbers: Numbers, boost: float, clock: int) -> None:
        """As ``put`` for items all alike, columns included; not for laws that keep minima.

        ``numbers``: signal, relevance, and the weight by ``weight_of``.
        """
        items, base, peak = self.items, self.base, self.peak
        self.kernels.put_same(
            (items.birth, items.generation, items.version, items.signal, items.relevance),
            (base.nodes, peak.nodes),
            peak.blocks,
            (base.leaf, start, stop, clock),
            numbers,
        )
        if self.log_decay is not None:
            self.log_decay[start:stop] = self._drift(clock)
        if boost > 0.0 or self.related:
            self._set_boost(start, stop, boost)
            self._put_bonus(start, stop)

    def put(self, start: int, stop: int, signal: Floats, boost: Floats | float, clock: int) -> None:
        """As ``put_one`` for the slots start … stop − 1; ``signal`` (stop − start,), ``boost`` the same or one."""
        self._set_boost(start, stop, boost)
        self.peak.mend(start, stop)
        exponent = self.log_signal(signal)
        if self._must_rebuild(float(exponent.max()) + self._drift(clock), clock):
            self.rebuild(clock)
            return
        exponent += self._drift(clock)
        weight = np.exp(exponent, out=exponent)
        if self.log_decay is not None:
            self.log_decay[start:stop] = self._drift(clock)
        self.base.put(start, stop, weight)
        if self.least is not None:
            self._put_least(start, stop, weight)
        if self.related:
            self._put_bonus(start, stop)

    def update(self, slots: Ints, signal: Floats, largest: float, clock: int) -> None:
        """Give live ``slots`` (n,) these signals (n,), in column and trees; ``largest`` ≥ all of them."""
        self.peak.write(slots, signal)
        exponent = self.log_signal(signal)
        if self.log_decay is not None:
            exponent += self.log_decay.take(slots)
        elif self.offset:
            exponent -= self.offset
        # The cheap bound first: it is passed by huge signals alone, or when nothing was inserted for long.
        bound = self.law.alpha * math.log(largest + self.law.epsilon or 1.0) + self._drift(clock)
        if bound > MAX_EXPONENT and exponent.max() > MAX_EXPONENT:
            self.rebuild(clock)
            return
        weight = np.exp(exponent, out=exponent)
        self.base.write(slots, weight)
        if self.least is not None and self.least_positive is not None:
            self.least.write(slots, 0.0 - weight)
            self.least_positive.write(slots, np.where(weight > 0, 0.0 - weight, -np.inf))
        if self.related and self.bonus is not None and self.boost is not None:
            boost = self.boost.take(slots)
            related = boost.nonzero()[0]
            if related.size:
                self.bonus.write(slots.take(related), (weight * boost).take(related))

    def relate(self, slots: Ints, relevance: Floats) -> None:
        """Write the trees for live ``slots`` (n,) whose relevances (n,) changed."""
        if self.bonus is None or self.boost is None:
            return
        self.boost[slots] = self.boost_of(relevance)
        self.related = True
        self.bonus.write(slots, self.base.take(slots) * self.boost.take(slots))

    def clear(self, start: int, stop: int) -> None:
        """Empty the leaves of the slots start … stop − 1, which died."""
        self.base.put(start, stop, 0.0)
        self.peak.mend(start, stop)
        if self.least is not None and self.least_positive is not None:
            self.least.put(start, stop, -np.inf)
            self.least_positive.put(start, stop, -np.inf)
        if self.related:
            self._put_bonus(start, stop)

    def retune(self, eta: float) -> None:
        """Take another η: every boost and bonus anew, O(capacity)."""
        self.eta = eta
        if self.bonus is not None and self.boost is not None:
            self.boost[:] = self.boost_of(self.items.relevance)
            self.related = bool(self.boost.any())
            self.bonus.rebuild(self.base.leaves * self.boost)

    def rebuild(self, clock: int) -> None:
        """Anchor at ``clock`` so that the largest weight is 1, and compute every weight anew; O(capacity)."""
        filled = self.items.filled
        exponent = self.log_signal(self.items.signal[:filled])
        drift = self.law.rate * (self.items.birth[:filled] - clock)
        top = float(np.max(exponent + drift, initial=-np.inf, where=self.items.is_live()))
        self.origin = clock
        self.offset = top if top > -np.inf else 0.0
        if self.log_decay is not None:
            self.log_decay[:filled] = drift - self.offset
        exponent += drift - self.offset
        weight = np.exp(exponent, where=self.items.is_live(), out=np.zeros(filled))
        self.restore(weight)

    def restore(self, weight: Floats) -> None:
        """Make every tree but ``peak`` anew from the weights (filled,) of the base tree; dead slots 0."""
        self.base.rebuild(weight)
        if self.bonus is not None and self.boost is not None:
            self.bonus.rebuild(weight * self.boost[: len(weight)])
        if self.least is not None and self.least_positive is not None:
            live = self.items.is_live()
            self.least.rebuild(np.where(live, 0.0 - weight, -np.inf))
            self.least_positive.rebuild(np.where(weight > 0, 0.0 - weight, -np.inf))

    def settle(self, clock: int) -> None:
        """Before a draw: rebuild when the sum is so small that it lost precision though a signal is positive."""
        if self.base.root < LEAST_TOTAL and self.peak.root + self.law.epsilon > 0:
            self.rebuild(clock)

    def weight_of(self, signal: float, clock: int) -> float | None:
        """g of one item born at ``clock``; None where the anchor has to move first."""
        base = signal + self.law.epsilon
        exponent = self._drift(clock) + (self.law.alpha * math.log(base) if base > 0 else -math.inf)
        if self._must_rebuild(exponent, clock):
            return None
        return math.exp(exponent) if self.law.alpha > 0 else 1.0

    def log_signal(self, signal: Floats) -> Floats:
        """α ln b (n,) of signals (n,); −inf where b is 0, and 0 for all when α is 0."""
        if self.law.alpha == 0:
            return np.zeros(len(signal))
        base = signal + self.law.epsilon
        if self.law.epsilon > 0:
            exponent = np.log(base, out=base)
        else:
            with np.errstate(divide="ignore"):
                exponent = np.log(base, out=base)
        exponent *= self.law.alpha
        return exponent

    def boost_of(self, relevance: Floats) -> Floats:
        """r^α − 1 (n,) of relevances (n,), or s^α when η is ∞."""
        if self.eta == math.inf:
            return np.asarray(relevance**self.law.alpha)
        return np.expm1(self.law.alpha * np.log1p(self.eta * relevance))

    def _drift(self, clock: int) -> float:
        return self.law.rate * (clock - self.origin) - self.offset

    def _must_rebuild(self, exponent: float, clock: int) -> bool:
        return exponent > MAX_EXPONENT or self.law.rate * (clock - self.origin) > MAX_DRIFT

    def _set_boost(self, start: int, stop: int, boost: Floats | float) -> None:
        if self.boost is None:
            return
        self.boost[start:stop] = boost
        self.related = self.related or bool(np.any(boost))

    def _put_bonus(self, start: int, stop: int) -> None:
        if self.bonus is not None and self.boost is not None:
            self.bonus.put(start, stop, self.base.leaves[start:stop] * self.boost[start:stop])

    def _put_least(self, start: int, stop: int, weight: Floats | float) -> None:
        if self.least is not None and self.least_positive is not None:
            self.least.put(start, stop, 0.0 - weight)
            positive = np.asarray(weight) > 0
            self.least_positive.put(start, stop, np.where(positive, 0.0 - np.asarray(weight), -np.inf))
