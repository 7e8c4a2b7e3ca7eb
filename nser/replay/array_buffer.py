"""A replay buffer in plain NumPy for loops that one writes oneself: the data beside a ``ReplayIndex``."""

import threading
from dataclasses import dataclass
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from nser.replay import checkpoint
from nser.replay.draw import Draw
from nser.replay.errors import ArgumentError, CheckpointError
from nser.replay.index import ReplayIndex
from nser.replay.law import Law
from nser.replay.presets import preset
from nser.replay.types import Bools, Ints
from nser.states import write_state

DATA = "data."  # what the names of the buffer's own arrays begin with in a state, beside those of the index


@dataclass(slots=True)  # not frozen: that would cost a microsecond a batch
class Batch:
    """``n`` drawn transitions, copied: ``obs``, ``next_obs`` (n, *obs_shape), ``actions`` (n, *action_shape),
    ``rewards`` (n,) float32, ``terminated`` (n,) bool, ``weights`` (n,) float32, and the ``draw`` for ``update``.
    The arrays of the data are parts of one array of rows, and so not contiguous;
    ``torch.from_numpy`` takes them as they are.

    Bootstrap with ``rewards + γ · (1 − terminated) · value(next_obs)``: a time limit does not end the sum.
    """

    obs: NDArray
    actions: NDArray
    rewards: NDArray[np.float32]
    next_obs: NDArray
    terminated: Bools
    weights: NDArray[np.float32]
    draw: Draw

    def __len__(self) -> int:
        return len(self.rewards)


