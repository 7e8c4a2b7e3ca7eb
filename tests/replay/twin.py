"""The law written plainly, one item at a time: the slow twin that the index is held against."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from nser.replay import Law, Schedule
from nser.replay.types import Floats, Ints


@dataclass
class Item:
    signal: float
    birth: int
    relevance: float


def at(value: float | Schedule, clock: int) -> float:
    return value(clock) if isinstance(value, Schedule) else value


class Twin:
    """Same calls as ReplayIndex, for one item at a time; slots as a list."""

    def __init__(self, capacity: int, law: Law) -> None:
        self.law = law
        self.clock = 0
        self.head = 0
        self.items: list[Item | None] = [None] * capacity

    @property
    def live(self) -> list[int]:
        return [slot for slot, item in enumerate(self.items) if item is not None]

    def insert(self, signals: list[float | None], relevances: list[float] | None = None) -> None:
        newest = max((item.signal for item in self.items if item is not None), default=1.0)
        for position, signal in enumerate(signals):
            relevance = self.law.default_relevance if relevances is None else relevances[position]
            self.items[self.head] = Item(newest if signal is None else signal, self.clock, relevance)
            self.head = (self.head + 1) % len(self.items)

    def update(self, slots: Ints, signals: Floats) -> None:
        for slot, signal in zip(slots.tolist(), signals.tolist(), strict=True):
            item = self.items[slot]
            assert item is not None
            item.signal = signal

    def relate(self, slots: list[int], relevances: list[float]) -> None:
        for slot, relevance in zip(slots, relevances, strict=True):
            item = self.items[slot]
            assert item is not None
            item.relevance = relevance

    def tick(self, n: int) -> None:
        self.clock += n
        for slot, item in enumerate(self.items):
            if item is not None and self.law.max_age is not None and self.clock - item.birth > self.law.max_age:
                self.items[slot] = None

    def eta(self) -> float:
        return self.law.eta.stair(self.clock) if isinstance(self.law.eta, Schedule) else self.law.eta

    def plain(self, item: Item) -> float:
        """ln g of an item."""
        base = item.signal + self.law.epsilon
        if self.law.alpha == 0:
            return 0.0
        if base == 0:
            return -math.inf
        return self.law.alpha * (math.log(base) - (self.clock - item.birth) / self.law.tau)

    def densities(self) -> tuple[Floats, Floats]:
        """q and q° (capacity,), zero at slots that hold no eligible item."""
        law, alive = self.law, [(slot, item) for slot, item in enumerate(self.items) if item is not None]
        logs = [self.plain(item) for _, item in alive]
        top = max(logs)
        plain = [math.exp(log - top) if top > -math.inf else 0.0 for log in logs]
        relevances = [item.relevance for _, item in alive]
        if self.eta() == math.inf:
            bonus = [g * s**law.alpha for g, s in zip(plain, relevances, strict=True)]
        else:
            bonus = [g * ((1 + self.eta() * s) ** law.alpha - 1) for g, s in zip(plain, relevances, strict=True)]
        mix = at(law.mix, self.clock)
        law_part = self.tilted(plain, bonus, mix)
        q, q_plain = np.zeros(len(self.items)), np.zeros(len(self.items))
        for (slot, _), g, p in zip(alive, plain, law_part, strict=True):
            floor = (1 - mix) / len(alive)
            q[slot] = mix * p + floor
            q_plain[slot] = mix * g / sum(plain) + floor if sum(plain) > 0 else 1 / len(alive)
        if not any(law_part):
            q[self.live] = q_plain[self.live] = 1 / len(alive)
        return q, q_plain

    def tilted(self, plain: list[float], bonus: list[float], mix: float) -> list[float]:
        """P of the eligible items, or zeros where all weigh nothing; c of the guard found by a root search."""
        total, extra = sum(plain), sum(bonus)
        cap = self.law.max_rule_share
        if self.eta() == math.inf:
            share = min(1.0, cap / mix if mix else 1.0)
            if extra == 0:
                return [0.0] * len(plain) if share == 1 or total == 0 else [g / total for g in plain]
            return [(1 - share) * g / total + share * h / extra for g, h in zip(plain, bonus, strict=True)]
        if total == 0:
            return [0.0] * len(plain)

        def owed(scale: float) -> float:
            return mix * scale * extra / (total + scale * extra) - cap

        scale = 1.0 if owed(1.0) <= 0 else float(brentq(owed, 0.0, 1.0, xtol=1e-15))
        return [(g + scale * h) / (total + scale * extra) for g, h in zip(plain, bonus, strict=True)]

    def weights(self, slots: Ints) -> Floats:
        """Importance weights (n,) of a draw of ``slots`` (n,)."""
        law, count = self.law, len(self.live)
        q, q_plain = self.densities()
        beta = at(law.beta, self.clock)
        if law.correct == "none":
            return np.ones(len(slots))
        every = {slot: (count * (q if law.correct == "full" else q_plain)[slot]) ** -beta for slot in np.nonzero(q)[0]}
        drawn = [every[slot] for slot in slots.tolist()]
        largest = {"none": 1.0, "batch": max(drawn), "buffer": max(every.values())}[law.normalise]
        return np.array(drawn, np.float64) / np.float64(largest)
