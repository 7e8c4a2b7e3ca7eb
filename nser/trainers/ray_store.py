"""The rollout store behind a Ray actor, beside a trainer that runs on Ray. Needs the extra: `pip install nser[ray]`.

    store = start_store("rollouts", "nser")          # on the head node, or connect_store("rollouts") elsewhere
    trainer = with_replay(RayPPOTrainer, store)      # takes it as it takes a RolloutStore

One actor, one lock, one order of events: several trainers' processes may draw from it and admit into it. Rollouts
travel as NumPy arrays through Ray's object store: written there once, and read by the other process without a copy.

**How much memory.** The actor's own, on the heap of its node, is what the store holds: ``store_bytes`` says how much,
about 9 bytes a response token, so 30,000 rollouts of 8,000 tokens are 2.2 GB; pass it as ``memory`` and Ray places the
actor where that is free. With ``directory`` the tokens are in memory-mapped files on that node instead, and memory
holds 200 bytes a rollout. The *object store* holds only what is under way: the batches of a step, times two. A draw of
256 rollouts of 8,000 tokens is 18 MB. Arrays of a draw stay there until the last of them is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nser.replay import Explanation
from nser.replay.types import Ints
from nser.rollouts import (
    Admission,
    Replayed,
    Rollout,
    RolloutError,
    RolloutStore,
    StoreMetrics,
    StoreSettings,
    store_preset,
)
from nser.rollouts.intake import teaches

ROW_BYTES = 200  # of an item: its row, its place in the index, its labels


def store_bytes(items: int, prompt_tokens: float, response_tokens: float, text_bytes: float = 0.0) -> int:
    """Bytes that ``items`` rollouts of these mean lengths take: ids, log-probs and mask, metadata, and the index.

    >>> round(store_bytes(30_000, 200, 8_000) / 1e9, 1)
    2.2
    """
    return round(items * (4 * prompt_tokens + 9 * response_tokens + text_bytes + ROW_BYTES))


class RolloutStoreActor(RolloutStore):
    """What runs inside the actor: the store, and what only somebody outside has to ask for."""

    def status(self) -> tuple[int, int, bool]:
        """Its length, its version, and whether it warms up."""
        return len(self), self.version, self.warming_up

    def told_settings(self) -> StoreSettings:
        """Its settings."""
        return self.settings

    def living(self, slots: Ints) -> tuple[Ints, Ints, list[Rollout]]:
        """Those of ``slots`` that hold something, their generations, and what they hold, as of one moment."""
        generations = self.generations_of(slots)
        live = generations & 1 == 1  # odd while somebody is in
        return slots[live], generations[live], self.rollouts(slots[live])

    def restore(self, path: str) -> None:
        """Go on from what ``save`` wrote; nothing changed when that fails."""
        self.load_state_dict(RolloutStore.load(path).state_dict())


class RemoteStore:
    """A `RolloutStore` in another process: the same methods, the same results, the same errors.

    It can be sent to other Ray tasks and actors. What is drawn is read-only and shared; see the module for memory.
    """

    def __init__(self, actor: Any) -> None:
        self.actor = actor
        self._settings: StoreSettings | None = None

    @property
    def settings(self) -> StoreSettings:
        """What is stored and drawn."""
        if self._settings is None:
            self._settings = cast(StoreSettings, _wait(self.actor.told_settings.remote()))
        return self._settings

    @property
    def version(self) -> int:
        """The trainer's version, as last told by ``advance``."""
        return self._status()[1]

    @property
    def warming_up(self) -> bool:
        """Whether nothing should be replayed yet."""
        return self._status()[2]

    def __len__(self) -> int:
        return self._status()[0]

    def advance(self, version: int) -> None:
        """See ``RolloutStore.advance``."""
        _wait(self.actor.advance.remote(version))

    def admit(self, rollouts: Sequence[Rollout], scores: ArrayLike | None = None) -> Admission:
        """See ``RolloutStore.admit``."""
        return cast(Admission, _wait(self.actor.admit.remote(list(rollouts), scores)))

    def teaches(self, rollouts: Sequence[Rollout]) -> NDArray[np.bool_]:
        """See ``RolloutStore.teaches``; asks nobody."""
        return np.array([teaches(rollout, self.settings.zero_signal) for rollout in rollouts], np.bool_)

    def draw(self, count: int) -> Replayed:
        """See ``RolloutStore.draw``."""
        return cast(Replayed, _wait(self.actor.draw.remote(count)))

    def give_back(self, replayed: Replayed, keep: int) -> Replayed:
        """See ``RolloutStore.give_back``."""
        return cast(Replayed, _wait(self.actor.give_back.remote(replayed, keep)))

    def update(self, replayed: Replayed, signals: ArrayLike) -> int:
        """See ``RolloutStore.update``; the rollouts do not travel again."""
        return cast(int, _wait(self.actor.update.remote(Replayed((), replayed.weights, replayed.draw), signals)))

    def relate(self, slots: ArrayLike, scores: ArrayLike, version: int, generations: ArrayLike | None = None) -> int:
        """See ``RolloutStore.relate``."""
        return cast(int, _wait(self.actor.relate.remote(slots, scores, version, generations)))

    def rollouts(self, slots: ArrayLike) -> list[Rollout]:
        """See ``RolloutStore.rollouts``."""
        return cast(list[Rollout], _wait(self.actor.rollouts.remote(slots)))

    def live_slots(self) -> Ints:
        """See ``RolloutStore.live_slots``."""
        return cast(Ints, _wait(self.actor.live_slots.remote()))

    def generations_of(self, slots: ArrayLike) -> Ints:
        """See ``RolloutStore.generations_of``."""
        return cast(Ints, _wait(self.actor.generations_of.remote(slots)))

    def living(self, slots: Ints) -> tuple[Ints, Ints, list[Rollout]]:
        """Those of ``slots`` (n,) that hold something, their generations for ``relate``, and what they hold.

        All as of one moment, for who reads while others admit.
        """
        return cast(tuple[Ints, Ints, list[Rollout]], _wait(self.actor.living.remote(slots)))

    def explain(self, slots: ArrayLike) -> Explanation:
        """See ``RolloutStore.explain``."""
        return cast(Explanation, _wait(self.actor.explain.remote(slots)))

    def metrics(self) -> StoreMetrics:
        """See ``RolloutStore.metrics``."""
        return cast(StoreMetrics, _wait(self.actor.metrics.remote()))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the state to a file **of the actor's node**; see ``RolloutStore.save``."""
        _wait(self.actor.save.remote(str(path)))

    def restore(self, path: str | PathLike[str]) -> None:
        """Go on from a file of the actor's node that ``save`` wrote. Raises ``StoreStateError``, nothing changed."""
        _wait(self.actor.restore.remote(str(path)))

    def stop(self) -> None:
        """End the actor; what was not saved is gone."""
        import ray

        ray.kill(self.actor)

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteStore, (self.actor,)

    def _status(self) -> tuple[int, int, bool]:
        return cast(tuple[int, int, bool], _wait(self.actor.status.remote()))


