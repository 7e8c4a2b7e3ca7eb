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
    """The ``rollouts`` (n) of one update of the trainer: fresh ones first, then replayed ones.

    ``is_fresh`` (n,) tells them apart (a draw from a pool is in any order); ``weights`` float64 (n,) are loss weights,
    1 for the fresh; ``replayed`` is what ``RolloutStore.update`` takes, None where nothing was drawn.
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
    settings = store.settings
    is_survivor = store.teaches(fresh)
    survivors = tuple(rollout for rollout, keeps in zip(fresh, is_survivor.tolist(), strict=True) if keeps)
    if settings.ratio == 0 and settings.composition != "pool":
        return Step((_only_fresh(survivors),), None)
    if settings.composition == "pool":
        return _from_pool(store, fresh, survivors, agree, multiple_of)
    count = replay_count(store, len(survivors))
    draws = settings.updates if settings.composition == "separate" else 1
    # Before the fresh ones are stored, so that every replayed rollout is at least one version old.
    replays = [_drawn(store, count, agree, multiple_of) for _ in range(draws)]
    admission = store.admit(fresh)
    if settings.composition == "anchored":
        return Step((_beside(survivors, replays[0]),), admission)
    later = (_beside((), replayed) for replayed in replays if len(replayed))
    return Step((_only_fresh(survivors), *later), admission)


def replay_count(store: RolloutStore, survivors: int) -> int:
    """How many rollouts to replay beside (or after) ``survivors`` B' fresh ones: round(ρ·B'), 0 while warming up.

    Beside fresh ones at most so many that their share of the update is ``max_share``. Halves are rounded to even.
    """
    settings = store.settings
    if store.warming_up:
        return 0
    count = round(settings.ratio * survivors)
    if settings.composition == "anchored" and settings.max_share < 1.0:
        # A third of the batch is half of the fresh ones, which 1/3 in binary misses by a hair.
        count = min(count, int(settings.max_share / (1.0 - settings.max_share) * survivors + 1e-9))
    return count


def agreed_count(counts: Sequence[int], multiple_of: int = 1) -> int:
    """The number that every rank can replay: the minimum of ``counts``, rounded down to a multiple.

    >>> agreed_count([7, 5, 9], multiple_of=4)
    4
    """
    return min(counts) // multiple_of * multiple_of


def _drawn(store: RolloutStore, count: int, agree: Callable[[int], int] | None, multiple_of: int) -> Replayed:
    """At most ``count`` replayed rollouts, as many as every rank has."""
    replayed = store.draw(count)
    agreed = agreed_count([len(replayed) if agree is None else agree(len(replayed))], multiple_of)
    return store.give_back(replayed, agreed) if agreed < len(replayed) else replayed


def _only_fresh(survivors: tuple[Rollout, ...]) -> Update:
    return Update(survivors, np.ones(len(survivors), np.bool_), np.ones(len(survivors)), None)


def _beside(survivors: tuple[Rollout, ...], replayed: Replayed) -> Update:
    """Fresh rollouts, then replayed ones."""
    return Update(
        survivors + replayed.rollouts,
        np.arange(len(survivors) + len(replayed)) < len(survivors),
        np.concatenate((np.ones(len(survivors)), replayed.weights)),
        replayed if len(replayed) else None,
    )


def _from_pool(
    store: RolloutStore,
    fresh: Sequence[Rollout],
    survivors: tuple[Rollout, ...],
    agree: Callable[[int], int] | None,
    multiple_of: int,
) -> Step:
    """As many as there are survivors, drawn from stored and fresh alike; the survivors alone while warming up."""
    warming_up = store.warming_up
    admission = store.admit(fresh)
    replayed = _drawn(store, 0 if warming_up else len(survivors), agree, multiple_of)
    if warming_up:
        return Step((_only_fresh(survivors),), admission)
    is_fresh = np.isin(replayed.draw.slots, admission.slots)
    return Step((Update(replayed.rollouts, is_fresh, replayed.weights, replayed),), admission)
