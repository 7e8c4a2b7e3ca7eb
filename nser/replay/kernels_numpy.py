"""The kernels of ``kernels_numba`` in plain NumPy, bit for bit: for machines without numba, and as its check.

See there for what each does and for the layout of a tree.
"""

import numpy as np

from nser.replay.items import BLOCK, BLOCK_BITS
from nser.replay.types import Blocks, Columns, Floats, Ints, Numbers, Stretch

TOP = 512  # as in the other module: nodes of the level from which a search starts
DENSE = 2048  # nodes of the level below which writes mend every node: narrow levels cost less whole than in part


def sum_write(nodes: Floats, leaf: int, slots: Ints, values: Floats) -> None:
    """Twin of ``kernels_numba.sum_write``."""
    parents = slots + leaf
    nodes[parents] = values
    children = nodes.reshape(-1, 2)  # row k holds both children of node k
    width = leaf
    while width > DENSE:
        width >>= 1
        parents >>= 1
        both = children.take(parents, axis=0)
        nodes[parents] = both[:, 0] + both[:, 1]
    while width > 1:
        width >>= 1
        np.add(nodes[2 * width : 4 * width : 2], nodes[2 * width + 1 : 4 * width : 2], out=nodes[width : 2 * width])


def max_write(nodes: Floats, leaf: int, slots: Ints, values: Floats) -> None:
    """Twin of ``kernels_numba.max_write``."""
    parents = slots + leaf
    nodes[parents] = values
    children = nodes.reshape(-1, 2)
    width = leaf
    while width > DENSE:
        width >>= 1
        parents >>= 1
        both = children.take(parents, axis=0)
        nodes[parents] = np.maximum(both[:, 0], both[:, 1])
    while width > 1:
        width >>= 1
        np.maximum(nodes[2 * width : 4 * width : 2], nodes[2 * width + 1 : 4 * width : 2], out=nodes[width : 2 * width])


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


def _tops(signals: Floats, generations: Ints) -> Floats:
    return np.asarray(np.maximum.reduce(np.where(generations & 1, signals, -np.inf), axis=1))


def peak_write(nodes: Floats, blocks: Blocks, slots: Ints, values: Floats) -> None:
    """Twin of ``kernels_numba.peak_write``."""
    signals, generations = blocks
    flat = signals.reshape(-1)
    at = slots >> BLOCK_BITS
    before = nodes.take(at)
    touched = ((values >= before) | (flat.take(slots) == before)).nonzero()[0]
    flat[slots] = values
    at = at.take(touched)
    tops = _tops(signals.take(at, axis=0), generations.take(at, axis=0))
    rows = nodes.reshape(-1, BLOCK)
    start, width = 0, len(signals)
    while True:
        moved = (tops != nodes.take(at)).nonzero()[0]
        if not moved.size:
            return
        at = at.take(moved)
        nodes[at] = tops.take(moved)
        if width == 1:
            return
        width = (width + BLOCK - 1) >> BLOCK_BITS
        at >>= BLOCK_BITS
        tops = np.maximum.reduce(rows.take(at, axis=0), axis=1)
        at += (start + (width << BLOCK_BITS)) - (start >> BLOCK_BITS)
        start += width << BLOCK_BITS


def peak_mend(nodes: Floats, blocks: Blocks, start: int, stop: int) -> None:
    """Twin of ``kernels_numba.peak_mend``."""
    signals, generations = blocks
    low, high = start >> BLOCK_BITS, ((stop - 1) >> BLOCK_BITS) + 1
    nodes[low:high] = _tops(signals[low:high], generations[low:high])
    rows = nodes.reshape(-1, BLOCK)
    first, width = 0, len(signals)  # row of the level, and how many nodes it has
    while width > 1:
        width = (width + BLOCK - 1) >> BLOCK_BITS
        low, high = low >> BLOCK_BITS, ((high - 1) >> BLOCK_BITS) + 1
        above = (first + width) << BLOCK_BITS
        nodes[above + low : above + high] = np.maximum.reduce(rows[first + low : first + high], axis=1)
        first += width


def put_one(nodes: Floats, node: int, weight: float) -> None:
    """Twin of ``kernels_numba.put_one``."""
    nodes[node] = weight
    node >>= 1
    while node > 0:
        nodes[node] = nodes[2 * node] + nodes[2 * node + 1]
        node >>= 1


def put_same(
    columns: Columns, trees: tuple[Floats, Floats], blocks: Blocks, stretch: Stretch, numbers: Numbers
) -> None:
    """Twin of ``kernels_numba.put_same``."""
    birth, generation, version, signals, relevances = columns
    sums, maxima = trees
    leaf, start, stop, clock = stretch
    birth[start:stop] = clock
    generation[start:stop] = (generation[start:stop] + 1) | 1
    version[start:stop] = -1
    signals[start:stop], relevances[start:stop], sums[leaf + start : leaf + stop] = numbers
    sum_mend(sums, leaf, start, stop)
    peak_mend(maxima, blocks, start, stop)


def look(nodes: Floats, leaf: int, generation: Ints, birth: Ints, slots: Ints, clock: int) -> tuple[Floats, Ints, Ints]:
    """Twin of ``kernels_numba.look``."""
    return nodes.take(slots + leaf), generation.take(slots), clock - birth.take(slots)


def sum_find(nodes: Floats, leaf: int, targets: Floats) -> Ints:
    """Twin of ``kernels_numba.sum_find``."""
    wide = min(TOP, leaf)
    sums = np.zeros(wide + 1)
    np.cumsum(nodes[wide : 2 * wide], out=sums[1:])
    found = sums[1:].searchsorted(targets, side="right")
    # The first sum that equals the total belongs to the last node that adds to it.
    np.minimum(found, sums[1:].searchsorted(sums[-1]), out=found)
    targets -= sums.take(found)
    found += wide
    start, first = (targets.copy(), found.copy()) if leaf > wide else (targets, found)
    width = leaf // wide
    while width > 1:
        found += found
        left = nodes.take(found)
        right = targets >= left
        targets -= left * right
        found += right
        width >>= 1
    if not nodes.take(found).all():
        # A target that rounding put past the edge of its subtree went on into one without weight: once more, with
        # an eye on that. Without it the search takes two thirds of the time.
        targets[:], found = start, first
        width = leaf // wide
        while width > 1:
            found += found
            left = nodes.take(found)
            right = (targets >= left) & (nodes.take(found + 1) > 0.0)
            targets -= left * right
            found += right
            width >>= 1
    found -= leaf
    return found


def admit(slots: Ints, generations: Ints, current: Ints, values: Floats) -> tuple[int, int, int, float]:
    """Twin of ``kernels_numba.admit``."""
    if not slots.size:
        return 0, 0, 0, -np.inf
    largest = np.maximum.reduce(values)
    # Not 0 ≤ value < inf rather than its opposite, so that NaN is a fault too; negative slots are huge unsigned ones.
    if not (
        np.minimum.reduce(values) >= 0.0
        and largest < np.inf
        and np.maximum.reduce(slots.view(np.uint64)) < current.size
    ):
        wrong_slot = (slots < 0) | (slots >= current.size)
        position = int((wrong_slot | ~((values >= 0.0) & (values < np.inf))).argmax())
        return (1 if wrong_slot[position] else 2), position, 0, 0.0
    fresh = (generations == current.take(slots)) & generations & 1
    return 0, 0, len(slots) - int(np.count_nonzero(fresh)), float(largest)
