"""Compiled kernels of the trees; ``kernels_numpy`` is the twin that gives the same bits.

A tree over ``leaf`` = 2^depth leaves is one float64 array of 2·leaf nodes: node 1 is the root, the children
of node k are 2k and 2k + 1, slot s is node leaf + s. Kernels go level by level over the whole batch, so that
the cache misses of its items overlap. All of them trust their caller: slots are in range, arrays contiguous.
"""

import numpy as np
from numba import njit

from nser.replay.items import BLOCK, BLOCK_BITS
from nser.replay.types import Blocks, Columns, Floats, Ints, Numbers, Stretch

TOP = 512  # nodes of the level from which a search starts, as a power of two


@njit(cache=True, nogil=True)
def sum_write(nodes: Floats, leaf: int, slots: Ints, values: Floats) -> None:
    """Set the leaves of ``slots`` (n,) to ``values`` (n,), the last of equal slots winning, and mend the sums."""
    count = slots.size
    # Unsigned, for numba asks of every signed index whether it counts from the end.
    one = np.uint64(1)
    parents = np.empty(count, np.uint64)
    for i in range(count):
        node = np.uint64(leaf + slots[i])
        nodes[node] = values[i]
        parents[i] = node >> one
    width = leaf >> 1
    while width > 0:
        kept = 0
        last = np.uint64(0)
        for i in range(count):
            parent = parents[i]
            child = parent << one
            nodes[parent] = nodes[child] + nodes[child + one]
            # Draws come nearly sorted, so that neighbours share their upper ancestors. Counting without a branch:
            # what is not to be kept is written over by the next.
            parents[kept] = parent >> one
            kept += int(parent != last)
            last = parent
        count = kept
        width >>= 1


@njit(cache=True, nogil=True)
def max_write(nodes: Floats, leaf: int, slots: Ints, values: Floats) -> None:
    """As ``sum_write`` for maxima; a path ends where a maximum stays, after two levels on average."""
    count = slots.size
    parents = np.empty(count, np.int64)
    for i in range(count):
        node = leaf + slots[i]
        nodes[node] = values[i]
        parents[i] = node >> 1
    width = leaf >> 1
    while width > 0 and count > 0:
        kept = 0
        for i in range(count):
            parent = parents[i]
            top = max(nodes[2 * parent], nodes[2 * parent + 1])
            if nodes[parent] != top:
                nodes[parent] = top
                parents[kept] = parent >> 1
                kept += 1
        count = kept
        width >>= 1


@njit(cache=True, nogil=True)
def sum_mend(nodes: Floats, leaf: int, start: int, stop: int) -> None:
    """Mend the sums above the leaves start … stop − 1, which were written."""
    low = (leaf + start) >> 1
    high = (leaf + stop - 1) >> 1
    while low > 0:
        for node in range(low, high + 1):
            nodes[node] = nodes[2 * node] + nodes[2 * node + 1]
        low >>= 1
        high >>= 1


@njit(cache=True, nogil=True)
def max_mend(nodes: Floats, leaf: int, start: int, stop: int) -> None:
    """As ``sum_mend`` for maxima."""
    low = (leaf + start) >> 1
    high = (leaf + stop - 1) >> 1
    while low > 0:
        for node in range(low, high + 1):
            nodes[node] = max(nodes[2 * node], nodes[2 * node + 1])
        low >>= 1
        high >>= 1


@njit(cache=True, nogil=True)
def top_of(signals: Floats, generations: Ints, block: int, enough: float) -> float:
    """Largest signal of the live slots of a block, −inf where there is none; stops at one that is ``enough``."""
    top = -np.inf
    for k in range(BLOCK):
        if signals[block, k] > top and generations[block, k] & 1:
            top = signals[block, k]
            if top >= enough:
                break
    return top


