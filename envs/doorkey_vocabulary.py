"""What rules may say about DoorKey; every predicate reads the columns of a stored observation.

>>> DOORKEY.actions[2]
'forward'
>>> sorted(DOORKEY.sorts["target"])
['door', 'goal', 'key']
"""

from __future__ import annotations

import torch
from torch import Tensor

from nser.envs.doorkey_features import ACTIONS, COLUMN, FEATURES, OBJECTS, TARGETS
from nser.grounding.steps import Steps
from nser.grounding.vocabulary import Vocabulary, number, predicate


def _column(steps: Steps, feature: str) -> Tensor:
    return steps.observations[:, COLUMN[feature]]


@predicate("object", example="facing(t, door) & carrying(t) & ~door_open(t)")
def facing(steps: Steps, thing: str) -> Tensor:
    """The cell straight ahead of the agent holds this."""
    return _column(steps, f"facing_{thing}")


@predicate()
def carrying(steps: Steps) -> Tensor:
    """The agent carries the key."""
    return _column(steps, "carrying")


@predicate()
def door_open(steps: Steps) -> Tensor:
    """The door stands open."""
    return _column(steps, "door_open")


@predicate()
def door_locked(steps: Steps) -> Tensor:
    """The door is still locked: nobody has opened it with the key."""
    return _column(steps, "door_locked")


@predicate(example="past_door(t) & facing(t, empty)")
def past_door(steps: Steps) -> Tensor:
    """The agent stands on the goal's side of the dividing wall."""
    return _column(steps, "past_door")


@predicate()
def in_doorway(steps: Steps) -> Tensor:
    """The agent stands in the doorway."""
    away = _column(steps, "door_dx").abs() + _column(steps, "door_dy").abs()
    return (away == 0).to(away.dtype)


@number("target", unit="cells", low=0, example="dist(t, goal) < 3")
def dist(steps: Steps, target: str) -> Tensor:
    """Steps that the agent would walk to this if no wall were there; 0 for a key in its hand."""
    apart = _column(steps, f"{target}_dx").abs() + _column(steps, f"{target}_dy").abs()
    return torch.round(apart / _column(steps, "cell"))  # whole cells; rounding undoes the normalisation


DOORKEY = Vocabulary(
    name="doorkey",
    declared=(facing, carrying, door_open, door_locked, past_door, in_doorway, dist),
    sorts={"object": OBJECTS, "target": TARGETS},
    actions=ACTIONS,
    features=FEATURES,
    description=(
        "A walled grid of two rooms. A wall with one locked door divides them; a key lies on the agent's side, a goal "
        "in the far corner. Reaching the goal ends the episode with a reward, the more the sooner; nothing else does."
    ),
)
"""One vocabulary for every size: the column `cell` turns normalised coordinates back into cells."""
