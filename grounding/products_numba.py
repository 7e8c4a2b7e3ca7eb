"""The sweep's products on a CPU: all rules over a few hundred rows at a time, which never leave the first cache.

The same as `nser.grounding.products.TensorProducts`, an order of magnitude faster: there every product of two rows is a
call that reads and writes the whole chunk.
"""

from __future__ import annotations

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from nser.grounding.dense import Conjunctions
from nser.grounding.products import MISSING, flat

LANES = 512  # rows at a time: with a few literals of each they fit the first-level cache

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.floating]
Float = np.floating


class NumbaProducts:
    """The kernel in numba; arguments as `TensorProducts`."""

    def __init__(self, conjunctions: Conjunctions, weights: Tensor, columns: int, n: int, dtype: torch.dtype) -> None:
        starts, places, signs = flat(conjunctions)
        self._starts = np.array(starts, np.int64)
        self._columns = np.array(places, np.int64)
        self._signs = np.array(signs, np.bool_)
        self._degrees = torch.empty(columns, n, dtype=dtype)
        self._shares: Tensor | None = None  # made when a backward comes
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
        """∂L/∂w [R] and ∂L/∂ log of each literal [2C, n]."""
        degrees, n = self._degrees.numpy(), len(gradient)
        to_weights = np.zeros(len(self._weights))
        if self._shares is None:
            self._shares = torch.empty(2 * len(degrees), degrees.shape[1], dtype=self._degrees.dtype)
        shares = self._shares[:, :n]
        slope = gradient.to(self._degrees.dtype).contiguous().numpy()
        one, least = degrees.dtype.type(1), degrees.dtype.type(MISSING)
        rules = (self._starts, self._columns, self._signs, self._weights)
        _back(degrees, *rules, slope, to_weights, shares.numpy(), one, least)
        return torch.from_numpy(to_weights), shares


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


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _back(  # noqa: PLR0913, PLR0917 (numba takes arrays, not objects)
    degrees: Floats,
    starts: Ints,
    columns: Ints,
    signs: Bools,
    weights: Floats,
    slope: Floats,
    to_weights: Floats,
    shares: Floats,
    one: Float,
    least: Float,
) -> None:
    rules, count = len(weights), len(degrees)
    firings = np.empty((rules, LANES), degrees.dtype)
    kept = np.empty(LANES, degrees.dtype)
    for row in range(0, len(slope), LANES):
        width = min(LANES, len(slope) - row)
        shares[:, row : row + width] = one - one
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
                share = shares[columns[k] if signs[k] else count + columns[k], row : row + width]
                for i in range(width):
                    share[i] += fired[i]
