"""What rules may say about any MiniGrid world of which the agent sees only its own 7 × 7 view."""

from __future__ import annotations

from nser.envs.doorkey_view import (
    VIEW_FEATURES,
    carrying,
    facing,
    sees,
    sees_locked_door,
    sees_open_door,
)
from nser.envs.grid_features import ACTIONS
from nser.grounding.vocabulary import Grounding, Predicate, Vocabulary


def view_vocabulary(name: str, objects: tuple[str, ...], targets: tuple[str, ...]) -> Vocabulary:
    """`facing` and `sees` for these things; doors are told open or locked, and keys carried, where there are any."""
    declared: list[Grounding | Predicate] = [facing, sees]
    if "key" in objects:
        declared.append(carrying)
    if "door" in objects:
        declared += [sees_open_door, sees_locked_door]
    sorts = {"object": objects, "target": targets}
    return Vocabulary(name, tuple(declared), sorts, ACTIONS, VIEW_FEATURES)
