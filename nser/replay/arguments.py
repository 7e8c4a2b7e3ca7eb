"""Checks of what a caller passes, before anything changes; each returns the value in the index's own type."""

import operator

import numpy as np
from numpy.typing import ArrayLike

from nser.replay.errors import ArgumentError, RelevanceError, SignalError, SlotError
from nser.replay.types import Floats, Ints


def count_of(name: str, value: int, least: int) -> int:
    """``value`` as an int ≥ ``least``; raises ``ArgumentError``."""
    try:
        count = operator.index(value)
    except TypeError:
        raise ArgumentError(name, value, f"an integer ≥ {least}", "Convert it with int().") from None
    if count < least:
        raise ArgumentError(name, value, f"an integer ≥ {least}", "Nothing was changed.")
    return count


def numbers(name: str, values: ArrayLike, count: int) -> Floats:
    """``values`` as float64 (count,), contiguous; raises ``ArgumentError``."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.shape != (count,):
        raise ArgumentError(name, array.shape, f"the shape ({count},)", "Pass one number for each item.")
    return array


def integers(name: str, values: ArrayLike, count: int | None) -> Ints:
    """``values`` as int64 (count,), or (n,) where ``count`` is None; raises ``ArgumentError``."""
    array = np.asarray(values)
    whole = array.dtype.kind in "iu" or array.size == 0
    if array.ndim != 1 or not whole or count not in (None, len(array)):
        shape = "(n,)" if count is None else f"({count},)"
        raise ArgumentError(
            name, f"{array.dtype} {array.shape}", f"integers of the shape {shape}", "Pass them as the index gave them."
        )
    return array.astype(np.int64, copy=False)


def slots_of(slots: ArrayLike, capacity: int) -> Ints:
    """``slots`` as int64 (n,), each in [0, capacity); raises ``SlotError``, ``ArgumentError``."""
    wanted = integers("slots", slots, None)
    outside = (wanted < 0) | (wanted >= capacity)
    if outside.any():
        position = int(outside.argmax())
        raise SlotError(int(wanted[position]), position, capacity)
    return wanted


def check_signal(signals: Floats) -> None:
    """Raise ``SignalError`` unless all ``signals`` (n,) of new items are finite and ≥ 0."""
    # Not 0 ≤ s < inf rather than its opposite, so that NaN is a fault too.
    wrong = ~((signals >= 0.0) & (signals < np.inf))
    if wrong.any():
        position = int(wrong.argmax())
        raise SignalError(float(signals[position]), position)


def check_relevance(relevances: Floats, slots: Ints | None) -> None:
    """Raise ``RelevanceError`` unless all ``relevances`` (n,) of ``slots`` (n,), None for new items, are in [0, 1]."""
    wrong = ~((relevances >= 0.0) & (relevances <= 1.0))
    if wrong.any():
        position = int(wrong.argmax())
        raise RelevanceError(float(relevances[position]), position, -1 if slots is None else int(slots[position]))
