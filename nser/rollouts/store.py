"""The rollout store: what a policy generated, kept to be trained on again."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nser.replay import Explanation
from nser.replay.types import Ints
from nser.rollouts.admission import Admission, Replayed
from nser.rollouts.metrics import StoreMetrics
from nser.rollouts.record import Rollout
from nser.rollouts.settings import StoreSettings


class RolloutStore:
    """Rollouts of variable length, without padding, and one ``ReplayIndex`` that says which to replay.

    The trainer calls ``advance`` with its version whenever its weights change, ``draw`` *before* it ``admit``s what
    it has just generated, and hands new signals back with ``update``. ``nser.rollouts.composing.plan`` does a whole
    step of that. **Age** has one definition: the store's version minus the version that generated the first token.

    All methods hold one lock, draw from generators of the store's own, and leave it as it was when they raise.
    """

    def __init__(
        self,
        settings: StoreSettings | str = "nser",
        seed: int = 0,
        directory: str | PathLike[str] | None = None,
        shard_bytes: int = 2**26,
    ) -> None:
        """``settings``, or the name of a preset; with ``directory`` the tokens live in memory-mapped files there.

        Files of ``shard_bytes`` are scratch space without a name: nothing is left when the process ends, however it
        ends. What should outlive it is written by ``save``. Raises ``RolloutError``.
        """
        raise NotImplementedError

    def __len__(self) -> int:
        """Number of items that can be drawn."""
        raise NotImplementedError

    @property
    def version(self) -> int:
        """The trainer's version, ≥ 0, as last told by ``advance``."""
        raise NotImplementedError

    @property
    def warming_up(self) -> bool:
        """Whether nothing should be replayed yet: fewer than ``warm_up`` versions since the first admission."""
        raise NotImplementedError

    def advance(self, version: int) -> None:
        """Tell the trainer's version, which never falls; items past the law's ``max_age`` go.

        Raises ``RolloutError``.
        """
        raise NotImplementedError

    def admit(self, rollouts: Sequence[Rollout], scores: ArrayLike | None = None) -> Admission:
        """Store what teaches something and is not there yet; the oldest items make room.

        ``scores`` (n,) in [0, 1] replace the ``rule_score`` of the rollouts. A rollout from a version ahead of the
        store's, or with metadata that is no JSON, raises ``RolloutError``.
        """
        raise NotImplementedError

    def teaches(self, rollouts: Sequence[Rollout]) -> NDArray[np.bool_]:
        """(n,) False where |advantage| ≤ ``zero_signal`` on every trained token: the fresh survivors are the rest."""
        raise NotImplementedError

    def draw(self, count: int) -> Replayed:
        """At most ``count`` ≥ 0 items by the law, fewer when fewer are there; counts them as used.

        The order is random, so that any first part is a draw as well.
        """
        raise NotImplementedError

    def give_back(self, replayed: Replayed, keep: int) -> Replayed:
        """The first ``keep`` of what was drawn; the rest counts as not replayed. For ranks that must agree."""
        raise NotImplementedError

    def update(self, replayed: Replayed, signals: ArrayLike) -> int:
        """Set the signals of what was drawn to |``signals``| (n,); returns how many are gone since.

        Signals move priorities alone: stored advantages are those of birth, bit for bit.
        """
        raise NotImplementedError

    def relate(self, slots: ArrayLike, scores: ArrayLike, version: int, generations: ArrayLike | None = None) -> int:
        """Set rule scores (n,) in [0, 1] of ``slots``, by rules of ``version``; see ``ReplayIndex.relate``."""
        raise NotImplementedError

    def rollouts(self, slots: ArrayLike) -> list[Rollout]:
        """The rollouts in live ``slots``; their arrays are read-only views, not copies. Raises ``RolloutError``."""
        raise NotImplementedError

    def live_slots(self) -> Ints:
        """The slots of all items that can be drawn, oldest first."""
        raise NotImplementedError

    def generations_of(self, slots: ArrayLike) -> Ints:
        """The present generations (n,) of ``slots``, for a ``relate`` whose scores arrive later."""
        raise NotImplementedError

    def explain(self, slots: ArrayLike) -> Explanation:
        """Every factor of the probability of ``slots`` (n,), with the store's definition of age."""
        raise NotImplementedError

    def metrics(self) -> StoreMetrics:
        """Ages and reuse of what was drawn, admission per task, share owed to rules, bytes; O(N)."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """Everything, as a flat dict of new arrays and JSON-able scalars; ``load_state_dict`` restores every bit."""
        raise NotImplementedError

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from ``state``, of a store with these settings. Raises ``StoreStateError``, nothing changed."""
        raise NotImplementedError

    def save(self, path: str | PathLike[str]) -> None:
        """Write the state to an npz file without pickle, whole or not at all."""
        raise NotImplementedError

    @classmethod
    def load(cls, path: str | PathLike[str], directory: str | PathLike[str] | None = None) -> RolloutStore:
        """The store that ``save`` wrote, with its settings. Raises ``StoreStateError``."""
        raise NotImplementedError(Path(path))
