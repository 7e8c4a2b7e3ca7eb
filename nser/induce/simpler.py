"""What bodies over the rows of one action are worth, and the simpler body that is worth nearly as much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from nser.induce.literals import Literals
from nser.rules.syntax import Atom

KEPT_WORTH = 0.9  # a shorter body with at least this share of the longer one's worth is preferred
SAME_ROWS = 0.95  # share of their joint firings that two bodies have in common when one can stand for the other

Mask = NDArray[np.bool_]


class Stratum:
    """The `n` rows of one action: outcomes, and the truth of every literal.

    inside: [n, L] truth;  least: firings below which a body is worth nothing
    """

    def __init__(self, table: Literals, rows: Mask, outcomes: NDArray[np.float64], least: int) -> None:
        self.table = table
        self.least = least
        self.inside = table.truth[rows]
        own = outcomes[rows]
        self._moments = np.stack([np.ones(len(own)), own, own**2])  # [3, n]
        # A product of matrices of numbers is far faster than one with truth values.
        self._numbers = self.inside.astype(np.float64)

    def fires(self, columns: Sequence[int]) -> Mask:
        """[n] rows on which all these literals hold."""
        return np.asarray(self.inside[:, list(columns)].all(1), np.bool_)

    def worth(self, columns: Sequence[int], fires: Mask) -> float:
        """What a body that fires on these rows counts for: bound · √n, lessened by the literals' prices."""
        return float(_priced(raw_worth(self._moments @ fires, self.least), self._price(columns)))

    def extended(self, bodies: Sequence[tuple[int, ...]], fires: Mask) -> NDArray[np.float64]:
        """[B, L] worth of each of B bodies, [B, n] firings, with each literal put to it; −inf where it has it."""
        held = fires.astype(np.float64)
        # [3, B, L]: count, sum and sum of squares of the outcomes
        sums = np.stack([(held * moment) @ self._numbers for moment in self._moments])
        prices = np.array([self._price(columns) for columns in bodies])[:, None] * self.table.prices
        worth = _priced(raw_worth(sums, self.least), prices)
        for body, columns in enumerate(bodies):
            worth[body, list(columns)] = -np.inf
        return worth

    def _price(self, columns: Sequence[int]) -> float:
        return float(self.table.prices[list(columns)].prod())


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
    columns = _in_plain_words(columns, stratum)
    floor = stratum.worth(columns, stratum.fires(columns)) * KEPT_WORTH
    while columns:
        shorter = [columns[:i] + columns[i + 1 :] for i in range(len(columns))]
        worths = [stratum.worth(body, stratum.fires(body)) for body in shorter]
        best = int(np.argmax(worths))
        if worths[best] < floor:
            break
        columns = shorter[best]
    return columns


def _in_plain_words(columns: tuple[int, ...], stratum: Stratum) -> tuple[int, ...]:
    """One atom in place of one or two other literals, where the body fires on nearly the same rows and keeps worth."""
    formulas = stratum.table.formulas
    fires = stratum.fires(columns)
    best, found = stratum.worth(columns, fires), columns
    for rest in _without(columns, {c for c in columns if not isinstance(formulas[c], Atom)}):
        held = stratum.fires(rest)
        for column, formula in enumerate(formulas):
            if not isinstance(formula, Atom) or column in columns:
                continue
            now = held & stratum.inside[:, column]
            if (now & fires).sum() >= SAME_ROWS * (now | fires).sum():
                body = tuple(sorted((*rest, column)))
                worth = stratum.worth(body, now)
                if worth > best:
                    best, found = worth, body
    return found


def _without(columns: tuple[int, ...], loose: set[int]) -> Iterator[tuple[int, ...]]:
    for count in (2, 1):
        for gone in combinations(sorted(loose), count):
            yield tuple(c for c in columns if c not in gone)
