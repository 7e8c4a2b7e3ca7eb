"""The replay index: which item to replay next, and with what weight."""

import threading
import warnings
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nser.replay import checkpoint
from nser.replay.arguments import check_relevance, check_signal, count_of, integers, numbers, slots_of
from nser.replay.density import Density, density
from nser.replay.draw import Draw, Sampler
from nser.replay.errors import ArgumentError, EmptyIndexError, SignalError, SlotError, ZeroWeightWarning
from nser.replay.explain import Explanation, IndexStats, explanation, statistics
from nser.replay.forest import Forest
from nser.replay.items import Items
from nser.replay.law import Law, value_at
from nser.replay.schedule import Schedule
from nser.replay.sum_tree import kernels
from nser.replay.types import Floats, Ints
from nser.states import write_state

OWN_COUNTS = ("clock", "stale_updates", "stale_relations")


class ReplayIndex:
    """Which of ``capacity`` stored items to replay: numbers in, slots out. It never holds the data.

    The host keeps item k of ``insert`` in slot k of what that returned, calls ``tick`` once a step (whatever
    it calls a step: ages are counted in it), replays what ``draw`` names, and hands |TD errors| back with
    ``update``. Slots are filled in ring order, so the host may as well keep a ring of its own.

    Why so: weights are anchored at birth, so that growing older costs nothing; without-rules and bonus of
    the rules are two sums, so that their share is known and can be capped without touching an item; each slot
    counts its occupants, so that feedback for an item overwritten since is ignored, not misdirected.

    All methods hold one lock, draw from a generator of the index's own, and leave it as it was when they
    raise. The law is described in ``nser.replay.law``.

    >>> index = ReplayIndex(4, Law(), seed=1)
    >>> index.insert(3, signal=[1.0, 1.0, 0.0]).tolist()
    [0, 1, 2]
    >>> draw = index.draw(2)
    >>> index.update(draw, np.zeros(2))
    0
    """

    def __init__(self, capacity: int, law: Law | None = None, seed: int | np.random.SeedSequence | None = 0) -> None:
        """``capacity`` ≥ 1 slots under ``law`` (default ``Law()``); ``seed`` None takes one from the system."""
        self.capacity = count_of("capacity", capacity, 1)
        self.law = law if law is not None else Law()
        self.clock = 0
        self.stale_updates = 0
        self.stale_relations = 0
        self._lock = threading.Lock()
        self._warned = False
        self._kernels = kernels()
        self._items = Items(self.capacity)
        self._eta = self._eta_at(0)
        self._forest = Forest(self._items, self.law, self._eta, self._kernels)
        self._rng = np.random.default_rng(seed)
        self._sampler = Sampler(self._items, self._forest, self._rng, self.law.stratified)
        self._default_boost = self._boost_of_default()

    def __len__(self) -> int:
        """Number of eligible items."""
        return self._items.size

    def insert(self, n: int = 1, signal: ArrayLike | None = None, relevance: ArrayLike | None = None) -> Ints:
        """Store ``n`` items born now; returns their slots (n,), in ring order.

        ``signal`` (n,) ≥ 0, or None for the largest signal among the live items (1 if there are none);
        ``relevance`` (n,) in [0, 1], or None for the law's default. 0 ≤ n ≤ capacity.
        Raises ``ArgumentError``, ``SignalError``, ``RelevanceError``.
        """
        with self._lock:
            if n != 1:
                n = self._insertable(n)
            if n == 1 and relevance is None:
                return self._insert_one(signal)
            signals = None if signal is None else numbers("signal", signal, n)
            relevances = None if relevance is None else numbers("relevance", relevance, n)
            if signals is not None:
                check_signal(signals)
            if relevances is not None:
                check_relevance(relevances, None)
            if n == 0:
                return np.zeros(0, np.int64)
            if signals is None:
                return (
                    self._insert_same(n)
                    if relevances is None
                    else self._insert_many(n, np.full(n, self._new_signal()), relevances)
                )
            return self._insert_many(n, signals, relevances)

    def draw(self, batch: int, replace: bool = True) -> Draw:
        """``batch`` ≥ 1 items by the law, with their weights.

        ``replace=False`` gives distinct slots by successive draws (each drawn item leaves the rest), never
        stratified, and fewer than ``batch`` when fewer can be drawn; probabilities and weights are then those
        of the first of these draws. When all eligible weights are zero, draws are uniform, with one
        ``ZeroWeightWarning``. Raises ``EmptyIndexError``, ``ArgumentError``.
        """
        with self._lock:
            count = count_of("batch", batch, 1)
            law = self._density()
            sampler = self._sampler
            slots = sampler.with_replacement(law, count) if replace else sampler.without_replacement(law, count)
            items, base = self._items, self._forest.base
            leaves, generations, ages = self._kernels.look(
                base.nodes, base.leaf, items.generation, items.birth, slots, self.clock
            )
            probability = sampler.probabilities(law, slots, leaves)
            beta = value_at(self.law.beta, self.clock)
            weights = sampler.weights(law, slots, probability, beta, self.law.normalise, leaves)
            return Draw(slots, generations, weights, probability, ages)

    def update(self, draw: Draw, signal: ArrayLike) -> int:
        """Set the signals (n,) ≥ 0 of what was drawn; returns how many were ignored as stale.

        Stale is an item that was overwritten or grew too old since the draw. Of an item drawn twice the last
        signal counts. Raises ``SignalError``, ``SlotError``, ``ArgumentError``.
        """
        with self._lock:
            items = self._items
            slots, generations = draw.slots, draw.generations
            if slots.dtype != np.int64 or generations.dtype != np.int64 or len(slots) != len(generations):
                kinds = f"{slots.dtype} {slots.shape}, {generations.dtype} {generations.shape}"
                raise ArgumentError("draw", kinds, "int64 slots and generations (n,)", "Pass what draw gave.")
            signals = numbers("signal", signal, len(slots))
            fault, position, stale, largest = self._kernels.admit(slots, generations, items.generation, signals)
            if fault:
                slot = int(slots[position])
                if fault == 1:
                    raise SlotError(slot, position, self.capacity)
                raise SignalError(float(signals[position]), position, slot)
            if stale:
                fresh = (generations == items.generation[slots]) & (generations & 1 == 1)
                slots, signals = slots[fresh], signals[fresh]
                self.stale_updates += stale
            if len(slots):
                self._forest.update(slots, signals, largest, self.clock)
            return stale

    def relate(self, slots: ArrayLike, relevance: ArrayLike, version: int, generations: ArrayLike | None = None) -> int:
        """Set the relevances (n,) in [0, 1] of ``slots`` (n,), given by rules of ``version``; the last one counts.

        With ``generations`` (n,), as a draw or ``generations_of`` gave them, scores of items overwritten since
        are ignored; without, scores of slots that hold no live item are. Returns how many were.
        Raises ``RelevanceError``, ``SlotError``, ``ArgumentError``.
        """
        with self._lock:
            items = self._items
            wanted = slots_of(slots, self.capacity)
            relevances = numbers("relevance", relevance, len(wanted))
            version = count_of("version", version, 0)
            check_relevance(relevances, wanted)
            current = items.generation[wanted]
            meant = current if generations is None else integers("generations", generations, len(wanted))
            fresh = (meant == current) & (current & 1 == 1)
            stale = len(wanted) - int(np.count_nonzero(fresh))
            if stale:
                wanted, relevances = wanted[fresh], relevances[fresh]
                self.stale_relations += stale
            if len(wanted):
                items.relevance[wanted] = relevances
                items.version[wanted] = version
                self._forest.relate(wanted, relevances)
            return stale

    def tick(self, n: int = 1) -> None:
        """Let ``n`` ≥ 0 steps pass: items grow older, those past ``max_age`` stop being eligible."""
        with self._lock:
            self.clock += n if n == 1 else count_of("n", n, 0)
            if self.law.max_age is not None:
                expired = self._items.expired(self.clock - self.law.max_age)
                if expired:
                    for low, high in self._items.drop(expired):
                        self._forest.clear(low, high)
            if isinstance(self.law.eta, Schedule):
                eta = self._eta_at(self.clock)
                if eta != self._eta:
                    self._eta = eta
                    self._forest.retune(eta)
                    self._default_boost = self._boost_of_default()

    def generations_of(self, slots: ArrayLike) -> Ints:
        """The present generations (n,) of ``slots`` (n,), for a ``relate`` whose scores arrive later."""
        with self._lock:
            return self._items.generation[slots_of(slots, self.capacity)]

    @property
    def oldest_slot(self) -> int:
        """Slot of the oldest eligible item; where there is none, the slot that is filled next."""
        with self._lock:
            return self._items.tail

    def live_slots(self) -> Ints:
        """The slots of all eligible items, oldest first."""
        with self._lock:
            return self._items.live()

    def explain(self, slots: ArrayLike) -> Explanation:
        """Every factor of the probability of ``slots`` (n,); see ``Explanation``. Raises ``SlotError``."""
        with self._lock:
            wanted = slots_of(slots, self.capacity)
            law = self._density(warn=False) if self._items.size else None
            return explanation(self._sampler, law, wanted, self.clock)

    def stats(self) -> IndexStats:
        """What the index holds and how it draws at present; O(N)."""
        with self._lock:
            law = self._density(warn=False) if self._items.size else None
            return statistics(self._sampler, law, self.clock, (self.stale_updates, self.stale_relations))

    def state_dict(self) -> dict[str, Any]:
        """Everything, as a flat dict of new arrays and JSON-able scalars; ``load_state_dict`` restores every bit."""
        with self._lock:
            counts = {name: int(getattr(self, name)) for name in OWN_COUNTS}
            return checkpoint.pack(self._items, self._forest, self._rng, {**counts, "warned": int(self._warned)})

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from ``state``, of an index of this capacity and law. Raises ``CheckpointError``, nothing changed."""
        with self._lock:
            checkpoint.check(state, self.capacity, self.law)
            for name in OWN_COUNTS:
                setattr(self, name, state[name])
            self._warned = bool(state["warned"])
            self._eta = self._forest.eta = self._eta_at(self.clock)
            self._default_boost = self._boost_of_default()
            checkpoint.unpack(state, self._items, self._forest, self._rng)

    def save(self, path: str | PathLike[str]) -> None:
        """Write ``state_dict`` to an npz file without pickle, whole or not at all."""
        write_state(self.state_dict(), path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "ReplayIndex":
        """The index that ``save`` wrote, with its capacity and law. Raises ``CheckpointError``."""
        state = checkpoint.read(path)
        index = cls(int(state["capacity"]), checkpoint.law_of(state))
        index.load_state_dict(state)
        return index

    def __getstate__(self) -> dict[str, Any]:
        return self.state_dict()

    def __setstate__(self, state: dict[str, Any]) -> None:
        ReplayIndex.__init__(self, int(state["capacity"]), checkpoint.law_of(state))
        self.load_state_dict(state)

    # What follows is called under the lock.

    def _insert_one(self, signal: ArrayLike | None) -> Ints:
        # The call of every environment step: plain numbers are several times quicker than arrays of one.
        if signal is None:
            number = self._new_signal()
        else:
            signals = numbers("signal", signal, 1)
            check_signal(signals)
            number = float(signals[0])
        items = self._items
        slot = items.occupy(1, self.clock)
        items.signal[slot] = number
        items.relevance[slot] = self.law.default_relevance
        items.version[slot] = -1
        self._forest.put_one(slot, number, self._default_boost, self.clock)
        return np.array((slot,))

    def _insert_same(self, n: int) -> Ints:
        # What vector environments do at every step: one weight for all, and one kernel.
        items, forest, signal = self._items, self._forest, self._new_signal()
        weight = forest.weight_of(signal, self.clock) if forest.least is None else None
        if weight is None:
            return self._insert_many(n, np.full(n, signal), None)
        start = items.claim(n)
        numbers = (signal, self.law.default_relevance, weight)
        for low, high in items.pieces(start, n):
            forest.put_same(low, high, numbers, self._default_boost, self.clock)
        return items.stretch(start, n)

    def _insert_many(self, n: int, signals: Floats, relevances: Floats | None) -> Ints:
        items, forest = self._items, self._forest
        boost = self._default_boost if relevances is None else forest.boost_of(relevances)
        relevance = self.law.default_relevance if relevances is None else relevances
        start = items.occupy(n, self.clock)
        done = 0
        for low, high in items.pieces(start, n):
            part = slice(done, done + high - low)
            items.signal[low:high] = signals[part]
            items.relevance[low:high] = relevance if isinstance(relevance, float) else relevance[part]
            items.version[low:high] = -1
            done = part.stop
        done = 0
        for low, high in items.pieces(start, n):
            part = slice(done, done + high - low)
            forest.put(low, high, signals[part], boost if isinstance(boost, float) else boost[part], self.clock)
            done = part.stop
        return items.stretch(start, n)

    def _density(self, warn: bool = True) -> Density:
        forest, items = self._forest, self._items
        if items.size == 0:
            raise EmptyIndexError(self.capacity, self.clock)
        forest.settle(self.clock)
        bonus = forest.bonus.root if forest.bonus is not None else 0.0
        mix = value_at(self.law.mix, self.clock)
        law = density(self.law, items.size, mix, self._eta, forest.base.root, bonus)
        if law.zero and warn and not self._warned:
            self._warned = True
            warnings.warn(
                f"all {items.size} eligible items have weight zero: drawing uniformly. "
                "Expected a positive signal (or relevance, if η is ∞) somewhere; set the law's epsilon > 0.",
                ZeroWeightWarning,
                stacklevel=3,
            )
        return law

    def _new_signal(self) -> float:
        peak = self._forest.peak.root
        return peak if peak >= 0.0 else 1.0

    def _eta_at(self, clock: int) -> float:
        return self.law.eta.stair(clock) if isinstance(self.law.eta, Schedule) else float(self.law.eta)

    def _boost_of_default(self) -> float:
        if self._forest.boost is None:
            return 0.0
        return float(self._forest.boost_of(np.array([self.law.default_relevance]))[0])

    def _insertable(self, n: int) -> int:
        count = count_of("n", n, 0)
        if count > self.capacity:
            raise ArgumentError("n", n, f"at most {self.capacity} (the capacity)", "Insert in smaller parts.")
        return count
