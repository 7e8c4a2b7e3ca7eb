"""MiniGrid worlds as short vectors of facts: what all of them share."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
from gymnasium import spaces
from minigrid.minigrid_env import MiniGridEnv
from numpy.typing import NDArray

from nser.envs.doorkey_view import VIEW_FEATURES, VIEW_SCALE
from nser.grounding.vocabulary import Vocabulary

AHEAD = ((1, 0), (0, 1), (-1, 0), (0, -1))  # by MiniGrid's direction: east, south, west, north
HEADING = tuple(tuple(float(i == j) for j in range(4)) for i in range(4))
SCALE = np.array(VIEW_SCALE, dtype=np.float32)
VIEW_SPACE = spaces.Box(0, 1, (len(VIEW_FEATURES),), dtype=np.float32)

Place = tuple[int, int]


class GridWorld(MiniGridEnv):
    """Stands before a MiniGrid environment in the order of classes, and reads its grid instead of drawing it.

    The world, its seeds, rewards and time limit are MiniGrid's own; only the observation differs. A subclass calls
    `_speak` at the end of its `__init__`, remembers things in `_survey`, and tells the present state in `_facts`.
    """

    agent_pos: Any  # MiniGrid takes tuples and arrays; here it is always a pair of plain numbers
    partial = False
    vocabulary: Vocabulary

    def _speak(
        self, space: spaces.Box, objects: tuple[str, ...], vocabulary: Vocabulary, view: Vocabulary, partial: bool
    ) -> None:
        """Set the observation space, what may stand ahead, and the vocabulary.

        `partial` for MiniGrid's own view of 7 × 7 cells, in which `view` is spoken.
        """
        self.partial = partial
        self.observation_space = VIEW_SPACE if partial else space
        self.vocabulary = view if partial else vocabulary
        self._cell = 1 / (max(self.width, self.height) - 3)
        self._facing = {thing: tuple(float(thing == other) for other in objects) for thing in objects}

    def _gen_grid(self, width: int, height: int) -> None:
        super()._gen_grid(width, height)  # type: ignore[safe-super, no-untyped-call]
        x, y = self.agent_pos
        self.agent_pos = int(x), int(y)  # plain numbers are faster than NumPy's
        things: dict[str, list[Any]] = {}
        for cell, thing in enumerate(self.grid.grid):
            if thing is not None and thing.type != "wall":
                thing.cur_pos = cell % width, cell // width
                things.setdefault(thing.type, []).append(thing)
        self._survey(things)

    def _survey(self, things: dict[str, list[Any]]) -> None:
        """Called once a level is built, with everything on the grid but its walls, by type."""

    @property
    def front_pos(self) -> Place:
        """The cell straight ahead; MiniGrid's own adds two arrays for it."""
        dx, dy = AHEAD[self.agent_dir]
        x, y = self.agent_pos
        return x + dx, y + dy

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """MiniGrid's step; `action` is any whole number, 0 to 6."""
        result: tuple[Any, Any, bool, bool, dict[str, Any]] = super().step(index(action))
        return result

    def gen_obs(self) -> NDArray[np.float32]:
        """[D] float32, the observation of the present state; MiniGrid calls it after every reset and step."""
        return self._view() if self.partial else self._facts()

    def _facts(self) -> NDArray[np.float32]:
        raise NotImplementedError

    def _ahead(self) -> str:
        """What the cell straight ahead holds."""
        thing = self.grid.get(*self.front_pos)
        return "empty" if thing is None else str(thing.type)

    def _row(self, targets: tuple[Place, ...], facts: tuple[bool, ...], ahead: str) -> NDArray[np.float32]:
        """The observation in the order of `GridFeatures`."""
        x, y = self.agent_pos
        cell = self._cell
        row = [(x - 1) * cell, (y - 1) * cell, *HEADING[self.agent_dir]]
        for there_x, there_y in targets:
            row.append((there_x - x) * cell)
            row.append((there_y - y) * cell)
        row += facts
        row += self._facing[ahead]
        row.append(cell)
        return np.array(row, dtype=np.float32)

    def _place(self, thing: Any) -> Place:
        """Where a thing is: in the agent's hand, on the grid, or (destroyed) counted to the agent's cell."""
        there = self.carrying is not thing and self.grid.get(*thing.cur_pos) is thing
        place: Place = thing.cur_pos if there else self.agent_pos
        return place

    def _view(self) -> NDArray[np.float32]:
        """What MiniGrid's agent sees, (object, colour, state) scaled to [0, 1], then heading and `carrying`."""
        image = super().gen_obs()["image"]  # type: ignore[no-untyped-call]  # [7, 7, 3] uint8
        rest = (*HEADING[self.agent_dir], self.carrying is not None)
        return np.concatenate([(image / SCALE).ravel(), rest], dtype=np.float32)