def _wait(reference: Any) -> Any:
    """What a remote call gave; its errors as they were raised, without Ray's wrapping."""
    import ray

    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, Exception):
            raise error.cause from None
        raise


def start_store(
    name: str,
    settings: StoreSettings | str = "nser",
    seed: int = 0,
    directory: str | None = None,
    memory: int | None = None,
    num_cpus: float = 0.0,
) -> RemoteStore:
    """Start the actor ``name`` in the present Ray job, which must be initialised; it ends with the job.

    ``settings``, ``seed``, ``directory`` as for `RolloutStore`; ``memory`` bytes that its node must have free, see
    ``store_bytes``. By default it takes no CPU away from the trainer: it works a few milliseconds a step. Raises
    ``RolloutError``, also where there is an actor of that name.
    """
    import ray

    # Settings that do not fit raise here, not in the actor.
    wanted = store_preset(settings) if isinstance(settings, str) else settings
    actor_class = ray.remote(RolloutStoreActor).options(name=name, num_cpus=num_cpus, memory=memory, max_restarts=0)
    try:
        return RemoteStore(actor_class.remote(wanted, seed, directory))
    except ValueError as error:
        raise RolloutError("name", name, "a name that no actor has", f"Use connect_store. ({error})") from error


def connect_store(name: str) -> RemoteStore:
    """The running actor ``name`` of the present Ray job. Raises ``RolloutError`` if there is none."""
    import ray

    try:
        return RemoteStore(ray.get_actor(name))
    except ValueError as error:
        raise RolloutError("name", name, "the name of a running store", "Call start_store first.") from error
