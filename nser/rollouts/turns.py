"""Assistant turns of a response: the stretches of tokens that are trained on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def turn_spans(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """[K, 2] first token and one past the last of each turn: each longest run of True in ``mask`` [T].

    What lies between two turns are tokens of tools or of the environment.

    >>> turn_spans(np.array([True, True, False, True])).tolist()
    [[0, 2], [3, 4]]
    """
    edges = np.diff(np.concatenate(([False], mask, [False])).astype(np.int8))
    return np.stack((np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)), axis=1)
