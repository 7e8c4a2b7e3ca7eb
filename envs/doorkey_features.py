"""Which column of a DoorKey observation holds what; no numbers of any one layout, no MiniGrid, no torch."""

from __future__ import annotations

from nser.envs.grid_features import ACTIONS, HEADINGS

__all__ = ["ACTIONS", "COLUMN", "FEATURES", "HEADINGS", "OBJECTS", "SMALLEST_SIZE", "TARGETS", "span"]

OBJECTS = ("key", "door", "goal", "wall", "empty")
TARGETS = ("key", "door", "goal")

FEATURES = (
    "agent_x",
    "agent_y",
    *(f"heading_{heading}" for heading in HEADINGS),
    *(f"{target}_{axis}" for target in TARGETS for axis in ("dx", "dy")),
    "carrying",
    "door_open",
    "door_locked",
    *(f"facing_{thing}" for thing in OBJECTS),
    "past_door",
    "cell",
)
COLUMN = {feature: column for column, feature in enumerate(FEATURES)}

SMALLEST_SIZE = 5


def span(size: int) -> int:
    """Cells between the first and the last inner row: the unit of every normalised coordinate."""
    return size - 3
