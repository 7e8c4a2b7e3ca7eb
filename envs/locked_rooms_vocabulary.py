"""What rules may say about Unlock, UnlockPickup and KeyCorridor.

>>> [atom.predicate for atom in UNLOCK.ground_atoms()]
['facing', 'facing', 'facing', 'facing', 'toward', 'toward', 'carrying']
>>> KEY_CORRIDOR.sorts["object"]
('key', 'ball', 'locked_door', 'shut_door', 'open_door', 'wall', 'empty')
"""

from __future__ import annotations

from nser.envs.grid_features import ACTIONS, GridFeatures
from nser.envs.grid_view import view_vocabulary
from nser.envs.grid_vocabulary import dist, facing, reached, told, toward
from nser.grounding.vocabulary import Vocabulary

UNLOCK_FEATURES = GridFeatures(targets=("key", "door"), facts=("carrying",), objects=("key", "door", "wall", "empty"))
UNLOCK_PICKUP_FEATURES = GridFeatures(
    targets=("key", "door", "box"),
    facts=("carrying", "door_open", "door_locked", "past_door", "box_gone"),
    objects=("key", "door", "box", "wall", "empty"),
)
KEY_CORRIDOR_FEATURES = GridFeatures(
    targets=("key", "door", "ball"),
    facts=("carrying", "door_open", "door_locked", "in_corridor", "with_key", "with_ball"),
    objects=("key", "ball", "locked_door", "shut_door", "open_door", "wall", "empty"),
)
_ONE = UNLOCK_FEATURES.names
_TWO = UNLOCK_PICKUP_FEATURES.names
_THREE = KEY_CORRIDOR_FEATURES.names

UNLOCK = Vocabulary(
    name="unlock",
    declared=(
        facing(_ONE, "facing(t, key) & ~carrying(t)"),
        toward(_ONE, "toward(t, door) & carrying(t)"),
        told(_ONE, "carrying", "The agent carries the key"),
        dist(_ONE, "dist(t, door) < 2"),
    ),
    sorts={"object": UNLOCK_FEATURES.objects, "target": UNLOCK_FEATURES.targets},
    actions=ACTIONS,
    features=_ONE,
)

UNLOCK_PICKUP = Vocabulary(
    name="unlock_pickup",
    declared=(
        facing(_TWO, "facing(t, box) & ~carrying(t)"),
        toward(_TWO, "toward(t, box) & door_open(t)"),
        told(_TWO, "carrying", "The agent carries the key; its hands must be empty to take the box"),
        told(_TWO, "door_open", "The door stands open", "door_open(t) & carrying(t)"),
        told(_TWO, "door_locked", "The door is still locked: nobody has opened it with the key"),
        told(_TWO, "past_door", "The agent stands on the box's side of the dividing wall"),
        reached(_TWO, "in_doorway", "door", "The agent stands in the doorway"),
        told(_TWO, "box_gone", "The box was opened instead of picked up and is lost: nothing can be won any more"),
        dist(_TWO, "dist(t, box) < 2"),
    ),
    sorts={"object": UNLOCK_PICKUP_FEATURES.objects, "target": UNLOCK_PICKUP_FEATURES.targets},
    actions=ACTIONS,
    features=_TWO,
)

KEY_CORRIDOR = Vocabulary(
    name="key_corridor",
    declared=(
        facing(_THREE, "facing(t, locked_door) & carrying(t)"),
        toward(_THREE, "toward(t, ball) & door_open(t)"),
        told(_THREE, "carrying", "The agent carries the key; its hands must be empty to take the ball"),
        told(_THREE, "door_open", "The door to the ball stands open", "door_open(t) & carrying(t)"),
        told(_THREE, "door_locked", "The door to the ball is still locked: nobody has opened it with the key"),
        told(_THREE, "in_corridor", "The agent is in the corridor between the rooms"),
        told(_THREE, "with_key", "The agent is in the room where the key lies, or carries it"),
        told(_THREE, "with_ball", "The agent is in the ball's room"),
        dist(_THREE, "dist(t, ball) < 2"),
    ),
    sorts={"object": KEY_CORRIDOR_FEATURES.objects, "target": KEY_CORRIDOR_FEATURES.targets},
    actions=ACTIONS,
    features=_THREE,
)

UNLOCK_VIEW = view_vocabulary("unlock_view", ("key", "door", "wall", "empty"), ("key", "door"))
UNLOCK_PICKUP_VIEW = view_vocabulary(
    "unlock_pickup_view", ("key", "door", "box", "wall", "empty"), ("key", "door", "box")
)
KEY_CORRIDOR_VIEW = view_vocabulary(
    "key_corridor_view", ("key", "door", "ball", "wall", "empty"), ("key", "door", "ball")
)
