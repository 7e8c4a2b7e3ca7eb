"""Why an item is drawn as often as it is, and how the index draws at present."""

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from nser.replay.density import Density
from nser.replay.draw import Sampler
from nser.replay.law import Law, value_at
from nser.replay.types import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class Explanation:
    """Every factor of the probability of some slots; all arrays are (n,).

    - ``slots``; ``live``: whether it holds an eligible item (else probability, weight and share are 0);
    - ``signal`` ≥ 0 as last given; ``age`` in steps of the clock; ``decay`` exp(−age/τ), in [0, 1];
    - ``relevance`` in [0, 1]; ``version`` of the rules that gave it, −1 for none; ``rule_factor`` r ≥ 1 (η = ∞:
      r = s), before the guard;
    - ``probability`` q of one draw; ``rule_share`` in [0, 1], the part of it owed to the rules;
    - ``weight`` importance weight, divided by the maximum only if the law normalises by the buffer;
    - ``generation`` of the slot's present occupant.
    """

    slots: Ints
    live: Bools
    signal: Floats
    age: Ints
    decay: Floats
    relevance: Floats
    version: Ints
    rule_factor: Floats
    probability: Floats
    rule_share: Floats
    weight: Floats
    generation: Ints

    def rows(self) -> list[dict[str, Any]]:
        """One JSON-able dict a slot."""
        columns = {field.name: getattr(self, field.name).tolist() for field in fields(self)}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@dataclass(frozen=True, slots=True)
class IndexStats:
    """What an index holds and how it draws at present.

    - ``capacity``, ``eligible``, ``inserted`` (ever), ``clock``; ``max_signal`` of the live items, 0 if none;
    - ``mix`` λ, ``beta`` β, ``eta`` η by the law at this clock;
    - ``eta_in_force``: η times the scale c of the guard (to first order in η s the η that draws; see ``law``);
    - ``rule_share`` of expected draws owed to the rules; ``rule_share_unguarded`` the same without the guard;
    - ``scored``: share of the eligible items that rules have scored; ``related``: with relevance > 0;
    - ``effective_size`` 1/Σq², between 1 and ``eligible``: how many alike items would be drawn as variedly;
    - ``all_zero``: every eligible weight is zero, so draws are uniform;
    - ``stale_updates``, ``stale_relations``: feedback ignored because its item was gone;
    - ``mean_age`` of the eligible items, in steps of the clock; 0 if there are none.
    - ``age_edges`` (k + 1) and ``age_counts`` (k): histogram of the eligible items' ages.
    """

    capacity: int
    eligible: int
    inserted: int
    clock: int
    max_signal: float
    mix: float
    beta: float
    eta: float
    eta_in_force: float
    rule_share: float
    rule_share_unguarded: float
    scored: float
    related: float
    effective_size: float
    all_zero: bool
    stale_updates: int
    stale_relations: int
    mean_age: float
    age_edges: tuple[float, ...]
    age_counts: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """As a dict of plain numbers, JSON-able but for an infinite η, which becomes "inf"."""
        return {name: "inf" if value == math.inf else value for name, value in asdict(self).items()}


def explanation(sampler: Sampler, density: Density | None, slots: Ints, clock: int) -> Explanation:
    """The factors of ``slots`` (n,) in range; ``density`` None for an index without eligible items."""
    items, forest = sampler.items, sampler.forest
    law = forest.law
    generation = items.generation[slots]
    live = (generation & 1).astype(np.bool_)
    age = np.where(generation > 0, clock - items.birth[slots], 0)
    relevance = items.relevance[slots]
    probability, share, weight = np.zeros(len(slots)), np.zeros(len(slots)), np.zeros(len(slots))
    if density is not None and live.any():
        alive = slots[live]
        q = sampler.probabilities(density, alive)
        owed = np.zeros(len(alive))
        if density.per_bonus and forest.bonus is not None:
            np.divide(forest.bonus.take(alive) * density.per_bonus, q, out=owed, where=q > 0)
        normalise = "buffer" if law.normalise == "buffer" else "none"
        drawn = q > 0
        weights = np.zeros(len(alive))
        beta = value_at(law.beta, clock)
        weights[drawn] = sampler.weights(density, alive[drawn], q[drawn], beta, normalise)
        probability[live], share[live], weight[live] = q, owed, weights
    return Explanation(
        slots=slots.copy(),
        live=live,
        signal=items.signal[slots],
        age=age,
        decay=np.exp(-age / law.tau),
        relevance=relevance,
        version=items.version[slots],
        rule_factor=relevance.copy() if forest.eta == math.inf else 1.0 + forest.eta * relevance,
        probability=probability,
        rule_share=share,
        weight=weight,
        generation=generation,
    )


def statistics(sampler: Sampler, density: Density | None, clock: int, stale: tuple[int, int]) -> IndexStats:
    """The statistics of an index; ``stale`` are its counts of ignored updates and relations."""
    items, forest = sampler.items, sampler.forest
    law: Law = forest.law
    live = items.live()
    eta = forest.eta
    scale = density.rule_scale if density is not None else 1.0
    q = sampler.probabilities(density, live) if density is not None else np.zeros(0)
    square = float(np.sum(q * q))
    ages = clock - items.birth[live]
    counts, edges = np.histogram(ages, bins=10)
    eligible = max(len(live), 1)
    return IndexStats(
        capacity=items.capacity,
        eligible=len(live),
        inserted=items.inserted,
        clock=clock,
        max_signal=max(forest.peak.root, 0.0),
        mix=value_at(law.mix, clock),
        beta=value_at(law.beta, clock),
        eta=eta,
        eta_in_force=eta * scale if scale > 0 else 0.0,
        rule_share=density.rule_share if density is not None else 0.0,
        rule_share_unguarded=density.wanted_share if density is not None else 0.0,
        scored=int(np.count_nonzero(items.version[live] >= 0)) / eligible,
        related=int(np.count_nonzero(items.relevance[live] > 0)) / eligible,
        effective_size=1.0 / square if square > 0 else 0.0,
        all_zero=density is not None and density.zero,
        stale_updates=stale[0],
        stale_relations=stale[1],
        mean_age=float(ages.mean()) if len(ages) else 0.0,
        age_edges=tuple(edges.tolist()),
        age_counts=tuple(counts.tolist()),
    )
