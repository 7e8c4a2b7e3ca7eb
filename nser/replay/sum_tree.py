"""Float64 trees over slots: sums to draw from, and exact maxima.

Each write costs O(log capacity) an item; each is a plain array that can be rebuilt from its leaves, with the
same bits, because a node is always left child (+ or max) right child, in whatever order leaves were written.
Float64, because float32 sums err by a percent a leaf at 10⁶ leaves.
"""

import importlib
import importlib.util
import os
from typing import Protocol, cast

import numpy as np

from nser.replay.items import BLOCK
from nser.replay.types import Blocks, Columns, Floats, Ints, Numbers, Stretch


class Kernels(Protocol):
    """What ``kernels_numba`` and ``kernels_numpy`` both offer; see the first for what each does."""

    def sum_write(self, nodes: Floats, leaf: int, slots: Ints, values: Floats) -> None: ...  # noqa: D102
    def max_write(self, nodes: Floats, leaf: int, slots: Ints, values: Floats) -> None: ...  # noqa: D102
    def sum_mend(self, nodes: Floats, leaf: int, start: int, stop: int) -> None: ...  # noqa: D102
    def max_mend(self, nodes: Floats, leaf: int, start: int, stop: int) -> None: ...  # noqa: D102
    def peak_write(self, nodes: Floats, blocks: Blocks, slots: Ints, values: Floats) -> None: ...  # noqa: D102
    def peak_mend(self, nodes: Floats, blocks: Blocks, start: int, stop: int) -> None: ...  # noqa: D102
    def put_one(self, nodes: Floats, node: int, weight: float) -> None: ...  # noqa: D102
    def put_same(  # noqa: D102
        self,
        columns: Columns,
        trees: tuple[Floats, Floats],
        blocks: Blocks,
        stretch: Stretch,
        numbers: Numbers,
    ) -> None: ...
    def look(  # noqa: D102
        self, nodes: Floats, leaf: int, generation: Ints, birth: Ints, slots: Ints, clock: int
    ) -> tuple[Floats, Ints, Ints]: ...
    def sum_find(self, nodes: Floats, leaf: int, targets: Floats) -> Ints: ...  # noqa: D102
    def admit(  # noqa: D102
        self, slots: Ints, generations: Ints, current: Ints, values: Floats
    ) -> tuple[int, int, int, float]: ...


def kernels() -> Kernels:
    """The compiled kernels, or their NumPy twin where numba is absent or ``NSER_NUMBA=0`` is set.

    Read at each call, so every index keeps what was set when it was made.
    """
    compiled = os.environ.get("NSER_NUMBA", "1") != "0" and importlib.util.find_spec("numba") is not None
    name = "nser.replay.kernels_numba" if compiled else "nser.replay.kernels_numpy"
    return cast(Kernels, importlib.import_module(name))


class Tree:
    """A complete binary tree over ``capacity`` ≥ 1 slots, any number; see ``SumTree`` and ``MaxTree``.

    ``nodes`` (2·leaf,) float64: the root is node 1, slot s is node ``leaf`` + s.
    """

    empty = 0.0

    def __init__(self, capacity: int, kernels: Kernels) -> None:
        self.capacity = capacity
        self.leaf = 1 << (capacity - 1).bit_length()
        self.nodes: Floats = np.full(2 * self.leaf, self.empty)
        self.kernels = kernels

    @property
    def root(self) -> float:
        """Sum or maximum over all slots."""
        return self.nodes.item(1)

    @property
    def leaves(self) -> Floats:
        """The values of all slots (capacity,), a view."""
        return self.nodes[self.leaf : self.leaf + self.capacity]

    def take(self, slots: Ints) -> Floats:
        """The values of ``slots`` (n,)."""
        return self.nodes.take(slots + self.leaf)

    def rebuild(self, values: Floats) -> None:
        """Set the leaves of slots 0 … len(values) − 1, empty the rest, mend every node; O(capacity)."""
        self.nodes[self.leaf : self.leaf + len(values)] = values
        self.nodes[self.leaf + len(values) :] = self.empty
        self._mend(0, self.leaf)

    def put(self, start: int, stop: int, values: Floats | float) -> None:
        """Set the leaves of slots start … stop − 1 (at least one, no wrap) to values (stop − start,) or one."""
        self.nodes[self.leaf + start : self.leaf + stop] = values
        self._mend(start, stop)

    def _mend(self, start: int, stop: int) -> None:
        raise NotImplementedError


class SumTree(Tree):
    """Sums of non-negative weights, to draw slots in proportion to them.

    >>> tree = SumTree(3, kernels())
    >>> tree.write(np.array([0, 2]), np.array([1.0, 3.0]))
    >>> tree.root, tree.find(np.array([0.5, 1.5, 4.0])).tolist()
    (4.0, [0, 2, 2])
    """

    def write(self, slots: Ints, values: Floats) -> None:
        """Set the leaves of ``slots`` (n,) to ``values`` (n,) ≥ 0; of equal slots the last wins."""
        self.kernels.sum_write(self.nodes, self.leaf, slots, values)

    def find(self, targets: Floats) -> Ints:
        """Slots (n,) whose cumulative weight holds ``targets`` (n,) in [0, root); ``targets`` is used up.

        A slot of weight zero is never found while the root is positive, whatever rounding does to a target.
        """
        return self.kernels.sum_find(self.nodes, self.leaf, targets)

    def _mend(self, start: int, stop: int) -> None:
        self.kernels.sum_mend(self.nodes, self.leaf, start, stop)


class MaxTree(Tree):
    """Exact maximum over slots; −inf where a slot is empty. A minimum is that of the negated values."""

    empty = -np.inf

    def write(self, slots: Ints, values: Floats) -> None:
        """Set the leaves of ``slots`` (n,) to ``values`` (n,); of equal slots the last wins."""
        self.kernels.max_write(self.nodes, self.leaf, slots, values)

    def _mend(self, start: int, stop: int) -> None:
        self.kernels.max_mend(self.nodes, self.leaf, start, stop)


class Peak:
    """Exact maximum of the signals of the live slots: a wide tree over blocks of slots.

    It reads the columns themselves, ``signals`` and ``generations`` (blocks, 64): who writes them tells it. ``nodes``
    holds its levels one after another, each filled up to a whole number of rows of 64: the maximum of each block, of
    each row of these, and so on to the root. Nearly every write ends in the lowest level, for a signal that is not
    the largest of its block changes nothing; and that level is small enough to stay near the processor.
    """

    def __init__(self, signals: Floats, generations: Ints, kernels: Kernels) -> None:
        self.blocks: Blocks = (signals, generations)
        self.kernels = kernels
        self._root, width = 0, len(signals)
        while width > 1:
            width = -(-width // BLOCK)
            self._root += width * BLOCK
        self.nodes: Floats = np.full(self._root + BLOCK, -np.inf)

    @property
    def root(self) -> float:
        """The maximum; −inf when no slot is live."""
        return self.nodes.item(self._root)

    def write(self, slots: Ints, values: Floats) -> None:
        """Set the signals of live ``slots`` (n,) to ``values`` (n,), in their column too; the last of equals wins."""
        self.kernels.peak_write(self.nodes, self.blocks, slots, values)

    def mend(self, start: int, stop: int) -> None:
        """The columns of the slots start … stop − 1 (at least one, no wrap) were written."""
        self.kernels.peak_mend(self.nodes, self.blocks, start, stop)
