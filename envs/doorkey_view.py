"""What rules may say about DoorKey when the agent sees only MiniGrid's own 7 × 7 view.

The agent stands in the middle of the view's last row and looks up; what it carries is shown in its own cell.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nser.envs.doorkey_features import ACTIONS, HEADINGS, OBJECTS, TARGETS
from nser.grounding.steps import Steps
from nser.grounding.vocabulary import Vocabulary, predicate

VIEW = 7
CHANNELS = ("object", "colour", "state")
VIEW_SCALE = (10, 5, 2)  # the largest number of each channel in a view
VIEW_FEATURES = (
    *(f"{channel}_{i}_{j}" for i in range(VIEW) for j in range(VIEW) for channel in CHANNELS),
    *(f"heading_{heading}" for heading in HEADINGS),
    "carrying",
)
COLUMN = {feature: column for column, feature in enumerate(VIEW_FEATURES)}
CODES = {
    "empty": 1,
    "wall": 2,
    "door": 4,
    "key": 5,
    "ball": 6,
    "box": 7,
    "goal": 8,
    "lava": 9,
}  # MiniGrid's OBJECT_TO_IDX
OPEN, LOCKED = 0, 2  # MiniGrid's states of a door


def _channel(steps: Steps, channel: str) -> Tensor:
    """[T, 49] one channel of the view in MiniGrid's own whole numbers."""
    k = CHANNELS.index(channel)
    image = steps.observations[:, k : VIEW * VIEW * len(CHANNELS) : len(CHANNELS)]
    return torch.round(image * VIEW_SCALE[k])


def _truth(values: Tensor, steps: Steps) -> Tensor:
    return values.to(steps.observations.dtype)


@predicate("object")
def facing(steps: Steps, thing: str) -> Tensor:
    """The cell straight ahead of the agent holds this."""
    ahead = _channel(steps, "object")[:, VIEW // 2 * VIEW + VIEW - 2]
    return _truth(ahead == CODES[thing], steps)


@predicate("target")
def sees(steps: Steps, target: str) -> Tensor:
    """This is in the agent's view, or the agent carries it."""
    return _truth((_channel(steps, "object") == CODES[target]).any(dim=1), steps)


@predicate()
def carrying(steps: Steps) -> Tensor:
    """The agent carries the key."""
    return steps.observations[:, COLUMN["carrying"]]


@predicate()
def sees_open_door(steps: Steps) -> Tensor:
    """An open door is in the agent's view."""
    return _door_seen(steps, OPEN)


@predicate()
def sees_locked_door(steps: Steps) -> Tensor:
    """A locked door is in the agent's view."""
    return _door_seen(steps, LOCKED)


def _door_seen(steps: Steps, state: int) -> Tensor:
    doors = _channel(steps, "object") == CODES["door"]
    return _truth((doors & (_channel(steps, "state") == state)).any(dim=1), steps)


DOORKEY_VIEW = Vocabulary(
    name="doorkey_view",
    declared=(facing, sees, carrying, sees_open_door, sees_locked_door),
    sorts={"object": OBJECTS, "target": TARGETS},
    actions=ACTIONS,
    features=VIEW_FEATURES,
)
