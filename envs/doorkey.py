"""MiniGrid's DoorKey as a short vector of facts about its grid."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from minigrid.envs.doorkey import DoorKeyEnv
from numpy.typing import NDArray

from nser.envs.doorkey_features import FEATURES, OBJECTS, SMALLEST_SIZE
from nser.envs.doorkey_view import DOORKEY_VIEW
from nser.envs.doorkey_vocabulary import DOORKEY
from nser.envs.grid import HEADING, GridWorld, Place

__all__ = ["DOORKEY", "DOORKEY_VIEW", "DoorKey"]

RELATIVE = ("key_dx", "key_dy", "door_dx", "door_dy", "goal_dx", "goal_dy")


class DoorKey(GridWorld, DoorKeyEnv):
    """DoorKey whose observation is read off the grid instead of drawn: 25 times the steps a second.

    The world, its seeds, rewards and time limit are MiniGrid's own; only the observation differs. Layouts of
    all sizes share one observation space, so that an agent can move between them.

    | Feature                          | Min | Max | Unit                                                      |
    |----------------------------------|-----|-----|-----------------------------------------------------------|
    | agent_x, agent_y                 |  0  |  1  | size − 3 cells, from the inner top left corner            |
    | heading_east, _south, _west, _north | 0 | 1  | one-hot                                                   |
    | key_dx, key_dy                   | −1  |  1  | size − 3 cells, from the agent; 0, 0 while it is carried  |
    | door_dx, door_dy                 | −1  |  1  | size − 3 cells, from the agent; 0, 0 in the doorway       |
    | goal_dx, goal_dy                 |  0  |  1  | size − 3 cells, from the agent                            |
    | carrying                         |  0  |  1  | 1 when the agent carries the key                          |
    | door_open, door_locked           |  0  |  1  | both 0 when it is shut but unlocked                       |
    | facing_key, _door, _goal, _wall, _empty | 0 | 1 | one-hot: what the cell straight ahead holds          |
    | past_door                        |  0  |  1  | 1 right of the dividing wall                              |
    | cell                             |  0  | 0.5 | 1 / (size − 3): one cell in the unit above                |

    Arguments:
        size:        cells along a side, walls included; at least 5
        partial:     observe what MiniGrid's agent sees instead: its 7 × 7 view of (object, colour, state),
                     flattened in MiniGrid's order and scaled to [0, 1], then the direction one-hot and
                     `carrying`; 152 numbers. Walls hide what is behind them, and the image costs its time
        max_steps:   steps until truncation; MiniGrid's 10 · size² when None
        render_mode: None, "rgb_array" or "human"

    Raises `ValueError` for a size under 5, where no room is left beside the dividing wall.
    """

    def __init__(
        self,
        size: int = 6,
        *,
        partial: bool = False,
        max_steps: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        if size < SMALLEST_SIZE:
            raise ValueError(f"found DoorKey of size {size}, expected at least {SMALLEST_SIZE}")
        super().__init__(size=size, max_steps=max_steps, render_mode=render_mode)
        self.size = size
        self._speak(_symbolic_space(), OBJECTS, DOORKEY, DOORKEY_VIEW, partial)

    def _survey(self, things: dict[str, list[Any]]) -> None:
        (self._key,), (self._door,) = things["key"], things["door"]
        self._door_pos: Place = self._door.cur_pos

    def _facts(self) -> NDArray[np.float32]:
        x, y = self.agent_pos
        door_x, door_y = self._door_pos
        door, cell = self._door, self._cell
        carried = self.carrying is not None
        key_x, key_y = (x, y) if carried else self._key.cur_pos
        ahead = self.grid.get(*self.front_pos)
        facts = (
            (x - 1) * cell,
            (y - 1) * cell,
            *HEADING[self.agent_dir],
            (key_x - x) * cell,
            (key_y - y) * cell,
            (door_x - x) * cell,
            (door_y - y) * cell,
            (self.size - 2 - x) * cell,
            (self.size - 2 - y) * cell,
            carried,
            door.is_open,
            door.is_locked,
            *self._facing["empty" if ahead is None else ahead.type],
            x > door_x,
            cell,
        )
        return np.array(facts, dtype=np.float32)


def _symbolic_space() -> spaces.Box:
    low = np.array([-1 if name in RELATIVE[:4] else 0 for name in FEATURES], dtype=np.float32)
    high = np.array([0.5 if name == "cell" else 1 for name in FEATURES], dtype=np.float32)
    return spaces.Box(low, high, dtype=np.float32)
