"""For hosts whose feedback names places alone: which item of a place was drawn last."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nser.replay.draw import Draw
from nser.replay.index import ReplayIndex

Ints = NDArray[np.int64]


class Ledger:
    """Remembers, for every place of a host, the slot and the generation of its last draw; −1 and 0 for none.

    Feedback that comes back with places only is so told from feedback for what was overwritten since. It cannot be
    where a place was overwritten and drawn again before the feedback for its earlier item came.
    """

    def __init__(self, index: ReplayIndex) -> None:
        self.index = index
        self.slots = np.full(index.capacity, -1, np.int64)
        self.generations = np.zeros(index.capacity, np.int64)

    def note(self, places: Ints, draw: Draw) -> None:
        """A draw was handed out as places [n]."""
        self.slots[places], self.generations[places] = draw.slots, draw.generations

    def update(self, places: Ints, present: Ints, signal: NDArray) -> int:
        """Signals [n] ≥ 0 of places [n] to the index; returns how many were ignored as overwritten.

        A place that was never drawn is taken to mean its `present` slot [n]. Raises as `ReplayIndex.update` does.
        """
        drawn = self.slots[places]
        slots = np.where(drawn >= 0, drawn, present)
        generations = np.where(drawn >= 0, self.generations[places], self.index.generations_of(present))
        values = np.asarray(signal, np.float64)
        return self.index.update(Draw(slots, generations, values, values, slots), values)
