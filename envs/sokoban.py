"""Sokoban: push every box onto a target; boxes can't be pulled, so a wrong push may lose the level.

>>> env = Sokoban(level='''
...     ######
...     #@$ .#
...     #  # #
...     #    #
...     #    #
...     ######''', render_mode="ansi")
>>> observation, _ = env.reset(seed=0)
>>> observation, reward, solved, cut, info = env.step(3)
>>> print(env.render())
######
# @$.#
#  # #
#    #
#    #
######
>>> observation, reward, solved, cut, info = env.step(3)
>>> round(reward, 1), solved, info["is_success"]
(10.9, True, True)
"""

from __future__ import annotations

from operator import index
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from nser.envs.sokoban_levels import Level, LevelError, parse_level, random_level
from nser.envs.sokoban_vocabulary import (
    ACTIONS,
    COLUMN,
    DISTANCE_UNIT,
    FACTS,
    MAX_BOXES,
    PLANES,
    features,
    sokoban_vocabulary,
)

SMALLEST_SIZE, LARGEST_SIZE = 5, 20
STEP, ON_TARGET, OFF_TARGET, SOLVED = -0.1, 1.0, -1.0, 10.0
TILE = 16  # pixels along a side
COLOURS = {"#": (90, 90, 90), " ": (235, 230, 220), ".": (235, 150, 150), "@": (60, 110, 200), "+": (60, 110, 200),
           "$": (165, 110, 50), "*": (70, 160, 80)}  # fmt: skip