class ArrayBuffer:
    """A ring of ``capacity`` transitions, drawn by the law of its ``index``; no torch, no environment.

    Slot k of the arrays is slot k of the index, so ``buffer.index`` explains what is in ``buffer.obs[k]``. One
    ``sample`` is one step of the clock: ages count gradient steps. Calls from several threads are safe.

    ``rows`` (capacity,) holds one structured row a transition: a random row costs one miss of the cache, where
    six arrays would cost six. ``obs``, ``actions``, … are views of its fields.

    >>> buffer = ArrayBuffer(100, obs_shape=(2,), law="per")
    >>> buffer.add([0.0, 1.0], 1, 0.5, [1.0, 1.0], terminated=False).tolist()
    [0]
    >>> batch = buffer.sample(4)
    >>> batch.obs.shape, buffer.update(batch.draw, [0.1, 0.2, 0.3, 0.4])
    ((4, 2), 0)
    """

    COLUMNS: ClassVar = ("obs", "actions", "rewards", "next_obs", "terminated", "truncated")

    def __init__(
        self,
        capacity: int,
        obs_shape: tuple[int, ...],
        obs_dtype: DTypeLike = np.float32,
        action_shape: tuple[int, ...] = (),
        action_dtype: DTypeLike = np.int64,
        law: Law | str = "nser",
        seed: int | np.random.SeedSequence | None = 0,
    ) -> None:
        """``law``: a ``Law`` or a preset's name; ``seed`` is the index's. Raises ``ArgumentError``, ``LawError``."""
        self.index = ReplayIndex(capacity, preset(law) if isinstance(law, str) else law, seed)
        self.capacity = capacity = self.index.capacity
        kinds = (obs_dtype, action_dtype, np.float32, obs_dtype, np.bool_, np.bool_)
        shapes = (obs_shape, action_shape, (), obs_shape, (), ())
        parts = [(name, np.dtype(kind), shape) for name, kind, shape in zip(self.COLUMNS, kinds, shapes, strict=True)]
        # The widest first, so that alignment wastes nothing between them.
        parts.sort(key=lambda part: -part[1].alignment)
        self.rows: NDArray = np.zeros(capacity, np.dtype(parts, align=True))
        self._columns = {name: self.rows[name] for name in self.COLUMNS}
        self.obs, self.actions, self.rewards, self.next_obs, self.terminated, self.truncated = self._columns.values()
        self._shapes = {name: column.shape[1:] for name, column in self._columns.items()}
        self._head = 0
        self._any_truncated = False  # whether that column may hold anything but zeros
        # The index locks itself; this holds data and index together, so that no draw sees half a transition.
        self._lock = threading.Lock()

    @classmethod
    def for_spaces(
        cls,
        capacity: int,
        observation_space: Any,
        action_space: Any,
        law: Law | str = "nser",
        seed: int | np.random.SeedSequence | None = 0,
    ) -> "ArrayBuffer":
        """A buffer for the spaces of *one* Gymnasium environment (``single_observation_space`` of a vector)."""
        for name, space in (("observation_space", observation_space), ("action_space", action_space)):
            if getattr(space, "shape", None) is None:
                raise ArgumentError(name, space, "a space with one shape", "Wrap it in FlattenObservation.")
        return cls(
            capacity,
            observation_space.shape,
            observation_space.dtype,
            action_space.shape,
            action_space.dtype,
            law,
            seed,
        )

    def __len__(self) -> int:
        """Number of items that can be drawn."""
        return len(self.index)

    @property
    def nbytes(self) -> int:
        """Bytes of the stored data, without the index."""
        return self.rows.nbytes

    def add(
        self,
        obs: ArrayLike,
        action: ArrayLike,
        reward: Any,
        next_obs: ArrayLike,
        terminated: Any,
        truncated: Any = False,
    ) -> Ints:
        """Store one transition, or n of them; everything is copied. Returns their slots (1,) or (n,).

        ``obs``, ``next_obs`` (*obs_shape) or (n, *obs_shape), the others to match. ``terminated``: the environment
        ended; only that masks the value of ``next_obs``. ``truncated``: a time limit cut the episode; kept in
        ``buffer.truncated`` for who reads episodes. ``next_obs`` of a last step is what was seen *then*, not
        after the reset: for vector environments see ``VectorSteps``. Raises ``ArgumentError``, nothing changed.
        """
        seen = np.asarray(obs)
        if seen.ndim == self.obs.ndim:
            return self._add_many(len(seen), (seen, action, reward, next_obs, terminated, truncated))
        given: dict[str, Any] = {"obs": seen, "actions": np.asarray(action), "next_obs": np.asarray(next_obs)}
        self._check(given, ())
        given.update(rewards=float(reward), terminated=bool(terminated), truncated=bool(truncated))
        with self._lock:
            slot = self._head
            for name, value in given.items():
                self._columns[name][slot] = value
            self._any_truncated = self._any_truncated or given["truncated"]
            self._head = slot + 1 if slot + 1 < self.capacity else 0
            return self.index.insert()

    def sample(self, batch: int, replace: bool = True) -> Batch:
        """``batch`` ≥ 1 transitions by the law of the index, and one step of its clock; see ``ReplayIndex.draw``."""
        with self._lock:
            draw = self.index.draw(batch, replace)
            self.index.tick()
            return self.gather(draw)

    def gather(self, draw: Draw) -> Batch:
        """The transitions of a draw."""
        rows = self.rows.take(draw.slots)
        return Batch(
            rows["obs"],
            rows["actions"],
            rows["rewards"],
            rows["next_obs"],
            rows["terminated"],
            draw.weights.astype(np.float32),
            draw,
        )

    def update(self, draw: Draw, errors: ArrayLike) -> int:
        """Feed raw |TD errors| (n,) of a draw back; returns how many were ignored as overwritten meanwhile."""
        return self.index.update(draw, errors)

    def relate(self, slots: ArrayLike, relevance: ArrayLike, version: int, generations: ArrayLike | None = None) -> int:
        """Rule relevance (n,) in [0, 1] of ``slots``; see ``ReplayIndex.relate``."""
        return self.index.relate(slots, relevance, version, generations)

    def state_dict(self) -> dict[str, Any]:
        """The index's state and copies of the filled arrays; ``load_state_dict`` restores every bit."""
        with self._lock:
            state = self.index.state_dict()
            filled = min(state["inserted"], self.capacity)
            return {**state, **{DATA + name: column[:filled].copy() for name, column in self._columns.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from ``state``, of a buffer like this one. Raises ``CheckpointError``, nothing changed."""
        with self._lock:
            filled = min(int(state.get("inserted", 0)), self.capacity)
            for name, own in self._columns.items():
                found = state.get(DATA + name)
                if (
                    not isinstance(found, np.ndarray)
                    or found.dtype != own.dtype
                    or found.shape != (filled, *own.shape[1:])
                ):
                    kind = f"{found.dtype} {found.shape}" if isinstance(found, np.ndarray) else found
                    raise CheckpointError(DATA + name, kind, f"{own.dtype} {(filled, *own.shape[1:])}")
            self.index.load_state_dict(state)
            for name, own in self._columns.items():
                own[:filled] = state[DATA + name]
            self._head = int(state["head"])
            self._any_truncated = True

    def save(self, path: str | PathLike[str]) -> None:
        """Write ``state_dict`` to an npz file without pickle, whole or not at all."""
        write_state(self.state_dict(), path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "ArrayBuffer":
        """The buffer that ``save`` wrote, with its capacity, shapes and law. Raises ``CheckpointError``."""
        state = checkpoint.read(path)
        obs, actions = state.get(DATA + "obs"), state.get(DATA + "actions")
        if obs is None or actions is None:
            raise CheckpointError(DATA + "obs", "nothing", "an array; is this the file of an ArrayBuffer?")
        law = checkpoint.law_of(state)
        buffer = cls(state["capacity"], obs.shape[1:], obs.dtype, actions.shape[1:], actions.dtype, law)
        buffer.load_state_dict(state)
        return buffer

    def __getstate__(self) -> dict[str, Any]:
        return self.state_dict()

    def __setstate__(self, state: dict[str, Any]) -> None:
        obs, actions = state[DATA + "obs"], state[DATA + "actions"]
        law = checkpoint.law_of(state)
        ArrayBuffer.__init__(self, state["capacity"], obs.shape[1:], obs.dtype, actions.shape[1:], actions.dtype, law)
        self.load_state_dict(state)

    def _add_many(self, count: int, given: tuple[Any, ...]) -> Ints:
        if count > self.capacity:
            raise ArgumentError("obs", count, f"at most {self.capacity} (the capacity)", "Add in smaller parts.")
        arrays = {}
        for name, value in zip(self.COLUMNS, given, strict=True):
            if value is not False:
                arrays[name] = value if isinstance(value, np.ndarray) else np.asarray(value)
            elif name != "truncated":
                raise ArgumentError(name, value, f"the shape ({count},)", "Nothing was stored.")
            elif self._any_truncated:
                arrays[name] = np.zeros(count, np.bool_)
        self._check(arrays, (count,))
        with self._lock:
            low, high = self._head, self._head + count
            for name, values in arrays.items():
                column = self._columns[name]
                if high <= self.capacity:
                    column[low:high] = values
                else:
                    first = self.capacity - low
                    column[low:], column[: high - self.capacity] = values[:first], values[first:]
            self._any_truncated = self._any_truncated or "truncated" in arrays
            self._head = high % self.capacity
            return self.index.insert(count)

    def _check(self, given: dict[str, NDArray], lead: tuple[int, ...]) -> None:
        """Every array has the shape of its column behind ``lead``: nothing is broadcast by accident."""
        for name, value in given.items():
            expected = lead + self._shapes[name]
            if value.shape != expected:
                raise ArgumentError(name, value.shape, f"the shape {expected}", "Nothing was stored.")
