"""The ids of the environments that nser makes itself, because it knows how to tell their state in symbols."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import gymnasium


@dataclass(frozen=True, slots=True)
class Symbolic:
    """A family of ids. Named groups of `pattern` are whole numbers that the class takes as arguments.

    `usual` are the members that are registered and offered as the nearest to a misspelt id, without the namespace
    and version.
    """

    pattern: str
    entry: str
    usual: tuple[str, ...]
    of_minigrid: bool = True

    def arguments(self, env_id: str) -> dict[str, int] | None:
        """What the id asks for; None where it is of another family."""
        namespace = "(?:MiniGrid-|nser/)" if self.of_minigrid else "nser/"
        found = re.fullmatch(f"{namespace}{self.pattern}-v0", env_id, re.ASCII)
        return None if found is None else {name: int(text) for name, text in found.groupdict().items() if text}

    def make(self, **arguments: Any) -> gymnasium.Env[Any, Any]:
        """The environment; raises `ValueError` for a size that it can't have."""
        module, _, name = self.entry.partition(":")
        env: gymnasium.Env[Any, Any] = getattr(import_module(module), name)(**arguments)
        return env


SYMBOLIC = (
    Symbolic(
        r"DoorKey-(?P<size>\d{1,3})x(?P=size)",
        "nser.envs.doorkey:DoorKey",
        tuple(f"DoorKey-{size}x{size}" for size in (5, 6, 8, 12, 16)),
    ),
    Symbolic("Unlock", "nser.envs.locked_rooms:Unlock", ("Unlock",)),
    Symbolic("UnlockPickup", "nser.envs.locked_rooms:UnlockPickup", ("UnlockPickup",)),
    Symbolic(
        r"KeyCorridorS(?P<room_size>\d{1,2})R(?P<num_rows>\d{1,2})",
        "nser.envs.locked_rooms:KeyCorridor",
        tuple(f"KeyCorridor{size}" for size in ("S3R1", "S3R2", "S3R3", "S4R3", "S5R3", "S6R3")),
    ),
    Symbolic(
        r"LavaGapS(?P<size>\d{1,3})", "nser.envs.open_rooms:LavaGap", tuple(f"LavaGapS{size}" for size in (5, 6, 7))
    ),
    Symbolic("FourRooms", "nser.envs.open_rooms:FourRooms", ("FourRooms",)),
    Symbolic(
        r"Sokoban(?:-(?P<size>\d{1,2})x(?P=size)-(?P<boxes>\d{1,2}))?",
        "nser.envs.sokoban:Sokoban",
        ("Sokoban", "Sokoban-6x6-1", "Sokoban-8x8-3"),
        of_minigrid=False,
    ),
)


IN_WORDS = {
    "nser/FrozenLakeText-v0": "nser.envs.text_lake:FrozenLakeText",
    "nser/SokobanText-v0": "nser.envs.text_sokoban:SokobanText",
    "nser/Arithmetic-v0": "nser.envs.text_arithmetic:Arithmetic",
}
"""Games and tasks for language models: their observations and actions are texts, so that no vocabulary reads them."""


def find(env_id: str) -> tuple[Symbolic, dict[str, int]] | None:
    """The family of an id and what the id asks for; None where nser makes no such environment itself."""
    for family in SYMBOLIC:
        arguments = family.arguments(env_id)
        if arguments is not None:
            return family, arguments
    return None


def usual_ids() -> tuple[str, ...]:
    """The ids to offer: those of MiniGrid under MiniGrid's own names."""
    return tuple(
        f"{'MiniGrid-' if family.of_minigrid else 'nser/'}{name}-v0" for family in SYMBOLIC for name in family.usual
    )


def register_envs() -> tuple[str, ...]:
    """Register our environments with gymnasium as `nser/DoorKey-6x6-v0` and so on, and return their ids.

    For hosts that make environments by id, such as `stable_baselines3.common.env_util.make_vec_env`; calling
    it again does nothing.
    """
    ids = []
    for family in SYMBOLIC:
        for name in family.usual:
            env_id = f"nser/{name}-v0"
            if env_id not in gymnasium.registry:
                gymnasium.register(env_id, family.entry, kwargs=family.arguments(env_id) or {})
            ids.append(env_id)
    for env_id, entry in IN_WORDS.items():
        if env_id not in gymnasium.registry:
            gymnasium.register(env_id, entry)
    return (*ids, *IN_WORDS)
