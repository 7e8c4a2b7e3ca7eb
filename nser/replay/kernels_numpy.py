"""The kernels of ``kernels_numba`` in plain NumPy, bit for bit: for machines without numba, and as its check.

See there for what each does and for the layout of a tree.
"""

import numpy as np

from nser.replay.types import Floats, Ints

TOP = 1024  # as in the other module: the level from which a search starts, and above which writes mend all nodes


def sum_write(nodes: Floats, leaf: int, slots: Ints, values: Floats) -> None:
    """Twin of ``kernels_numba.sum_write``."""
    parents = slots + leaf
    nodes[parents] = values
    children = nodes.reshape(-1, 2)  # row k holds both children of node k
    width = leaf
    while width > TOP:
        width >>= 1
        parents >>= 1
        both = children.take(parents, axis=0)
        nodes[parents] = both[:, 0] + both[:, 1]
    # Where the level is narrow, all of it is cheaper than some of it.
    while width > 1:
        width >>= 1
        np.add(nodes[2 * width : 4 * width : 2], nodes[2 * width + 1 : 4 * width : 2], out=nodes[width : 2 * width])


def max_write(nodes: Floats, leaf: int, slots: Ints, values: Floats) -> None:
    """Twin of ``kernels_numba.max_write``."""
    parents = slots + leaf
    nodes[parents] = values
    children = nodes.reshape(-1, 2)
    for _ in range(leaf.bit_length() - 1):
        parents >>= 1
        both = children.take(parents, axis=0)
        top = np.maximum(both[:, 0], both[:, 1])
        changed = (nodes.take(parents) != top).nonzero()[0]
        if not changed.size:
            break
        parents = parents.take(changed)
        nodes[parents] = top.take(changed)


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


def put_same(
    columns: tuple[Ints, Ints, Ints, Floats, Floats],
    trees: tuple[Floats, Floats],
    stretch: tuple[int, int, int],
    clock: int,
    numbers: tuple[float, float, float],
) -> None:
    """Twin of ``kernels_numba.put_same``."""
    birth, generation, version, signals, relevances = columns
    sums, maxima = trees
    leaf, start, stop = stretch
    signal, relevance, weight = numbers
    birth[start:stop] = clock
    generation[start:stop] = (generation[start:stop] + 1) | 1
    version[start:stop] = -1
    signals[start:stop] = signal
    relevances[start:stop] = relevance
    sums[leaf + start : leaf + stop] = weight
    maxima[leaf + start : leaf + stop] = signal
    sum_mend(sums, leaf, start, stop)
    max_mend(maxima, leaf, start, stop)


def sum_find(nodes: Floats, leaf: int, targets: Floats) -> Ints:
    """Twin of ``kernels_numba.sum_find``."""
    wide = min(TOP, leaf)
    sums = np.cumsum(nodes[wide : 2 * wide])
    at = np.searchsorted(sums, targets, side="right")
    # The first sum that equals the total belongs to the last node that adds to it.
    np.minimum(at, np.searchsorted(sums, sums[-1]), out=at)
    targets -= np.where(at > 0, sums.take(at - 1), 0.0)
    found = at + wide
    children = nodes.reshape(-1, 2)
    width = leaf // wide
    while width > 1:
        both = children.take(found, axis=0)
        left = both[:, 0]
        right = (targets >= left) & (both[:, 1] > 0.0)
        targets -= left * right
        found <<= 1
        found += right
        width >>= 1
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
