"""Which rollouts a store takes, as which items, and with what base signal; nothing is changed here."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence, Set
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nser.replay.types import Floats
from nser.rollouts.admission import Reason
from nser.rollouts.errors import RolloutError
from nser.rollouts.record import Rollout
from nser.rollouts.settings import StoreSettings
from nser.rollouts.turns import turn_spans


class Item(NamedTuple):
    """The part [``start``, ``stop``) of a response that one item trains on, and its base ``signal`` ≥ 0."""

    start: int
    stop: int
    signal: float


class Taken(NamedTuple):
    """A rollout to be stored: its ``position`` among those offered, its ``key``, and its ``items``."""

    position: int
    key: bytes
    items: list[Item]


def teaches(rollout: Rollout, threshold: float | None, part: slice = slice(None)) -> bool:
    """Whether a token of ``part`` is trained on with |advantage| > ``threshold`` (None: with any advantage)."""
    mask = rollout.response_mask[part]
    if not np.count_nonzero(mask):
        return False
    if threshold is None:
        return True
    if isinstance(rollout.advantage, float):
        return abs(rollout.advantage) > threshold
    return bool((np.abs(rollout.advantage[part][mask]) > threshold).any())


def items_of(rollout: Rollout, settings: StoreSettings) -> list[Item] | Reason:
    """The items of a rollout by the unit of the store, or why there are none."""
    if not np.count_nonzero(rollout.response_mask):
        return "nothing to train on"
    spans = [(0, len(rollout.response_mask))]
    if settings.unit == "turn":
        spans = [(start, stop) for start, stop in turn_spans(rollout.response_mask).tolist()]
    items = [
        Item(start, stop, _signal(rollout, settings, slice(start, stop)))
        for start, stop in spans
        if teaches(rollout, settings.zero_signal, slice(start, stop))
    ]
    return items or "zero signal"


def sort_out(
    rollouts: Sequence[Rollout], settings: StoreSettings, version: int, known: Set[bytes]
) -> tuple[list[Taken], dict[int, Reason]]:
    """What a store at ``version`` that holds the keys ``known`` takes, and position → reason for the rest.

    Equal rollouts that are offered together are samples of their own: a group of three equal right answers and one
    wrong one is not three to one if two of them are left out. What was stored before and is offered again is not.
    """
    taken: list[Taken] = []
    refused: dict[int, Reason] = {}
    copies: Counter[bytes] = Counter()
    room, limit = settings.capacity, settings.law.max_age
    for position, rollout in enumerate(rollouts):
        items = items_of(rollout, settings)
        if not isinstance(items, list):
            refused[position] = items
        elif limit is not None and rollout.age(version) > limit:
            refused[position] = "too old"
        elif (key := _key_of_copy(rollout.key, copies)) in known:
            refused[position] = "duplicate"
        elif len(items) > room:
            refused[position] = "no room"
        else:
            taken.append(Taken(position, key, items))
            room -= len(items)
    return taken, refused


def _key_of_copy(key: bytes, copies: Counter[bytes]) -> bytes:
    """The key of a rollout, or of its next copy where it was offered already; counted in ``copies``."""
    number = copies[key]
    copies[key] += 1
    return hashlib.blake2b(key + number.to_bytes(8, "little"), digest_size=16).digest() if number else key


def check_versions(rollouts: Sequence[Rollout], version: int) -> None:
    """Raise ``RolloutError`` where a rollout comes from a version ahead of the store's ``version``."""
    for position, rollout in enumerate(rollouts):
        last = rollout.policy_version[1]
        if last > version:
            raise RolloutError(
                "policy_version",
                rollout.policy_version,
                f"at most {version}, the store's version",
                f"Call advance({last}) first.",
                f"rollout {position}",
            )


def scores_of(rollouts: Sequence[Rollout], scores: ArrayLike | None) -> Floats:
    """The rule scores (n,) in [0, 1] of ``rollouts``, or ``scores`` in their place; raises ``RolloutError``."""
    if scores is None:
        return np.array([rollout.rule_score for rollout in rollouts], np.float64)
    found = np.asarray(scores, np.float64)
    if found.shape != (len(rollouts),):
        raise RolloutError("scores", f"the shape {found.shape}", f"({len(rollouts)},)", "Pass one for each rollout.")
    wrong = ~((found >= 0.0) & (found <= 1.0))
    if wrong.any():
        at = int(wrong.argmax())
        raise RolloutError(f"scores[{at}]", float(found[at]), "a number in [0, 1]", "Rescale the scores.")
    return found


def signals_of(signals: ArrayLike, count: int) -> NDArray[np.float64]:
    """|signals| (n,); raises ``RolloutError`` unless there are ``count`` finite ones."""
    found = np.abs(np.asarray(signals, np.float64))
    if found.shape != (count,):
        raise RolloutError("signals", f"the shape {found.shape}", f"({count},)", "Pass one for each drawn rollout.")
    if not np.isfinite(found).all():
        at = int(np.isfinite(found).argmin())
        raise RolloutError(f"signals[{at}]", float(found[at]), "a finite number", "Look for what made it first.")
    return found


def _signal(rollout: Rollout, settings: StoreSettings, part: slice) -> float:
    if settings.signal == "reward":
        return abs(rollout.reward)
    if isinstance(rollout.advantage, float):
        return abs(rollout.advantage)
    trained = rollout.advantage[part][rollout.response_mask[part]]
    return float(np.abs(trained).mean(dtype=np.float64))
