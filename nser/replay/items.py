"""The columns of the index: what is known of each slot, and the ring in which slots are filled."""

import numpy as np

from nser.replay.types import Bools, Floats, Ints

NEVER_SCORED = -1
BLOCK_BITS = 6
BLOCK = 1 << BLOCK_BITS  # slots of a block; of 256 signals that change, few are then the largest of their block


class Items:
    """Ring of ``capacity`` slots, filled in order; the live ones are one stretch of it, oldest first.

    Columns, all (capacity,): ``birth`` clock at insertion; ``generation`` odd while the slot is live and even
    while it is not, larger at each change, so that no two occupants of a slot share one; ``signal`` as given,
    ≥ 0; ``relevance`` in [0, 1]; ``version`` of the rules that gave it, −1 before any did.
    ``head`` is the next slot to fill, ``size`` the number of live items, ``filled`` the number ever filled.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.head = 0
        self.size = 0
        self.inserted = 0
        self.birth: Ints = np.zeros(capacity, np.int64)
        blocks = -(-capacity // BLOCK)
        # Both also by blocks, as the maximum reads them; what lies past the capacity is never live.
        self.generation_blocks: Ints = np.zeros((blocks, BLOCK), np.int64)
        self.signal_blocks: Floats = np.zeros((blocks, BLOCK))
        self.generation: Ints = self.generation_blocks.reshape(-1)[:capacity]
        self.signal: Floats = self.signal_blocks.reshape(-1)[:capacity]
        self.relevance: Floats = np.zeros(capacity)
        self.version: Ints = np.full(capacity, NEVER_SCORED, np.int64)

    @property
    def filled(self) -> int:
        """Number of slots that were ever filled: 0 … filled − 1."""
        return min(self.inserted, self.capacity)

    @property
    def tail(self) -> int:
        """Slot of the oldest live item; ``head`` if there is none or all are live."""
        return (self.head - self.size) % self.capacity

    def pieces(self, start: int, count: int) -> list[tuple[int, int]]:
        """The stretch of ``count`` ≥ 1 slots from ``start`` as one or two (start, stop) without a wrap."""
        stop = start + count
        if stop <= self.capacity:
            return [(start, stop)]
        return [(start, self.capacity), (0, stop - self.capacity)]

    def stretch(self, start: int, count: int) -> Ints:
        """The slots of that stretch (count,), in ring order."""
        slots: Ints = np.arange(start, start + count)
        if start + count > self.capacity:
            slots[self.capacity - start :] -= self.capacity
        return slots

    def live(self) -> Ints:
        """The live slots (size,), oldest first."""
        return self.stretch(self.tail, self.size)

    def is_live(self) -> Bools:
        """Whether each slot that was ever filled is live (filled,)."""
        return (self.generation[: self.filled] & 1).astype(np.bool_)

    def occupy(self, count: int, clock: int) -> int:
        """Put ``count`` new items at the head, born at ``clock``; returns their first slot."""
        start = self.head
        if count == 1:
            # The step of an environment loop: plain numbers are quicker than slices.
            self.generation[start] = (self.generation.item(start) + 1) | 1
            self.birth[start] = clock
        else:
            for low, high in self.pieces(start, count):
                # Odd + 2 for a live slot, even + 1 for a dead one: odd either way.
                self.generation[low:high] = (self.generation[low:high] + 1) | 1
                self.birth[low:high] = clock
        self.claim(count)
        return start

    def claim(self, count: int) -> int:
        """Count ``count`` new items at the head as stored; returns their first slot. The columns are the caller's."""
        start = self.head
        self.head = (start + count) % self.capacity
        self.size = min(self.size + count, self.capacity)
        self.inserted += count
        return start

    def expired(self, oldest: int) -> int:
        """How many of the oldest live items were born before clock ``oldest``; births never fall along the ring."""
        if self.size == 0 or self.birth.item(self.tail) >= oldest:
            return 0
        return sum(
            int(np.searchsorted(self.birth[low:high], oldest)) for low, high in self.pieces(self.tail, self.size)
        )

    def drop(self, count: int) -> list[tuple[int, int]]:
        """Let the ``count`` ≥ 1 oldest live items die; returns their pieces."""
        pieces = self.pieces(self.tail, count)
        for low, high in pieces:
            self.generation[low:high] += 1
        self.size -= count
        return pieces
