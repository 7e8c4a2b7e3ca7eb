"""MiniGrid's worlds of walking as short vectors of facts: LavaGap, FourRooms."""

from __future__ import annotations

from typing import Any

from minigrid.envs.fourrooms import FourRoomsEnv
from minigrid.envs.lavagap import LavaGapEnv
from numpy.typing import NDArray

from nser.envs.grid import GridWorld, Place
from nser.envs.open_rooms_vocabulary import (
    FOUR_ROOMS,
    FOUR_ROOMS_FEATURES,
    FOUR_ROOMS_VIEW,
    LAVA_GAP,
    LAVA_GAP_FEATURES,
    LAVA_GAP_VIEW,
)

__all__ = ["FOUR_ROOMS", "FOUR_ROOMS_VIEW", "LAVA_GAP", "LAVA_GAP_VIEW", "FourRooms", "LavaGap"]

SMALLEST_SIZE = 5


class LavaGap(GridWorld, LavaGapEnv):
    """Walk through the only gap in a strip of lava to the goal; a step into lava ends the episode without reward.

    The columns are those of `GridFeatures` with targets gap, goal; fact `past_gap` (1 right of the lava); ahead
    lava, goal, wall, empty: 16 numbers.

    Arguments:
        size:        cells along a side, walls included; at least 5
        partial:     observe what MiniGrid's agent sees instead, as `nser.envs.doorkey.DoorKey` tells
        max_steps:   steps until truncation; MiniGrid's 4 · size² when None
        render_mode: None, "rgb_array" or "human"

    Raises `ValueError` for a size under 5.
    """

    def __init__(
        self,
        size: int = 5,
        *,
        partial: bool = False,
        max_steps: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        if size < SMALLEST_SIZE:
            raise ValueError(f"found LavaGap of size {size}, expected at least {SMALLEST_SIZE}")
        super().__init__(size, max_steps=max_steps, render_mode=render_mode)
        features = LAVA_GAP_FEATURES
        self._speak(features.space, features.objects, LAVA_GAP, LAVA_GAP_VIEW, partial)

    def _survey(self, things: dict[str, list[Any]]) -> None:
        x, y = self.gap_pos
        self._gap = int(x), int(y)
        self._goal: Place = things["goal"][0].cur_pos

    def _facts(self) -> NDArray:
        return self._row((self._gap, self._goal), (self.agent_pos[0] > self._gap[0],), self._ahead())


class FourRooms(GridWorld, FourRoomsEnv):
    """Four rooms of 8 × 8 cells in a square, a gap in each wall between two: walk to the goal.

    The columns are those of `GridFeatures` with targets exit, goal; facts `in_goal_room` and `in_gap`; ahead goal,
    wall, empty: 16 numbers. The *exit* is the gap through which the shortest way leads on to the goal's room,
    and the goal itself in its room. A gap belongs to both its rooms.

    Arguments:
        partial:     observe what MiniGrid's agent sees instead, as `nser.envs.doorkey.DoorKey` tells
        max_steps:   steps until truncation; MiniGrid's 100 when None
        render_mode: None, "rgb_array" or "human"
    """

    def __init__(self, *, partial: bool = False, max_steps: int | None = None, render_mode: str | None = None) -> None:
        steps = 100 if max_steps is None else max_steps
        super().__init__(max_steps=steps, render_mode=render_mode)  # type: ignore[no-untyped-call]
        features = FOUR_ROOMS_FEATURES
        self._speak(features.space, features.objects, FOUR_ROOMS, FOUR_ROOMS_VIEW, partial)

    def _survey(self, things: dict[str, list[Any]]) -> None:
        middle = self.size // 2
        along = [cell for cell in range(1, self.size - 1) if cell != middle]
        crossings = [(middle, y) for y in along] + [(x, middle) for x in along]
        self._goal: Place = things["goal"][0].cur_pos
        # The goal may lie in a gap, so a gap is whatever is no wall.
        self._gaps = [cell for cell in crossings if getattr(self.grid.get(*cell), "type", "") != "wall"]
        self._away = self._ways()
        self._known: dict[Place, tuple[Place, bool, bool]] = {}  # found once a cell, as neither goal nor gaps move

    def _facts(self) -> NDArray:
        here = self.agent_pos
        if here not in self._known:
            at_home = bool(self._rooms(here) & self._rooms(self._goal))
            self._known[here] = self._goal if at_home else self._exit(here), at_home, here in self._gaps
        way, at_home, in_gap = self._known[here]
        return self._row((way, self._goal), (at_home, in_gap), self._ahead())

    def _rooms(self, place: Place) -> set[Place]:
        """The room of a cell as (right half, lower half); both rooms of a gap."""
        middle = self.size // 2
        columns = {0, 1} if place[0] == middle else {int(place[0] > middle)}
        rows = {0, 1} if place[1] == middle else {int(place[1] > middle)}
        return {(column, row) for column in columns for row in rows}

    def _exit(self, here: Place) -> Place:
        gaps = [gap for gap in self._gaps if gap != here and self._rooms(gap) & self._rooms(here)]
        return min(gaps, key=lambda gap: _apart(here, gap) + self._away[gap])

    def _ways(self) -> dict[Place, float]:
        """Cells from each gap to the goal, over as many other gaps as it takes."""
        away = {gap: float("inf") for gap in self._gaps}
        away |= {gap: _apart(gap, self._goal) for gap in away if self._rooms(gap) & self._rooms(self._goal)}
        for _ in self._gaps:
            for gap in away:
                near = [other for other in away if self._rooms(other) & self._rooms(gap)]
                away[gap] = min(away[gap], *(_apart(gap, other) + away[other] for other in near))
        return away


def _apart(one: Place, other: Place) -> int:
    return abs(one[0] - other[0]) + abs(one[1] - other[1])
