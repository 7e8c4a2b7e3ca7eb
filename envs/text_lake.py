"""FrozenLake in words.

>>> game = FrozenLakeText(size=3)
>>> observation, _ = game.reset(seed=1)
>>> print(game.picture())
P..
...
..G
>>> game.solution()
['down', 'down', 'right', 'right']
"""

from __future__ import annotations

from collections import deque
from typing import Any

from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv, generate_random_map

from nser.envs.known import KNOWN
from nser.envs.text_game import TextGame

SIGNS = {"S": ".", "F": ".", "H": "O", "G": "G"}
SMALLEST, LARGEST = 2, 12


class FrozenLakeText(TextGame):
    """Walk over the ice to the goal, around the holes; reward 1 at the goal, 0 elsewhere, a hole ends the game.

    - `size`: cells along a side, 2 to 12;
    - `frozen`: share of the other cells that are ice, in (0, 1]; every map has a way to the goal;
    - `slippery`: a step goes aside twice out of three times, as in gymnasium's own.

    Raises `ValueError` for other arguments.
    """

    name = "frozen_lake"
    moves = KNOWN["FrozenLake"].actions
    rules = (
        "You (P) stand on a frozen lake. Walk to the goal (G) over the ice (.); who steps into a hole (O) is lost. "
        "Each turn you take one step."
    )

    def __init__(
        self,
        size: int = 4,
        frozen: float = 0.8,
        slippery: bool = False,
        max_turns: int = 20,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_turns, render_mode)
        if not SMALLEST <= size <= LARGEST:
            raise ValueError(f"found a lake of size {size}, expected {SMALLEST} to {LARGEST}")
        if not 0 < frozen <= 1:
            raise ValueError(f"found a share of ice of {frozen}, expected one in (0, 1]")
        self.size, self.frozen, self.slippery = size, frozen, slippery
        self._begin()

    @property
    def solved(self) -> bool:
        """Whether the player stands on the goal."""
        return self._cells[self._at] == "G"

    def picture(self) -> str:
        """The map, with the player on it."""
        signs = [SIGNS[cell] for cell in self._cells]
        signs[self._at] = "P"
        return "\n".join("".join(signs[row : row + self.size]) for row in range(0, len(signs), self.size))

    def solution(self) -> list[str] | None:
        """A shortest way to the goal, as if the ice were not slippery."""
        before: dict[int, tuple[int, str]] = {}
        waiting = deque([self._at])
        while waiting:
            cell = waiting.popleft()
            if self._cells[cell] == "G":
                way = []
                while cell != self._at:
                    cell, move = before[cell]
                    way.append(move)
                return way[::-1]
            for move, after in zip(self.moves, self._neighbours(cell), strict=True):
                if after != self._at and after not in before and self._cells[after] != "H":
                    before[after] = cell, move
                    waiting.append(after)
        return None

    def _begin(self) -> None:
        world = generate_random_map(self.size, self.frozen, int(self.np_random.integers(2**31)))
        self._cells = "".join(world)
        self._lake: Any = FrozenLakeEnv(desc=world, is_slippery=self.slippery)
        self._at, _ = self._lake.reset(seed=int(self.np_random.integers(2**31)))

    def _move(self, number: int) -> tuple[float, bool, str]:
        before = self._at
        after, reward, over, _, _ = self._lake.step(number)
        self._at = int(after)
        told = "You stand still." if self._at == before else "You take a step."
        if over:
            told = "You reached the goal." if self.solved else "You fell into a hole."
        return float(reward), bool(over), told

    def _neighbours(self, cell: int) -> tuple[int, int, int, int]:
        """The cells to the left, below, to the right and above; the cell itself where the map ends."""
        row, column = divmod(cell, self.size)
        last = self.size - 1
        places = (
            (row, max(column - 1, 0)),
            (min(row + 1, last), column),
            (row, min(column + 1, last)),
            (max(row - 1, 0), column),
        )
        left, down, right, up = (r * self.size + c for r, c in places)
        return left, down, right, up
