"""What rules may say about LavaGap and FourRooms.

>>> [atom.predicate for atom in LAVA_GAP.ground_atoms()][4:]
['toward', 'toward', 'level', 'level', 'in_gap', 'past_gap']
"""

from __future__ import annotations

from nser.envs.grid_features import ACTIONS, GridFeatures
from nser.envs.grid_view import view_vocabulary
from nser.envs.grid_vocabulary import dist, facing, level, reached, told, toward
from nser.grounding.vocabulary import Vocabulary

LAVA_GAP_FEATURES = GridFeatures(
    targets=("gap", "goal"), facts=("past_gap",), objects=("lava", "goal", "wall", "empty")
)
FOUR_ROOMS_FEATURES = GridFeatures(
    targets=("exit", "goal"), facts=("in_goal_room", "in_gap"), objects=("goal", "wall", "empty")
)
_LAVA = LAVA_GAP_FEATURES.names
_ROOMS = FOUR_ROOMS_FEATURES.names

LAVA_GAP = Vocabulary(
    name="lava_gap",
    declared=(
        facing(_LAVA, "facing(t, lava)"),
        toward(_LAVA, "toward(t, gap) & ~facing(t, lava)"),
        level(_LAVA, "level(t, gap) & ~past_gap(t)"),
        reached(_LAVA, "in_gap", "gap", "The agent stands in the gap of the lava"),
        told(_LAVA, "past_gap", "The agent stands on the goal's side of the lava"),
        dist(_LAVA, "dist(t, goal) < 3"),
    ),
    sorts={"object": LAVA_GAP_FEATURES.objects, "target": LAVA_GAP_FEATURES.targets},
    actions=ACTIONS,
    features=_LAVA,
)

FOUR_ROOMS = Vocabulary(
    name="four_rooms",
    declared=(
        facing(_ROOMS, "facing(t, wall)"),
        toward(_ROOMS, "toward(t, exit) & ~facing(t, wall)"),
        level(_ROOMS, "level(t, exit)"),
        told(_ROOMS, "in_goal_room", "The agent is in the goal's room"),
        told(_ROOMS, "in_gap", "The agent stands in a gap between two rooms"),
        dist(_ROOMS, "dist(t, goal) < 3"),
    ),
    sorts={"object": FOUR_ROOMS_FEATURES.objects, "target": FOUR_ROOMS_FEATURES.targets},
    actions=ACTIONS,
    features=_ROOMS,
)
"""`exit` is the gap through which the shortest way leads on to the goal's room, and the goal itself in its room."""

LAVA_GAP_VIEW = view_vocabulary("lava_gap_view", ("lava", "goal", "wall", "empty"), ("lava", "goal"))
FOUR_ROOMS_VIEW = view_vocabulary("four_rooms_view", ("goal", "wall", "empty"), ("goal",))
