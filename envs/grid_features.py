"""Which column of a symbolic grid observation holds what; no numbers of any one layout, no MiniGrid, no torch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from gymnasium import spaces

ACTIONS = ("left", "right", "forward", "pickup", "drop", "toggle", "done")
HEADINGS = ("east", "south", "west", "north")  # MiniGrid's directions 0 to 3


@dataclass(frozen=True)
class GridFeatures:
    """The columns of one kind of world, in this order.

    | Feature                    | Min | Max | Unit                                                                 |
    |----------------------------|-----|-----|----------------------------------------------------------------------|
    | agent_x, agent_y           |  0  |  1  | spans, from the inner top left corner                                |
    | heading_east, … _north     |  0  |  1  | one-hot                                                              |
    | TARGET_dx, TARGET_dy       | −1  |  1  | spans, from the agent; 0, 0 where the agent stands on or carries it  |
    | a fact                     |  0  |  1  | 1 where it holds                                                     |
    | facing_OBJECT              |  0  |  1  | one-hot: what the cell straight ahead holds                          |
    | cell                       |  0  | 0.5 | 1 / span: one cell in the unit above                                 |

    The span is the number of cells from the first to the last inner cell along the world's longer side, so that
    worlds of all sizes share one space.
    """

    targets: tuple[str, ...]
    facts: tuple[str, ...]
    objects: tuple[str, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every column in order."""
        return (
            "agent_x",
            "agent_y",
            *(f"heading_{heading}" for heading in HEADINGS),
            *(f"{target}_{axis}" for target in self.targets for axis in ("dx", "dy")),
            *self.facts,
            *(f"facing_{thing}" for thing in self.objects),
            "cell",
        )

    @cached_property
    def space(self) -> spaces.Box:
        """The columns with their bounds."""
        low = np.array([-1 if name.endswith(("_dx", "_dy")) else 0 for name in self.names], dtype=np.float32)
        high = np.array([0.5 if name == "cell" else 1 for name in self.names], dtype=np.float32)
        return spaces.Box(low, high, dtype=np.float32)
