"""Where good episodes end and bad ones begin."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LEAST = 2  # episodes on either side: one alone may be an accident


def split_return(returns: NDArray[np.floating], least: int = LEAST) -> float | None:
    """The return above which episodes are good, or None where no split leaves `least` episodes on both sides.

    Of all splits the one with the largest variance between its two sides (Otsu's criterion): with a sparse reward that
    is success against failure from the second success on, and one episode that went wrong beyond measure does not make
    all others good.

    >>> split_return(np.array([0.0, 0.0, 0.0, 0.8, 0.9]))
    0.4
    >>> split_return(np.array([-15000.0, -300.0, -200.0, -13.0, -13.0]))
    -250.0
    """
    ordered = np.sort(np.asarray(returns, np.float64))
    count = len(ordered)
    if count < 2 * least:
        return None
    below = np.arange(least, count - least + 1)
    below = below[ordered[below] > ordered[below - 1]]
    if not len(below):
        return None
    sums = np.cumsum(ordered)
    low = sums[below - 1] / below
    high = (sums[-1] - sums[below - 1]) / (count - below)
    best = below[int(np.argmax(below * (count - below) * (high - low) ** 2))]
    return float((ordered[best - 1] + ordered[best]) / 2)
