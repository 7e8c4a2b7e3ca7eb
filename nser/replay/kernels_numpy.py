"""The kernels of ``kernels_numba`` in plain NumPy, bit for bit: for machines without numba, and as its check.

See there for what each does and for the layout of a tree.
"""

import numpy as np

from nser.replay.types import Floats, Ints


def sum_write(nodes: Floats, leaf: int, slots: Ints, values: Floats) -> None:
    """Twin of ``kernels_numba.sum_write``."""
    parents = slots + leaf
    nodes[parents] = values
    for _ in range(leaf.bit_length() - 1):
        parents >>= 1
        nodes[parents] = nodes[2 * parents] + nodes[2 * parents + 1]


def max_write(nodes: Floats, leaf: int, slots: Ints, values: Floats) -> None:
    """Twin of ``kernels_numba.max_write``."""
    parents = slots + leaf
    nodes[parents] = values
    for _ in range(leaf.bit_length() - 1):
        parents >>= 1
        nodes[parents] = np.maximum(nodes[2 * parents], nodes[2 * parents + 1])


def sum_mend(nodes: Floats, leaf: int, start: int, stop: int) -> None:
    """Twin of ``kernels_numba.sum_mend``."""
    low, high = (leaf + start) >> 1, (leaf + stop - 1) >> 1
    while low > 0:
        ends = 2 * high + 2
        nodes[low : high + 1] = nodes[2 * low : ends : 2] + nodes[2 * low + 1 : ends : 2]
        low, high = low >> 1, high >> 1


def max_mend(nodes: Floats, leaf: int, start: int, stop: int) -> None:
    """Twin of ``kernels_numba.max_mend``."""
    low, high = (leaf + start) >> 1, (leaf + stop - 1) >> 1
    while low > 0:
        ends = 2 * high + 2
        nodes[low : high + 1] = np.maximum(nodes[2 * low : ends : 2], nodes[2 * low + 1 : ends : 2])
        low, high = low >> 1, high >> 1


def put_one(sums: Floats, maxima: Floats, node: int, weight: float, signal: float) -> None:
    """Twin of ``kernels_numba.put_one``."""
    sums[node] = weight
    maxima[node] = signal
    node >>= 1
    while node > 0:
        sums[node] = sums[2 * node] + sums[2 * node + 1]
        maxima[node] = max(maxima[2 * node], maxima[2 * node + 1])
        node >>= 1


def sum_find(nodes: Floats, leaf: int, targets: Floats) -> Ints:
    """Twin of ``kernels_numba.sum_find``."""
    found = np.ones(targets.size, np.int64)
    for _ in range(leaf.bit_length() - 1):
        found <<= 1
        left = nodes[found]
        right = (targets >= left) & (nodes[found + 1] > 0.0)
        targets -= left * right
        found += right
    found -= leaf
    return found


def admit(slots: Ints, generations: Ints, current: Ints, values: Floats) -> tuple[int, int, int, float]:
    """Twin of ``kernels_numba.admit``."""
    wrong_slot = (slots < 0) | (slots >= current.size)
    # Not 0 ≤ value < inf rather than its opposite, so that NaN is a fault too.
    wrong_value = ~((values >= 0.0) & (values < np.inf))
    wrong = wrong_slot | wrong_value
    if wrong.any():
        position = int(wrong.argmax())
        return (1 if wrong_slot[position] else 2), position, 0, 0.0
    stale = (generations != current[slots]) | (generations & 1 == 0)
    return 0, 0, int(np.count_nonzero(stale)), float(values.max(initial=-np.inf))
