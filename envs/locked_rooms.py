"""MiniGrid's worlds of keys and locked doors as short vectors of facts: Unlock, UnlockPickup, KeyCorridor."""

from __future__ import annotations

from typing import Any

from minigrid.envs.keycorridor import KeyCorridorEnv
from minigrid.envs.unlock import UnlockEnv
from minigrid.envs.unlockpickup import UnlockPickupEnv
from numpy.typing import NDArray

from nser.envs.grid import GridWorld, Place
from nser.envs.locked_rooms_vocabulary import (
    KEY_CORRIDOR,
    KEY_CORRIDOR_FEATURES,
    KEY_CORRIDOR_VIEW,
    UNLOCK,
    UNLOCK_FEATURES,
    UNLOCK_PICKUP,
    UNLOCK_PICKUP_FEATURES,
    UNLOCK_PICKUP_VIEW,
    UNLOCK_VIEW,
)

__all__ = [
    "KEY_CORRIDOR", "KEY_CORRIDOR_VIEW", "UNLOCK", "UNLOCK_PICKUP", "UNLOCK_PICKUP_VIEW", "UNLOCK_VIEW",
    "KeyCorridor", "Unlock", "UnlockPickup",
]  # fmt: skip

SMALLEST_ROOM = 3


class Unlock(GridWorld, UnlockEnv):
    """Two rooms of 6 × 6 cells: take the key and open the door between them, which ends the episode.

    The columns are those of `GridFeatures` with targets key, door; fact `carrying` (1 when the agent carries the
    key); ahead key, door, wall, empty: 16 numbers.

    Arguments:
        partial:     observe what MiniGrid's agent sees instead, as `nser.envs.doorkey.DoorKey` tells
        max_steps:   steps until truncation; MiniGrid's 288 when None
        render_mode: None, "rgb_array" or "human"
    """

    def __init__(self, *, partial: bool = False, max_steps: int | None = None, render_mode: str | None = None) -> None:
        super().__init__(max_steps=max_steps, render_mode=render_mode)
        features = UNLOCK_FEATURES
        self._speak(features.space, features.objects, UNLOCK, UNLOCK_VIEW, partial)

    def _survey(self, things: dict[str, list[Any]]) -> None:
        (self._key,), (self._door,) = things["key"], things["door"]

    def _facts(self) -> NDArray:
        places = self._place(self._key), self._place(self._door)
        return self._row(places, (self.carrying is not None,), self._ahead())


class UnlockPickup(GridWorld, UnlockPickupEnv):
    """Two rooms of 6 × 6 cells: take the key, open the door, put the key down, and pick up the box behind the door.

    The columns are those of `GridFeatures` with targets key, door, box; ahead key, door, box, wall, empty; and the
    facts below: 23 numbers.

    | Fact        | 1 when                                                                              |
    |-------------|-------------------------------------------------------------------------------------|
    | carrying    | the agent carries the key                                                           |
    | door_open   | the door stands open                                                                |
    | door_locked | the door is locked; neither when it is shut again                                   |
    | past_door   | the agent is right of the dividing wall                                             |
    | box_gone    | the box is destroyed: MiniGrid's `toggle` opens a box, which is empty, and it is lost |

    Arguments as those of `Unlock`; MiniGrid's time limit is 288 steps.
    """

    def __init__(self, *, partial: bool = False, max_steps: int | None = None, render_mode: str | None = None) -> None:
        super().__init__(max_steps=max_steps, render_mode=render_mode)
        features = UNLOCK_PICKUP_FEATURES
        self._speak(features.space, features.objects, UNLOCK_PICKUP, UNLOCK_PICKUP_VIEW, partial)

    def _survey(self, things: dict[str, list[Any]]) -> None:
        (self._key,), (self._door,), (self._box,) = things["key"], things["door"], things["box"]

    def _facts(self) -> NDArray:
        key, door, box = self._key, self._door, self._box
        places = self._place(key), self._place(door), self._place(box)
        gone = self.carrying is not box and self.grid.get(*box.cur_pos) is not box
        past = self.agent_pos[0] > door.cur_pos[0]
        facts = (self.carrying is key, door.is_open, door.is_locked, past, gone)
        return self._row(places, facts, self._ahead())


class KeyCorridor(GridWorld, KeyCorridorEnv):
    """A corridor with rooms on both sides: the key lies in a room on the left, the ball in a locked one on the right.

    The columns are those of `GridFeatures` with targets key, door (the locked one), ball; ahead key, ball,
    locked_door, shut_door, open_door, wall, empty; and the facts below: 26 numbers. A doorway counts to the
    room on its right or below it.

    | Fact        | 1 when                                                            |
    |-------------|-------------------------------------------------------------------|
    | carrying    | the agent carries the key                                         |
    | door_open   | the door to the ball stands open                                  |
    | door_locked | the door to the ball is locked                                    |
    | in_corridor | the agent is in the corridor                                      |
    | with_key    | the agent is in the key's room, or carries it                     |
    | with_ball   | the agent is in the ball's room                                   |

    Arguments:
        room_size:   cells along a side of a room, walls included; at least 3
        num_rows:    rooms on each side of the corridor
        partial, max_steps, render_mode: as those of `Unlock`; MiniGrid's time limit is 30 · room_size² steps

    Raises `ValueError` for a size under 3 and for no rows.
    """

    def __init__(
        self,
        room_size: int = 3,
        num_rows: int = 1,
        *,
        partial: bool = False,
        max_steps: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        if room_size < SMALLEST_ROOM or num_rows < 1:
            raise ValueError(
                f"found KeyCorridor of {num_rows} rows of size {room_size}, expected at least 1 row of size "
                f"{SMALLEST_ROOM}"
            )
        super().__init__(num_rows=num_rows, room_size=room_size, max_steps=max_steps, render_mode=render_mode)
        features = KEY_CORRIDOR_FEATURES
        self._speak(features.space, features.objects, KEY_CORRIDOR, KEY_CORRIDOR_VIEW, partial)

    def _survey(self, things: dict[str, list[Any]]) -> None:
        (self._key,), (self._ball,) = things["key"], things["ball"]
        (self._door,) = (door for door in things["door"] if door.is_locked)

    def _facts(self) -> NDArray:
        key, door, ball = self._place(self._key), self._door, self._place(self._ball)
        here = self._room(self.agent_pos)
        facts = (
            self.carrying is self._key,
            door.is_open,
            door.is_locked,
            here == (1, 0),
            here == self._room(key),
            here == self._room(ball),
        )
        return self._row((key, self._place(door), ball), facts, self._ahead())

    def _room(self, place: Place) -> Place:
        """Column and row of the room; the corridor is one room, (1, 0)."""
        column, row = place[0] // (self.room_size - 1), place[1] // (self.room_size - 1)
        return column, 0 if column == 1 else row

    def _ahead(self) -> str:
        thing: Any = self.grid.get(*self.front_pos)
        if thing is None:
            return "empty"
        if thing.type != "door":
            return str(thing.type)
        return "open_door" if thing.is_open else "locked_door" if thing.is_locked else "shut_door"
