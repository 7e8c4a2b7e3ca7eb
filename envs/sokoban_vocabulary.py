"""What rules may say about Sokoban; every predicate reads the columns of a stored observation.

The constants of a direction are the actions themselves, so that a rule can speak of "the way it went":

>>> list(sokoban_vocabulary(7).sorts["action"])
['up', 'down', 'left', 'right']
>>> sokoban_vocabulary(7).examples["push_buries"]
'exists a in action: push_buries(t, a) & action_is(t, a)'
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from nser.grounding.steps import Steps
from nser.grounding.vocabulary import Vocabulary, number, predicate

ACTIONS = ("up", "down", "left", "right")
ABOUT_EACH_WAY = ("wall", "box", "pushable", "nears", "scores", "spoils", "buries", "toward")
FACTS = (
    *(f"{fact}_{action}" for action in ACTIONS for fact in ABOUT_EACH_WAY),
    "lost",
    "boxes_left",
    "distance",
)
COLUMN = {fact: column for column, fact in enumerate(FACTS)}
PLANES = ("wall", "target", "box", "agent")
MAX_BOXES = 10  # the unit of the column `boxes_left`
DISTANCE_UNIT = 100  # cells, the unit of the column `distance`


@cache
def features(size: int) -> tuple[str, ...]:
    """Every column of the observation of a level with `size` cells along a side."""
    inner = range(1, size - 1)
    return (*FACTS, *(f"{plane}_at_{row}_{column}" for plane in PLANES for row in inner for column in inner))


def _column(steps: Steps, fact: str) -> Tensor:
    return steps.observations[:, COLUMN[fact]]


@predicate("action", example="wall_ahead(t, up)")
def wall_ahead(steps: Steps, way: str) -> Tensor:
    """A wall is next to the agent in this direction."""
    return _column(steps, f"wall_{way}")


@predicate("action", example="box_ahead(t, up) & ~pushable(t, up)")
def box_ahead(steps: Steps, way: str) -> Tensor:
    """A box is next to the agent in this direction."""
    return _column(steps, f"box_{way}")


@predicate("action", example="pushable(t, up) & action_is(t, up)")
def pushable(steps: Steps, way: str) -> Tensor:
    """A step in this direction pushes a box: the cell behind it is free."""
    return _column(steps, f"pushable_{way}")


@predicate("action", example="exists a in action: push_nears(t, a) & action_is(t, a)")
def push_nears(steps: Steps, way: str) -> Tensor:
    """A step in this direction pushes a box nearer to the target closest to it."""
    return _column(steps, f"nears_{way}")


@predicate("action", example="exists a in action: push_scores(t, a) & action_is(t, a)")
def push_scores(steps: Steps, way: str) -> Tensor:
    """A step in this direction pushes a box onto a target."""
    return _column(steps, f"scores_{way}")


@predicate("action", example="push_spoils(t, left) & action_is(t, left)")
def push_spoils(steps: Steps, way: str) -> Tensor:
    """A step in this direction pushes a box off its target."""
    return _column(steps, f"spoils_{way}")


@predicate("action", example="exists a in action: push_buries(t, a) & action_is(t, a)")
def push_buries(steps: Steps, way: str) -> Tensor:
    """A step in this direction pushes a box into a corner that is no target, where it stays for ever."""
    return _column(steps, f"buries_{way}")


@predicate("action", example="toward(t, up) & ~wall_ahead(t, up)")
def toward(steps: Steps, way: str) -> Tensor:
    """The closest box that is on no target lies in this direction."""
    return _column(steps, f"toward_{way}")


@predicate()
def lost(steps: Steps) -> Tensor:
    """A box stands in a corner that is no target: the level can't be solved any more."""
    return _column(steps, "lost")


@number(unit="boxes", low=0, high=MAX_BOXES, example="boxes_left(t) < 2")
def boxes_left(steps: Steps) -> Tensor:
    """Boxes that stand on no target."""
    return torch.round(_column(steps, "boxes_left") * MAX_BOXES)


@number(unit="cells", low=0, example="distance(t) < 3")
def distance(steps: Steps) -> Tensor:
    """Cells between the boxes and the targets closest to them, all boxes together."""
    return torch.round(_column(steps, "distance") * DISTANCE_UNIT)


@cache
def sokoban_vocabulary(size: int) -> Vocabulary:
    """The vocabulary for levels with `size` cells along a side; its predicates are the same for all sizes."""
    return Vocabulary(
        name="sokoban",
        declared=(
            wall_ahead,
            box_ahead,
            pushable,
            push_nears,
            push_scores,
            push_spoils,
            push_buries,
            toward,
            lost,
            boxes_left,
            distance,
        ),
        actions=ACTIONS,
        features=features(size),
    )