@njit(cache=True, nogil=True)
def row_top(nodes: Floats, row: int) -> float:
    """Largest of the ``BLOCK`` nodes of a row."""
    top = -np.inf
    for node in range(row << BLOCK_BITS, (row + 1) << BLOCK_BITS):
        top = max(top, nodes[node])
    return top


@njit(cache=True, nogil=True)
def peak_write(nodes: Floats, blocks: Blocks, slots: Ints, values: Floats) -> None:
    """Set the signals of live ``slots`` (n,) to ``values`` (n,), the last of equal slots winning; mend the maxima.

    ``nodes``: the levels of a tree one after another, see ``Peak``. A block is looked through only where its largest
    signal got smaller, and a path ends where a maximum stays.
    """
    signals, generations = blocks
    count = slots.size
    bits = np.uint64(BLOCK_BITS)
    flat = signals.reshape(-1)
    # Whether the slot may hold the largest signal: looked up in a loop of its own, without branches, so that its
    # cache misses overlap; in the next one each would be waited for.
    held = np.empty(count, np.bool_)
    for i in range(count):
        # Unsigned, for numba asks of every signed index whether it counts from the end.
        slot = np.uint64(slots[i])
        held[i] = flat[slot] == nodes[slot >> bits]
        flat[slot] = values[i]
    changed = np.empty(count, np.int64)
    kept = 0
    for i in range(count):
        block = slots[i] >> BLOCK_BITS
        before = nodes[block]
        top = before
        if values[i] >= before and flat[slots[i]] == values[i]:  # not where a later one of equal slots is lower
            top = values[i]
        elif held[i]:
            top = top_of(signals, generations, block, before)
        if top != before:
            nodes[block] = top
            changed[kept] = block
            kept += 1
    first = 0  # row of the level
    width = signals.shape[0]
    while width > 1 and kept > 0:
        count, kept = kept, 0
        width = (width + BLOCK - 1) >> BLOCK_BITS
        for i in range(count):
            row = changed[i] >> BLOCK_BITS
            top = row_top(nodes, first + row)
            node = ((first + width) << BLOCK_BITS) + row
            if nodes[node] != top:
                nodes[node] = top
                changed[kept] = row
                kept += 1
        first += width


@njit(cache=True, nogil=True)
def peak_mend(nodes: Floats, blocks: Blocks, start: int, stop: int) -> None:
    """Mend the maxima above the slots start … stop − 1, whose signals and generations were written."""
    signals, generations = blocks
    low = start >> BLOCK_BITS
    high = (stop - 1) >> BLOCK_BITS
    for block in range(low, high + 1):
        nodes[block] = top_of(signals, generations, block, np.inf)
    first = 0  # row of the level
    width = signals.shape[0]
    while width > 1:
        width = (width + BLOCK - 1) >> BLOCK_BITS
        low >>= BLOCK_BITS
        high >>= BLOCK_BITS
        for row in range(low, high + 1):
            nodes[((first + width) << BLOCK_BITS) + row] = row_top(nodes, first + row)
        first += width


@njit(cache=True, nogil=True)
def put_one(nodes: Floats, node: int, weight: float) -> None:
    """Set one leaf, given as its node, of a sum tree."""
    nodes[node] = weight
    node >>= 1
    while node > 0:
        nodes[node] = nodes[2 * node] + nodes[2 * node + 1]
        node >>= 1


@njit(cache=True, nogil=True)
def put_same(
    columns: Columns, trees: tuple[Floats, Floats], blocks: Blocks, stretch: Stretch, numbers: Numbers
) -> None:
    """Put new items that are all alike into the slots start … stop − 1: their columns, and both trees.

    columns: birth, generation, version, signal, relevance, each (capacity,); trees: of sums, of maxima; blocks: of
    signals and generations (blocks, 64); stretch: leaf of the tree of sums, start, stop, clock; numbers: signal,
    relevance, weight.
    """
    birth, generation, version, signals, relevances = columns
    sums, maxima = trees
    leaf, start, stop, clock = stretch
    signal, relevance, weight = numbers
    for slot in range(start, stop):
        birth[slot] = clock
        # Odd + 2 for a live slot, even + 1 for a dead one: odd either way.
        generation[slot] = (generation[slot] + 1) | 1
        version[slot] = -1
        signals[slot] = signal
        relevances[slot] = relevance
        sums[leaf + slot] = weight
    sum_mend(sums, leaf, start, stop)
    peak_mend(maxima, blocks, start, stop)


