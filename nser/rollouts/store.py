"""The rollout store: what a policy generated, kept to be trained on again."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nser.replay import Explanation, ReplayIndex
from nser.replay.types import Floats, Ints
from nser.rollouts import checkpoint
from nser.rollouts.admission import Admission, Replayed, admission
from nser.rollouts.codec import NO_KEY, ROW, Record, read_record, record_of, rows_of
from nser.rollouts.drawing import Drawing
from nser.rollouts.errors import RolloutError
from nser.rollouts.intake import Taken, check_versions, scores_of, signals_of, sort_out, teaches
from nser.rollouts.metrics import Counters, StoreMetrics, effective_size
from nser.rollouts.presets import store_preset
from nser.rollouts.record import Rollout
from nser.rollouts.settings import StoreSettings
from nser.rollouts.shards import Shards
from nser.states import write_state

SHARD_BYTES = 2**26


class RolloutStore:
    """Rollouts of variable length, without padding, and one ``ReplayIndex`` that says which to replay.

    The trainer calls ``advance`` with its version whenever its weights change, ``draw`` *before* it ``admit``s what
    it has just generated, and hands new signals back with ``update``. ``nser.rollouts.composing.plan`` does a whole
    step of that. **Age** has one definition: the store's version minus the version that generated the first token.

    The index counts ages from the admission. What a rollout was older than that, its lag, is folded into its signal:
    (σ + ε) exp(−lag/τ) in place of σ + ε is the same law exactly.

    All methods hold one lock, draw from generators of the store's own, and leave it as it was when they raise.

    >>> store = RolloutStore("rollout-grpo")
    >>> store.admit([Rollout(prompt_ids=[1], response_ids=[2, 3], response_mask=[1, 1], behavior_logps=[-1, -2],
    ...                      advantage=0.5)]).slots.tolist()
    [0]
    >>> store.advance(1)
    >>> store.draw(8).draw.ages.tolist()
    [1]
    """

    def __init__(
        self,
        settings: StoreSettings | str = "nser",
        seed: int = 0,
        directory: str | PathLike[str] | None = None,
        shard_bytes: int = SHARD_BYTES,
    ) -> None:
        """``settings``, or the name of a preset; with ``directory`` the tokens live in memory-mapped files there.

        Files of ``shard_bytes`` are scratch space without a name: nothing is left when the process ends, however it
        ends. What should outlive it is written by ``save``. Raises ``RolloutError``.
        """
        self.settings = store_preset(settings) if isinstance(settings, str) else settings
        self.directory = None if directory is None else Path(directory)
        self.shard_bytes = shard_bytes
        self._lock = threading.RLock()
        for_index, for_order = np.random.SeedSequence(seed).spawn(2)
        # ε is in the signals already, and weights are divided by the largest of what was drawn in the end.
        law = replace(self.settings.law, epsilon=0.0, normalise="none")
        self._index = ReplayIndex(self.settings.capacity, law, for_index)
        self._rows: NDArray = np.zeros(self.settings.capacity, ROW)
        self._drawing = Drawing(self._index, self._rows, self.settings, np.random.default_rng(for_order))
        self._shards = Shards(shard_bytes, self.directory)
        self._counters = Counters()
        self._keys: set[bytes] = set()
        self._oldest = 0  # slot of the oldest live item, as the index's ring has it
        self._started: int | None = None  # version of the first admission

    def __len__(self) -> int:
        """Number of items that can be drawn."""
        with self._lock:
            return len(self._index) - len(self._drawing.too_old())

    @property
    def version(self) -> int:
        """The trainer's version, ≥ 0, as last told by ``advance``."""
        return self._index.clock

    @property
    def warming_up(self) -> bool:
        """Whether nothing should be replayed yet: fewer than ``warm_up`` versions since the first admission."""
        with self._lock:
            return self._started is None or self.version - self._started < self.settings.warm_up

    def advance(self, version: int) -> None:
        """Tell the trainer's version, which never falls; items past the law's ``max_age`` go.

        Raises ``RolloutError``.
        """
        with self._lock:
            if isinstance(version, bool) or not isinstance(version, int | np.integer) or version < self.version:
                raise RolloutError(
                    "version", version, f"a whole number ≥ {self.version}, the store's version", "Versions never fall."
                )
            before = len(self._index)
            self._index.tick(int(version) - self.version)
            self._let_go(before - len(self._index))

    def admit(self, rollouts: Sequence[Rollout], scores: ArrayLike | None = None) -> Admission:
        """Store what teaches something and is not there yet; the oldest items make room.

        ``scores`` (n,) in [0, 1] replace the ``rule_score`` of the rollouts. A rollout from a version ahead of the
        store's, or with metadata that is no JSON, raises ``RolloutError``.
        """
        with self._lock:
            relevance = scores_of(rollouts, scores)
            check_versions(rollouts, self.version)
            taken, refused = sort_out(rollouts, self.settings, self.version, self._keys)
            records = [record_of(rollouts[one.position], one.position) for one in taken]
            slots = self._store(rollouts, taken, records, relevance)
            for position, rollout in enumerate(rollouts):
                self._counters.note_offer(rollout.task, refused.get(position))
            return admission(rollouts, refused, slots)

    def teaches(self, rollouts: Sequence[Rollout]) -> NDArray[np.bool_]:
        """(n,) False where |advantage| ≤ ``zero_signal`` on every trained token: the fresh survivors are the rest."""
        return np.array([teaches(rollout, self.settings.zero_signal) for rollout in rollouts], np.bool_)

    def draw(self, count: int) -> Replayed:
        """At most ``count`` ≥ 0 items by the law, fewer when fewer are there; counts them as used.

        The order is random, so that any first part is a draw as well.
        """
        with self._lock:
            if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
                raise RolloutError("count", count, "a whole number ≥ 0", "Nothing was drawn.")
            draw = self._drawing.draw(int(count))
            np.add.at(self._rows["uses"], draw.slots, 1)
            self._counters.note_draw(draw.ages, draw.weights)
            return Replayed(tuple(self._read(draw.slots)), draw.weights, draw)

    def give_back(self, replayed: Replayed, keep: int) -> Replayed:
        """The first ``keep`` of what was drawn; the rest counts as not replayed. For ranks that must agree.

        Call it before anything is admitted.
        """
        with self._lock:
            if not 0 <= keep <= len(replayed):
                raise RolloutError("keep", keep, f"a number from 0 to {len(replayed)}", "Draw more instead.")
            draw = replayed.draw
            kept = self._drawing.first(draw, keep)
            fresh = self._index.generations_of(draw.slots[keep:]) == draw.generations[keep:]
            np.subtract.at(self._rows["uses"], draw.slots[keep:][fresh], 1)
            self._counters.take_back(draw.ages)
            self._counters.note_draw(kept.ages, kept.weights)
            return Replayed(replayed.rollouts[:keep], kept.weights, kept)

    def update(self, replayed: Replayed, signals: ArrayLike) -> int:
        """Set the signals of what was drawn to |``signals``| (n,); returns how many are gone since.

        Signals move priorities alone: stored advantages are those of birth, bit for bit.
        """
        with self._lock:
            draw = replayed.draw
            sizes = signals_of(signals, len(draw))
            fresh = self._index.generations_of(draw.slots) == draw.generations
            gone = self._index.update(draw, self._drawing.folded(sizes, self._rows["lag"][draw.slots]))
            self._rows["signal"][draw.slots[fresh]] = sizes[fresh]
            return gone

    def relate(self, slots: ArrayLike, scores: ArrayLike, version: int, generations: ArrayLike | None = None) -> int:
        """Set rule scores (n,) in [0, 1] of ``slots``, by rules of ``version``; see ``ReplayIndex.relate``.

        They become the ``rule_score`` of the rollouts; ``rule_scores`` stay as they came in.
        """
        with self._lock:
            present = self._index.generations_of(slots)
            gone = self._index.relate(slots, scores, version, generations)
            meant = present if generations is None else np.asarray(generations)
            fresh = (present == meant) & (present & 1 == 1)
            self._rows["rule_score"][np.asarray(slots)[fresh]] = np.asarray(scores, np.float64)[fresh]
            return gone

    def rollouts(self, slots: ArrayLike) -> list[Rollout]:
        """The rollouts in live ``slots``; their arrays are read-only views, not copies. Raises ``RolloutError``."""
        with self._lock:
            dead = self._index.generations_of(slots) & 1 == 0
            wanted = np.asarray(slots, np.int64)
            if dead.any():
                raise RolloutError("slots", int(wanted[dead][0]), "slots of live items", "Ask live_slots() for them.")
            return self._read(wanted)

    def live_slots(self) -> Ints:
        """The slots of all items that can be drawn, oldest first."""
        with self._lock:
            live = self._index.live_slots()
            return live[~np.isin(live, self._drawing.too_old())]

    def generations_of(self, slots: ArrayLike) -> Ints:
        """The present generations (n,) of ``slots``, for a ``relate`` whose scores arrive later."""
        return self._index.generations_of(slots)

    def explain(self, slots: ArrayLike) -> Explanation:
        """Every factor of the probability of ``slots`` (n,), with the store's definition of age.

        ``weight`` is the one before the division by the largest of a batch.
        """
        with self._lock:
            return self._drawing.explain(slots)

    def metrics(self) -> StoreMetrics:
        """Ages and reuse of what was drawn, admission per task, share owed to rules, bytes; O(N)."""
        with self._lock:
            counters, stats = self._counters, self._index.stats()
            uses = self._rows["uses"][self._index.live_slots()]
            probability = self._drawing.explain(self.live_slots()).probability
            return StoreMetrics(
                version=self.version,
                items=len(self),
                capacity=self.settings.capacity,
                bytes=self._shards.written,
                bytes_allocated=self._shards.allocated,
                drawn=counters.drawn,
                age_mean=counters.age_sum / max(counters.drawn, 1),
                age_max=counters.age_max,
                age_counts=tuple(counters.age_counts),
                last_age_mean=counters.last_age_mean,
                last_age_max=counters.last_age_max,
                last_effective_size=counters.last_effective_size,
                uses_mean=float(uses.mean()) if len(uses) else 0.0,
                uses_max=int(uses.max(initial=0)),
                gone=counters.gone,
                gone_unused=counters.gone_unused / max(counters.gone, 1),
                gone_uses_mean=counters.gone_uses / max(counters.gone, 1),
                tasks=counters.tasks(),
                effective_size=effective_size(probability),
                rule_share=stats.rule_share,
                scored=stats.scored,
            )

    def state_dict(self) -> dict[str, Any]:
        """Everything, as a flat dict of new arrays and JSON-able scalars; ``load_state_dict`` restores every bit."""
        with self._lock:
            state = self._state()
            return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in state.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from ``state``, of a store with these settings. Raises ``StoreStateError``, nothing changed."""
        with self._lock:
            checkpoint.check(state, self.settings)
            other = RolloutStore(self.settings, 0, self.directory, self.shard_bytes)
            checkpoint.restore_index(state, other._index)
            rows = checkpoint.rows_of(state)
            other._rows[: len(rows)] = rows
            live = other._index.live_slots()
            checkpoint.restore_shards(state, other._shards, rows[live])
            counters, others = checkpoint.scalars_of(state)
            self._index, self._rows, self._shards, self._counters = other._index, other._rows, other._shards, counters
            self._drawing = other._drawing
            self._drawing.rng.bit_generator.state, self._drawing.lagging = others["rng"], others["lagging"]
            self._keys = set(rows["key"][live].tolist()) - {NO_KEY}
            self._oldest = self._index.oldest_slot
            self._started = others["started"]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the state to an npz file without pickle, whole or not at all."""
        with self._lock:
            write_state(self._state(), path)

    @classmethod
    def load(cls, path: str | PathLike[str], directory: str | PathLike[str] | None = None) -> RolloutStore:
        """The store that ``save`` wrote, with its settings. Raises ``StoreStateError``."""
        state = checkpoint.read(path)
        settings = checkpoint.settings_of(state)
        checkpoint.check(state, settings)
        checkpoint.check_sizes(state)
        store = cls(settings, 0, directory, checkpoint.scalars_of(state)[1]["shard_bytes"])
        store.load_state_dict(state)
        return store

    # What follows is called under the lock.

    def _state(self) -> dict[str, Any]:
        others = {
            "rng": self._drawing.rng.bit_generator.state,
            "lagging": self._drawing.lagging,
            "started": self._started,
        }
        return checkpoint.pack(
            self.settings, self._index.state_dict(), self._rows, self._shards, self._counters, others
        )

    def _store(self, rollouts: Sequence[Rollout], taken: list[Taken], records: list[Record], relevance: Floats) -> Ints:
        """Write what is taken; returns the slots of all items."""
        # The last thing that may fail, for want of memory or disk.
        places = self._shards.place([len(record.content) for record in records], [len(one.items) for one in taken])
        rows = []
        for one, record, place in zip(taken, records, places, strict=True):
            self._shards.write(place, record.content)
            score = float(relevance[one.position])
            rows += rows_of(one, rollouts[one.position], record, place, score, self.version)
        new = np.array(rows, ROW)
        self._let_go(max(len(self._index) + len(new) - self.settings.capacity, 0))
        slots = self._index.insert(len(new), self._drawing.folded(new["signal"], new["lag"]), new["rule_score"])
        self._rows[slots] = new
        self._keys.update(one.key for one in taken)
        self._drawing.lagging = self._drawing.lagging or bool(new["lag"].any())
        if self._started is None and len(slots):
            self._started = self.version
        return slots

    def _let_go(self, count: int) -> None:
        """The ``count`` oldest items are gone, or will be overwritten."""
        slots = (self._oldest + np.arange(count)) % self.settings.capacity
        rows = self._rows[slots]
        self._oldest = (self._oldest + count) % self.settings.capacity
        self._counters.note_gone(rows["uses"])
        self._keys.difference_update(rows["key"].tolist())
        self._shards.release(rows["shard"])

    def _read(self, slots: Ints) -> list[Rollout]:
        rows = self._rows[slots].tolist()
        return [read_record(self._shards.by_number[row[1]], row) for row in rows]
