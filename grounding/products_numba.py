"""The sweep's products on a CPU: all rules over a thousand rows at a time, which never leave the caches of the core.

The same as `nser.grounding.products.TensorProducts`, an order of magnitude faster: there every product of two rows is a
call that reads and writes the whole chunk.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from nser.grounding.dense import DEGREE_FLOOR, Conjunctions
from nser.grounding.products import MISSING, flat

LANES = 1_024  # rows at a time: a few dozen rows of so many numbers stay in the first two caches

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.floating]
Float = np.floating


class NumbaProducts:
    """The kernel in numba; arguments as `TensorProducts`."""

    def __init__(
        self, conjunctions: Conjunctions, weights: Tensor, soft: Sequence[bool], n: int, dtype: torch.dtype
    ) -> None:
        starts, places, signs = flat(conjunctions)
        self._starts = np.array(starts, np.int64)
        self._columns = np.array(places, np.int64)
        self._signs = np.array(signs, np.bool_)
        self._soft = np.array(soft, np.bool_)
        self._degrees = torch.empty(len(soft), n, dtype=dtype)
        self._slopes: Tensor | None = None  # made when a backward comes
        self._weights = weights.to(dtype).numpy()

    def degrees(self, n: int) -> Tensor:
        """[C, n] where the degrees of a chunk go."""
        return self._degrees[:, :n]

    def scores(self, n: int) -> Tensor:
        """[n] scores."""
        degrees = self._degrees.numpy()
        scores = np.empty(n, degrees.dtype)
        _scores(degrees, self._starts, self._columns, self._signs, self._weights, scores, degrees.dtype.type(1))
        return torch.from_numpy(scores)

    def back(self, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """∂L/∂w [R] and the gradients to the columns [C, n]."""
        if self._slopes is None:
            self._slopes = torch.empty_like(self._degrees)
        degrees, slopes = self._degrees.numpy(), self._slopes.numpy()
        to_weights = np.zeros(len(self._weights))
        given = gradient.to(self._degrees.dtype).contiguous().numpy()
        number = degrees.dtype.type
        rules = (self._starts, self._columns, self._signs, self._weights)
        constants = (number(1), number(MISSING), number(DEGREE_FLOOR))
        _back(degrees, *rules, self._soft, given, to_weights, slopes, *constants)
        return torch.from_numpy(to_weights), self._slopes[:, : len(gradient)]


# Slices from `row` on, so that the loops count from 0 and need no check for negative places; constants of the
# degrees' own type, so that float32 stays float32: both are what lets the loops become vector instructions.


@njit(cache=True, nogil=True)
def _fire(
    degrees: Floats, columns: Ints, signs: Bools, first: int, last: int, row: int, one: Float, fired: Floats
) -> None:
    """Put the product of literals first … last − 1 at the rows from `row` on into `fired`."""
    width = len(fired)
    for i in range(width):
        fired[i] = one
    for k in range(first, last):
        column = degrees[columns[k], row : row + width]
        if signs[k]:
            for i in range(width):
                fired[i] *= column[i]
        else:
            for i in range(width):
                fired[i] *= one - column[i]


@njit(cache=True, nogil=True)
def _scores(
    degrees: Floats, starts: Ints, columns: Ints, signs: Bools, weights: Floats, scores: Floats, one: Float
) -> None:
    lanes = np.empty(LANES, degrees.dtype)
    for row in range(0, len(scores), LANES):
        kept = scores[row : row + LANES]
        fired = lanes[: len(kept)]
        kept[:] = one
        for rule in range(len(weights)):
            _fire(degrees, columns, signs, starts[rule], starts[rule + 1], row, one, fired)
            weight = weights[rule]
            for i in range(len(kept)):
                kept[i] *= one - weight * fired[i]
        for i in range(len(kept)):
            kept[i] = one - kept[i]


# `error_model`: Python's would look for a division by 0 at each, and none of them would be a vector instruction.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"}, error_model="numpy")
def _back(  # noqa: PLR0913, PLR0917 (numba takes arrays, not objects)
    degrees: Floats,
    starts: Ints,
    columns: Ints,
    signs: Bools,
    weights: Floats,
    soft: Bools,
    slope: Floats,
    to_weights: Floats,
    slopes: Floats,
    one: Float,
    least: Float,
    floor: Float,
) -> None:
    rules, count = len(weights), len(degrees)
    firings = np.empty((rules, LANES), degrees.dtype)
    kept = np.empty(LANES, degrees.dtype)
    shares = np.empty((2 * count, LANES), degrees.dtype)  # gradients to log p, then to log (1 − p)
    for row in range(0, len(slope), LANES):
        width = min(LANES, len(slope) - row)
        shares[:] = one - one
        for i in range(width):
            kept[i] = slope[row + i]
        for rule in range(rules):
            fired, weight = firings[rule, :width], weights[rule]
            _fire(degrees, columns, signs, starts[rule], starts[rule + 1], row, one, fired)
            for i in range(width):
                other = one - weight * fired[i]
                kept[i] *= other if other > least else least
        for rule in range(rules):
            fired, weight = firings[rule, :width], weights[rule]
            total = one - one
            for i in range(width):
                # ∂L / ∂(w f) times f: the product over the other rules is that over all, divided by this one's
                other = one - weight * fired[i]
                flow = kept[i] / (other if other > least else least) * fired[i]
                total += flow
                fired[i] = flow * weight
            to_weights[rule] += total
            for k in range(starts[rule], starts[rule + 1]):
                share = shares[columns[k] if signs[k] else count + columns[k], :width]
                for i in range(width):
                    share[i] += fired[i]
        for column in range(count):
            plain, negated = shares[column, :width], shares[count + column, :width]
            degree, to = degrees[column, row : row + width], slopes[column, row : row + width]
            if soft[column]:
                for i in range(width):
                    to[i] = plain[i] * (one - degree[i]) - negated[i] * degree[i]
            else:
                for i in range(width):
                    p, q = degree[i], one - degree[i]
                    to[i] = plain[i] / (p if p > floor else floor) - negated[i] / (q if q > floor else floor)
