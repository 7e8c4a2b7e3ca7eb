"""Drawing slots from a density, with and without replacement, and the weights of what was drawn."""

from dataclasses import dataclass

import numpy as np

from nser.replay.density import Density
from nser.replay.forest import Forest
from nser.replay.items import Items
from nser.replay.types import Floats, Ints

ROUNDS = 8  # of rejection, before a draw without replacement looks at every item


@dataclass(frozen=True, slots=True)
class Draw:
    """What one call of ``ReplayIndex.draw`` gave; hand it back to ``update``. All arrays are (n,).

    ``slots`` where the host keeps the items; ``generations`` which occupant of the slot was meant;
    ``weights`` importance weights, > 0; ``probabilities`` q of the law, of a single draw; ``ages`` in steps of
    the clock, ≥ 0. The order means nothing, and stratified draws come sorted: shuffle before splitting.
    """

    slots: Ints
    generations: Ints
    weights: Floats
    probabilities: Floats
    ages: Ints

    def __len__(self) -> int:
        return len(self.slots)


class Sampler:
    """Draws from the density of a forest; holds the index's only random numbers."""

    def __init__(self, items: Items, forest: Forest, rng: np.random.Generator, stratified: bool) -> None:
        self.items = items
        self.forest = forest
        self.rng = rng
        self.stratified = stratified
        self._strata: Floats = np.zeros(0)

    def with_replacement(self, density: Density, count: int) -> Ints:
        """Slots (count,), each from the density; stratified if the law says so.

        Strata are equal parts of [0, 1), laid over the parts of the density one after another: the expected
        count of an item is count · q either way, so q is the right probability for its weight.
        """
        points = self.rng.random(count)
        if not self.stratified:
            return self._find(density, points)
        if len(self._strata) != count:
            self._strata = np.arange(count, dtype=np.float64)
        points += self._strata
        points *= 1.0 / count
        return self._find_sorted(density, points)

    def without_replacement(self, density: Density, count: int) -> Ints:
        """At most ``count`` distinct slots: draw, drop, renormalise; fewer when fewer can be drawn at all.

        The distinct slots of a stream of independent draws, in order of appearance, are such a sample. Where
        little of the density is left for new ones, a race of exponentials over the rest ends it, O(N).
        """
        taken: Ints = np.zeros(0, np.int64)
        for _ in range(ROUNDS):
            stream = np.concatenate((taken, self._find(density, self.rng.random(count))))
            first = np.sort(np.unique(stream, return_index=True)[1])
            taken = stream[first]
            if len(taken) >= count:
                return taken[:count]
        live = self.items.live()
        rest = live[~np.isin(live, taken)]
        rate = self.probabilities(density, rest)
        rest, rate = rest[rate > 0], rate[rate > 0]
        arrival = self.rng.exponential(size=len(rest)) / rate
        return np.concatenate((taken, rest[np.argsort(arrival)]))[:count]

    def probabilities(self, density: Density, slots: Ints, base: Floats | None = None) -> Floats:
        """q (n,) of live ``slots`` (n,); ``base`` (n,) their leaves, where they are known already."""
        bonus = self.forest.bonus if density.per_bonus else None
        leaves = self.forest.base.take(slots) if base is None else base
        return density.q(leaves, bonus.take(slots) if bonus is not None else None)

    def weights(
        self,
        density: Density,
        slots: Ints,
        probability: Floats,
        beta: float,
        normalise: str,
        base: Floats | None = None,
    ) -> Floats:
        """Importance weights (n,) of ``slots`` drawn with ``probability`` (n,); see ``law``; ``base`` as above."""
        law = self.forest.law
        if law.correct == "none" or beta == 0.0 or len(slots) == 0:
            return np.ones(len(slots))
        if law.correct == "signal" and density.per_bonus:
            probability = density.without_rules(self.forest.base.take(slots) if base is None else base)
        # Dividing weights by the largest is dividing probabilities by the least, and N cancels.
        if normalise == "batch":
            least = probability.item(probability.argmin())
        else:
            least = self._least_probability(density) if normalise == "buffer" else 1.0 / density.eligible
        return np.power(probability / least, -beta)

    def _least_probability(self, density: Density) -> float:
        """The least q (or q°, as the law corrects) of the items that can be drawn."""
        forest = self.forest
        if density.zero:
            return density.floor
        kept_tilt = forest.law.correct == "signal" and (density.per_base > 0 or density.floor > 0)
        if density.per_bonus and not kept_tilt:
            # The sum of two weights has no maintained minimum: look at all.
            live = self.items.live()
            drawn = self.probabilities(density, live)
            if forest.law.correct == "signal":
                return float(density.without_rules(forest.base.take(live[drawn > 0])).min())
            return float(drawn[drawn > 0].min())
        least = forest.least if density.floor > 0 else forest.least_positive
        return density.floor + density.per_plain * (-least.root if least is not None else 0.0)

    def _find(self, density: Density, points: Floats) -> Ints:
        """Slots (n,) for ``points`` (n,) in [0, 1) in any order."""
        if density.rule_share == 0.0 and density.floor == 0.0:
            return self._find_sorted(density, points)
        order = np.argsort(points)
        slots = np.empty(len(points), np.int64)
        slots[order] = self._find_sorted(density, points[order])
        return slots

    def _find_sorted(self, density: Density, points: Floats) -> Ints:
        """Slots (n,) for rising ``points`` (n,): first the base part of [0, 1), then the bonus, then uniform."""
        by_base = density.mix - density.rule_share
        if by_base == 1.0:
            points *= density.base_total
            return self.forest.base.find(points)
        first, second = points.searchsorted((by_base, density.mix)).tolist()
        if density.floor == 0.0:
            second = len(points)  # a point that rounding put at 1 is still the rules'
        parts = []
        if first > 0:
            parts.append(self.forest.base.find(points[:first] * (density.base_total / by_base)))
        if second > first and self.forest.bonus is not None:
            scale = density.bonus_total / density.rule_share
            parts.append(self.forest.bonus.find((points[first:second] - by_base) * scale))
        if len(points) > second:
            steps = ((points[second:] - density.mix) * (density.eligible / (1.0 - density.mix))).astype(np.int64)
            np.minimum(steps, density.eligible - 1, out=steps)
            parts.append((steps + self.items.tail) % self.items.capacity)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)
