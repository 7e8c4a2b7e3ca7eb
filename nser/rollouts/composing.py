"""One training step of a trainer with replay: which rollouts go into which update, in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nser.replay.types import Floats
from nser.rollouts.admission import Admission, Replayed
from nser.rollouts.record import Rollout
from nser.rollouts.store import RolloutStore


@dataclass(frozen=True)
class Update:
    """The rollouts of one update of the trainer: ``fresh`` ones first, then ``replayed`` ones.

    ``weights`` float64 (n,) are loss weights, 1 for the fresh; ``draw`` what ``RolloutStore.update`` takes, None
    where nothing was drawn.
    """

    rollouts: tuple[Rollout, ...]
    is_fresh: NDArray[np.bool_]
    weights: Floats
    replayed: Replayed | None

    @property
    def fresh(self) -> int:
        """How many are fresh."""
        return int(np.count_nonzero(self.is_fresh))

    def __len__(self) -> int:
        return len(self.rollouts)


@dataclass(frozen=True)
class Step:
    """The updates of one step in their order, and what became of the fresh rollouts; None if none were stored."""

    updates: tuple[Update, ...]
    admission: Admission | None

    @property
    def fresh(self) -> int:
        """Fresh rollouts in all updates."""
        return sum(update.fresh for update in self.updates)

    @property
    def replayed(self) -> int:
        """Replayed rollouts in all updates."""
        return sum(len(update) - update.fresh for update in self.updates)


def plan(
    store: RolloutStore,
    fresh: Sequence[Rollout],
    agree: Callable[[int], int] | None = None,
    multiple_of: int = 1,
) -> Step:
    """Draw, then store: one step by the composition of the store's settings.

    Arguments:
        store:       advanced to the trainer's present version
        fresh:       what was generated for this step, advantages computed
        agree:       called once for every replay draw with the number drawn here; returns the number that all ranks
                     replay (the minimum; see ``agreed_count``). What is drawn beyond it is given back
        multiple_of: replayed rows of an update are a multiple of this, as trainers that split batches need

    Fresh rollouts that teach nothing (see ``RolloutStore.teaches``) are in no update; all others are in the first.
    """
    raise NotImplementedError


def replay_count(store: RolloutStore, survivors: int) -> int:
    """How many rollouts to replay beside (or after) ``survivors`` fresh ones: round(ρ·B'), 0 while warming up."""
    raise NotImplementedError


def agreed_count(counts: Sequence[int], multiple_of: int = 1) -> int:
    """The number that every rank can replay: the minimum of ``counts``, rounded down to a multiple.

    >>> agreed_count([7, 5, 9], multiple_of=4)
    4
    """
    return min(counts) // multiple_of * multiple_of
