"""What bodies over the rows of one action are worth, and the simpler body that is worth nearly as much."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from nser.induce.kinds import numbered
from nser.induce.literals import Literals
from nser.rules.syntax import Atom

KEPT_WORTH = 0.9  # a shorter body with at least this share of the longer one's worth is preferred
SAME_ROWS = 0.95  # share of their joint firings that two bodies have in common when one can stand for the other

Mask = NDArray[np.bool_]


class Stratum:
    """The rows of one action, those alike in every literal taken together: `m` kinds of row.

    inside: [m, L] truth;  kinds: [n] the kind of each row;  least: firings below which a body is worth nothing

    A body holds on all rows of a kind or on none, so counts and sums of outcomes by kind say all of them; in small
    worlds thousands of rows are of a few dozen kinds. Masks [m] over kinds stand for firings everywhere below.
    """

    def __init__(self, table: Literals, rows: Mask, outcomes: NDArray[np.float64], least: int) -> None:
        self.table = table
        self.least = least
        truth, own = table.truth[rows], outcomes[rows]
        self.kinds = numbered(truth)
        firsts = np.unique(self.kinds, return_index=True)[1]
        self.inside = truth[firsts]
        sums = [np.bincount(self.kinds, weights, len(firsts)) for weights in (None, own, own**2)]
        self.moments = np.stack(sums).astype(np.float64)  # [3, m] count, sum and sum of squares of the outcomes
        # A product of matrices of numbers is far faster than one with truth values.
        self.numbers = self.inside.astype(np.float64)
        self._prices = table.prices.tolist()

    def fires(self, columns: Sequence[int]) -> Mask:
        """[m] kinds on which all these literals hold."""
        return np.asarray(self.inside[:, list(columns)].all(1), np.bool_)

    def worth(self, bodies: Sequence[tuple[int, ...]], fires: Mask) -> NDArray[np.float64]:
        """[B] what bodies that fire on these kinds [B, m] count for: bound · √n, lessened by the literals' prices."""
        return _priced(raw_worth((fires @ self.moments.T).T, self.least), self._price(bodies))

    def extended(self, bodies: Sequence[tuple[int, ...]], fires: Mask) -> NDArray[np.float64]:
        """[B, L] worth of each of B bodies, [B, m] firings, with each literal put to it; −inf where it has it."""
        held = fires.astype(np.float64)
        sums = np.stack([(held * moment) @ self.numbers for moment in self.moments])  # [3, B, L]
        worth = _priced(raw_worth(sums, self.least), self._price(bodies)[:, None] * self.table.prices)
        for body, columns in enumerate(bodies):
            worth[body, list(columns)] = -np.inf
        return worth

    def _price(self, bodies: Sequence[tuple[int, ...]]) -> NDArray[np.float64]:
        return np.array([math.prod(self._prices[column] for column in columns) for columns in bodies])


def raw_worth(sums: NDArray[np.float64], least: int) -> NDArray[np.float64]:
    """bound · √n from [3, …] count, sum and sum of squares; −inf below `least` firings."""
    count, total, squares = sums
    n = np.maximum(count, 1)
    mean = total / n
    error = np.sqrt(np.maximum(squares / n - mean**2, 0) / n)
    return np.where(count >= least, (mean - 2 * error) * np.sqrt(n), -np.inf)


def _priced(worth: NDArray[np.float64], price: NDArray[np.float64] | float) -> NDArray[np.float64]:
    # What is below 0 is made worse, not better, by a price below 1.
    return np.where(worth > 0, worth * price, worth / price)


def simpler(columns: tuple[int, ...], stratum: Stratum) -> tuple[int, ...]:
    """Put plain atoms for negations and cuts that say the same, and drop literals that are hardly missed.

    Literals that the others imply, or the action itself, go first: without them a body fires as before.
    """
    columns, worth = _in_plain_words(columns, stratum)
    floor = worth * KEPT_WORTH
    while columns:
        shorter = [columns[:i] + columns[i + 1 :] for i in range(len(columns))]
        worths = stratum.worth(shorter, np.stack([stratum.fires(body) for body in shorter]))
        best = int(np.argmax(worths))
        if worths[best] < floor:
            break
        columns = shorter[best]
    return columns


def _in_plain_words(columns: tuple[int, ...], stratum: Stratum) -> tuple[tuple[int, ...], float]:
    """One atom in place of one or two other literals, where the body fires on nearly the same rows and keeps worth.

    Returns the body and its worth.
    """
    formulas = stratum.table.formulas
    fires = stratum.fires(columns)
    best, found = float(stratum.worth([columns], fires[None])[0]), columns
    counts = stratum.moments[0]
    firings = counts @ fires
    plain = [c for c, formula in enumerate(formulas) if isinstance(formula, Atom) and c not in columns]
    for rest in _without(columns, {c for c in columns if not isinstance(formulas[c], Atom)}):
        held = stratum.fires(rest)
        # [2, L] firings of the rest with each literal: those that are the body's too, and all
        both, now = np.stack([counts * (held & fires), counts * held]) @ stratum.numbers
        same = both >= SAME_ROWS * (firings + now - both)
        bodies = [tuple(sorted((*rest, column))) for column in plain if same[column]]
        if not bodies:
            continue
        worths = stratum.worth(bodies, np.stack([stratum.fires(body) for body in bodies]))
        first = int(np.argmax(worths))
        if worths[first] > best:
            best, found = float(worths[first]), bodies[first]
    return found, best


def _without(columns: tuple[int, ...], loose: set[int]) -> Iterator[tuple[int, ...]]:
    for count in (2, 1):
        for gone in combinations(sorted(loose), count):
            yield tuple(c for c in columns if c not in gone)