@njit(cache=True, nogil=True)
def look(nodes: Floats, leaf: int, generation: Ints, birth: Ints, slots: Ints, clock: int) -> tuple[Floats, Ints, Ints]:
    """Leaves, generations and ages, each (n,), of ``slots`` (n,): one pass, so that their cache misses overlap."""
    count = slots.size
    leaves = np.empty(count)
    generations = np.empty(count, np.int64)
    ages = np.empty(count, np.int64)
    for i in range(count):
        slot = slots[i]
        leaves[i] = nodes[leaf + slot]
        generations[i] = generation[slot]
        ages[i] = clock - birth[slot]
    return leaves, generations, ages


@njit(cache=True, nogil=True)
def sum_find(nodes: Floats, leaf: int, targets: Floats) -> Ints:
    """Slots (n,) whose cumulative weight holds ``targets`` (n,), each in [0, total); ``targets`` is used up.

    The search starts in the running sums of a level of at most ``TOP`` nodes, and goes down from there. It stops
    at and goes into subtrees of positive weight alone, so a target that rounding put at or past the right edge
    still finds a positive leaf.
    """
    count = targets.size
    wide = min(TOP, leaf)
    sums = np.empty(wide)
    total = 0.0
    last = 0  # the last node that adds to the sum
    for k in range(wide):
        before = total
        total += nodes[wide + k]
        sums[k] = total
        if total > before:
            last = k
    # Unsigned, for numba asks of every signed index whether it counts from the end.
    found = np.empty(count, np.uint64)
    one = np.uint64(1)
    at = 0
    for i in range(count):
        target = targets[i]
        # Targets come sorted, nearly always: walk on from the last one; else look it up.
        if at > 0 and target < sums[at - 1]:
            at = np.searchsorted(sums, target, side="right")
        steps = 0
        while at < last and sums[at] <= target:
            at += 1
            steps += 1
            if steps == 64:
                at = np.searchsorted(sums, target, side="right")
                break
        at = min(at, last)
        if at > 0:
            targets[i] = target - sums[at - 1]
        found[i] = wide + at
    width = leaf // wide
    while width > 1:
        for i in range(count):
            child = found[i] << one
            left = nodes[child]
            right = (targets[i] >= left) & (nodes[child + one] > 0.0)
            targets[i] -= left if right else 0.0
            found[i] = child + np.uint64(right)
        width >>= 1
    slots = np.empty(count, np.int64)
    for i in range(count):
        slots[i] = np.int64(found[i]) - leaf
    return slots


@njit(cache=True, nogil=True)
def admit(slots: Ints, generations: Ints, current: Ints, values: Floats) -> tuple[int, int, int, float]:
    """Check an update: slots (n,), the generations (n,) they were drawn with, those ``current``, values (n,).

    Returns (fault, position, stale, largest): fault 0 none, 1 a slot out of range, 2 a value that is NaN,
    infinite or negative; position of the first fault; how many items are stale (their generation has
    passed, or is even, which marks a dead slot); the largest value, −inf when there is none.
    """
    stale = 0
    largest = -np.inf
    for i in range(slots.size):
        slot = slots[i]
        if slot < 0 or slot >= current.size:
            return 1, i, 0, 0.0
        value = values[i]
        if not 0.0 <= value < np.inf:
            return 2, i, 0, 0.0
        largest = max(largest, value)
        stale += (generations[i] != current[slot]) | (generations[i] & 1 == 0)
    return 0, 0, stale, largest