class Sokoban(gymnasium.Env[NDArray[np.float32], Any]):
    """Sokoban on random levels that can be solved, or on one level of your own.

    | Action | 0  | 1    | 2    | 3     |
    |--------|----|------|------|-------|
    |        | up | down | left | right |

    A step into a box pushes it when the cell behind it is free; a step that is blocked changes nothing.

    | Reward | for                        |
    |--------|----------------------------|
    | −0.1   | every step                 |
    | +1     | a box pushed onto a target |
    | −1     | a box pushed off a target  |
    | +10    | the last one: solved       |

    | Feature                                          | Min | Max | Unit                                         |
    |--------------------------------------------------|-----|-----|----------------------------------------------|
    | wall_WAY, box_WAY                                |  0  |  1  | 1 where that is next to the agent on this side |
    | pushable_WAY                                     |  0  |  1  | 1 where a step that way pushes a box         |
    | nears_, scores_, spoils_, buries_WAY             |  0  |  1  | 1 where the push brings the box nearer to the closest target, onto one, off one, into a corner for ever |
    | toward_WAY                                       |  0  |  1  | 1 where the closest box off target lies that way |
    | lost                                             |  0  |  1  | 1 where a box is in a corner that is no target |
    | boxes_left                                       |  0  |  1  | 10 boxes                                     |
    | distance                                         |  0  |  4  | 100 cells between boxes and closest targets  |
    | wall_at_R_C, target_at_, box_at_, agent_at_R_C   |  0  |  1  | the map without its rim, row by row          |

    WAY is up, down, left and right in turn: 35 numbers about the agent, 4 · (size − 2)² of the map.

    Arguments:
        size:        cells along a side, walls included; 5 to 20
        boxes:       as many targets; at most a sixth of the inner cells, and 10
        level:       one level as text, instead of random ones; it tells size and boxes
        max_steps:   steps until truncation
        render_mode: None, "ansi" (signs as in `nser.envs.sokoban_levels`) or "rgb_array"

    An episode is over when the level is solved; a level that is lost goes on until the time limit. The level is
    determined by the seed of the reset. `info["is_success"]` tells whether it is solved.

    Raises `LevelError` for sizes and levels that can't be.
    """  # noqa: E501

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012  gymnasium's own way
    _agent: int
    _steps: int

    def __init__(
        self,
        size: int = 7,
        boxes: int = 2,
        *,
        level: str | None = None,
        max_steps: int = 120,
        render_mode: str | None = None,
    ) -> None:
        self._fixed = _square(parse_level(level)) if level is not None else None
        self.size = self._fixed.width if self._fixed else size
        self.boxes = len(self._fixed.boxes) if self._fixed else boxes
        _check_size(self.size, self.boxes, self._fixed is None)
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise LevelError(f"found render_mode {render_mode!r}, expected ansi, rgb_array or None")
        self.max_steps, self.render_mode = max_steps, render_mode
        self.vocabulary = sokoban_vocabulary(self.size)
        high = np.ones(len(features(self.size)), dtype=np.float32)
        high[COLUMN["distance"]] = 4
        self.observation_space = spaces.Box(np.zeros_like(high), high, dtype=np.float32)
        self.action_space: spaces.Space[Any] = spaces.Discrete(len(ACTIONS))

    @property
    def level(self) -> Level:
        """The level that is played, as it began."""
        return self._level

    @property
    def state(self) -> tuple[int, frozenset[int]]:
        """Where the agent and the boxes are, as cells of the level."""
        return self._agent, frozenset(self._boxes)

    @property
    def solved(self) -> bool:
        """Whether every box is on a target."""
        return self._boxes <= self._level.targets

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """A new level; no options are known."""
        super().reset(seed=seed)
        self._begin(self._fixed or random_level(self.np_random, self.size, self.boxes))
        return self._observe(), self._info()

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Walk or push; `action` is any whole number, 0 to 3."""
        number = index(action)
        if not 0 <= number < len(ACTIONS):
            raise ValueError(f"found action {number}, expected 0 to {len(ACTIONS) - 1}: {', '.join(ACTIONS)}")
        self._steps += 1
        reward = STEP
        step = self._level.steps[number]
        ahead, beyond = self._agent + step, self._agent + 2 * step
        if ahead in self._boxes and self._free(beyond):
            self._boxes.remove(ahead)
            self._boxes.add(beyond)
            targets = self._level.targets
            reward += ON_TARGET * (beyond in targets) + OFF_TARGET * (ahead in targets)
        if self._free(ahead):
            self._agent = ahead
        solved = self.solved
        reward += SOLVED * solved
        return self._observe(), reward, solved, not solved and self._steps >= self.max_steps, self._info()

    def render(self) -> Any:
        """The level as text or as a picture of 16 × 16 pixels a cell; None without a render mode."""
        if self.render_mode is None:
            return None
        rows = self._signs()
        if self.render_mode == "ansi":
            return "\n".join(rows)
        picture = np.array([[COLOURS[sign] for sign in row] for row in rows], dtype=np.uint8)
        return picture.repeat(TILE, axis=0).repeat(TILE, axis=1)

    def _begin(self, level: Level) -> None:
        self._level, self._boxes = level, set(level.boxes)
        self._agent, self._steps = level.agent, 0
        size, walls = self.size, level.walls
        self._near = [min(level.apart(cell, target) for target in level.targets) for cell in range(size * size)]
        self._corner = [
            cell not in level.targets
            and not {cell - 1, cell + 1}.isdisjoint(walls)
            and not {cell - size, cell + size}.isdisjoint(walls)
            for cell in range(size * size)
        ]
        self._map = np.zeros((len(PLANES), size, size), dtype=np.float32)
        for plane, cells in zip(self._map, (walls, level.targets), strict=False):
            plane.flat[list(cells)] = 1

    def _free(self, cell: int) -> bool:
        return cell not in self._level.walls and cell not in self._boxes

    def _observe(self) -> NDArray[np.float32]:
        _, _, box_plane, agent_plane = self._map
        box_plane.fill(0)
        agent_plane.fill(0)
        box_plane.flat[list(self._boxes)] = 1
        agent_plane.flat[self._agent] = 1
        result = np.empty(self.observation_space.shape or (), dtype=np.float32)
        result[: len(FACTS)] = self._facts()
        result[len(FACTS) :] = self._map[:, 1:-1, 1:-1].ravel()
        return result

    def _facts(self) -> list[float]:
        boxes, targets, near, corner = self._boxes, self._level.targets, self._near, self._corner
        off = boxes - targets
        facts: list[float] = []
        for step, toward in zip(self._level.steps, self._toward(off), strict=True):
            ahead, beyond = self._agent + step, self._agent + 2 * step
            box = ahead in boxes
            if box and self._free(beyond):
                left, reached = ahead in targets, beyond in targets
                about = (True, near[beyond] < near[ahead], reached and not left, left and not reached, corner[beyond])
            else:
                about = (False, False, False, False, False)
            facts += (ahead in self._level.walls, box, *about, toward)
        lost = any(corner[box] for box in off)
        facts += (lost, len(off) / MAX_BOXES, sum(near[box] for box in off) / DISTANCE_UNIT)
        return facts

    def _toward(self, off: set[int]) -> tuple[bool, bool, bool, bool]:
        """Whether the closest box lies up, down, left, right; of equally close ones the first in reading order."""
        if not off:
            return False, False, False, False
        closest = min(sorted(off), key=lambda box: self._level.apart(box, self._agent))
        (row, column), (box_row, box_column) = divmod(self._agent, self.size), divmod(closest, self.size)
        return box_row < row, box_row > row, box_column < column, box_column > column

    def _info(self) -> dict[str, Any]:
        return {"is_success": self.solved}

    def _signs(self) -> list[str]:
        signs = []
        for cell in range(self.size * self.size):
            target = cell in self._level.targets
            if cell in self._level.walls:
                signs.append("#")
            elif cell == self._agent:
                signs.append("+" if target else "@")
            elif cell in self._boxes:
                signs.append("*" if target else "$")
            else:
                signs.append("." if target else " ")
        text = "".join(signs)
        return [text[row : row + self.size] for row in range(0, len(text), self.size)]


def _square(level: Level) -> Level:
    """The level on a square map, with walls on the right and below."""
    size = max(level.width, level.height, SMALLEST_SIZE)

    def moved(cells: frozenset[int]) -> frozenset[int]:
        return frozenset(cell // level.width * size + cell % level.width for cell in cells)

    free = moved(frozenset(range(level.width * level.height)) - level.walls)
    walls = frozenset(range(size * size)) - free
    (agent,) = moved(frozenset([level.agent]))
    return Level(size, size, walls, moved(level.targets), moved(level.boxes), agent)


def _check_size(size: int, boxes: int, random: bool) -> None:
    if not SMALLEST_SIZE <= size <= LARGEST_SIZE:
        raise LevelError(f"found Sokoban of size {size}, expected {SMALLEST_SIZE} to {LARGEST_SIZE}")
    most = min(MAX_BOXES, (size - 2) ** 2 // 6 if random else MAX_BOXES)
    if not 1 <= boxes <= most:
        raise LevelError(f"found {boxes} boxes in Sokoban of size {size}, expected 1 to {most}")
