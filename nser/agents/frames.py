"""Observations of several environments, each stored once.

What follows a transition is, nearly always, where the next transition of the same environment starts. So a row
keeps its observation, and its next one is read from the row after it; only where that is wrong (the episode ended,
the environment was reset in between, or nothing came after it yet) a frame is kept apart. For images that halves
the memory, and the copying with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.preprocessing import get_obs_shape

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Observations = NDArray | dict[str, NDArray]

IN_NEXT_ROW = -1
PLAIN = ""  # the name of the only column of an observation that is no dictionary


def vectors(observations: Observations) -> NDArray:
    """One array [B, …] of any observations: the parts of a dictionary flattened, one after another in its order.

    That is how rules, and what explores by them, read a dictionary.
    """
    if isinstance(observations, dict):
        return np.concatenate([part.reshape(len(part), -1) for part in observations.values()], axis=1)
    return observations


class Frames:
    """A ring of `size` rows × `n_envs` observations, plain or dictionaries; slot = row · n_envs + environment.

    columns: name → [size, n_envs, *shape], what was seen before acting
    apart:   [size, n_envs] int64, where the next observation is: `IN_NEXT_ROW`, or a place in the pool
    pool:    name → [places, *shape]; the first `n_envs` places hold what followed the newest row
    """

    def __init__(self, size: int, space: spaces.Space, n_envs: int) -> None:
        self.size, self.n_envs = size, n_envs
        self.plain = not isinstance(space, spaces.Dict)
        parts = {PLAIN: space} if not isinstance(space, spaces.Dict) else dict(space.spaces)
        self.columns: dict[str, NDArray] = {}
        self.pool: dict[str, NDArray] = {}
        for name, part in parts.items():
            shape: Any = get_obs_shape(part)
            self.columns[name] = np.zeros((size, n_envs, *shape), part.dtype)
            self.pool[name] = np.zeros((n_envs, *shape), part.dtype)
        # What one call of `add` brings of each column.
        self._given = {name: (column.dtype, column.shape[1:]) for name, column in self.columns.items()}
        self._newest = np.arange(n_envs)
        self.apart = np.full((size, n_envs), IN_NEXT_ROW, np.int64)
        self._free: list[int] = []
        self._make_room(n_envs)

    @property
    def observations(self) -> Observations:
        """[size, n_envs, *shape], or a dictionary of such."""
        return self._unnamed(self.columns)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        parts = (*self.columns.values(), *self.pool.values(), self.apart)
        return sum(part.nbytes for part in parts)

    def add(self, row: int, before: int, obs: Observations, next_obs: Observations) -> list[int]:
        """Store one observation of each environment in `row`, copied, and what followed it.

        before: the row stored last, -1 for none. Returns the environments that were reset in between: those whose
        `obs` is not, bit for bit, what followed it.
        """
        here, after = self._named(obs), self._named(next_obs)
        reset: list[int] = []
        if before >= 0:
            reset = self._reset(here)
            self.apart[before] = IN_NEXT_ROW
            for env in reset if before != row else ():
                self.apart[before, env] = self._keep(env)
        for place in self.apart[row].tolist():
            if place >= self.n_envs:
                self._free.append(place)
        for name, column in self.columns.items():
            column[row] = here[name]
            self.pool[name][: self.n_envs] = after[name]
        self.apart[row] = self._newest
        return reset

    def at(self, slots: Ints) -> Observations:
        """[B, *shape] observations in these slots [B], as a copy."""
        return self._unnamed({name: self._flat(column).take(slots, axis=0) for name, column in self.columns.items()})

    def after(self, slots: Ints) -> Observations:
        """[B, *shape] what followed them, as a copy."""
        following = slots + self.n_envs
        following[following >= self.size * self.n_envs] -= self.size * self.n_envs
        places = self.apart.reshape(-1).take(slots)
        apart = np.flatnonzero(places >= 0)
        found = {}
        for name, column in self.columns.items():
            found[name] = self._flat(column).take(following, axis=0)
            if len(apart):
                found[name][apart] = self.pool[name].take(places[apart], axis=0)
        return self._unnamed(found)

    def state(self, filled: int) -> dict[str, Any]:
        """The first `filled` rows as arrays by name; what no row points to is left out of the pool."""
        apart = self.apart[:filled].copy()
        kept = apart >= self.n_envs
        used = np.r_[np.arange(self.n_envs), apart[kept]]
        apart[kept] = self.n_envs + np.arange(len(used) - self.n_envs)
        columns = {key: self.columns[name][:filled] for key, name in self._keys("observations")}
        pool = {key: self.pool[name][used] for key, name in self._keys("apart")}
        return {**columns, **pool, "places": apart}

    def shapes(self, filled: int, places: int) -> dict[str, tuple[int, ...]]:
        """The shape that every entry of `state` must have, with `places` frames in its pool."""
        columns = {key: (filled, *self.columns[name].shape[1:]) for key, name in self._keys("observations")}
        pool = {key: (places, *self.pool[name].shape[1:]) for key, name in self._keys("apart")}
        return {**columns, **pool, "places": (filled, self.n_envs)}

    def load_state(self, state: Mapping[str, Any], filled: int) -> None:
        """Take over what `state` gave, of shapes that fit."""
        for key, name in self._keys("observations"):
            self.columns[name][:filled] = state[key]
        for key, name in self._keys("apart"):
            self.pool[name] = np.array(state[key], self.pool[name].dtype)
        self.apart[:] = IN_NEXT_ROW
        self.apart[:filled] = state["places"]
        self._free = []

    def _keys(self, kind: str) -> list[tuple[str, str]]:
        # By number: a key of a dictionary may hold characters that mean something where states are written.
        return [(kind if self.plain else f"{kind}.{i}", name) for i, name in enumerate(self.columns)]

    def _reset(self, here: dict[str, NDArray]) -> list[int]:
        reset: set[int] = set()
        for name, latest in self.pool.items():
            part = here[name]
            # The usual case in one look at the memory; only where it fails is each environment looked at.
            if latest[: self.n_envs].tobytes() != part.tobytes():
                reset.update(env for env in range(self.n_envs) if latest[env].tobytes() != part[env].tobytes())
        return sorted(reset)

    def _keep(self, env: int) -> int:
        """Move what followed the newest row of an environment to a place of its own."""
        if not self._free:
            self._make_room(max(self.n_envs, len(self.apart) // 64))
        place = self._free.pop()
        for part in self.pool.values():
            part[place] = part[env]
        return place

    def _make_room(self, more: int) -> None:
        places = 0
        for name, part in self.pool.items():
            places = len(part)
            self.pool[name] = np.concatenate([part, np.zeros((more, *part.shape[1:]), part.dtype)])
        self._free.extend(range(places + more - 1, places - 1, -1))

    def _named(self, obs: Observations) -> dict[str, NDArray]:
        given = obs if isinstance(obs, dict) else {PLAIN: obs}
        # Discrete observations of several environments come as [n_envs]; they are stored as [n_envs, 1].
        return {name: np.asarray(given[name], dtype).reshape(shape) for name, (dtype, shape) in self._given.items()}

    def _unnamed(self, parts: dict[str, NDArray]) -> Observations:
        return parts[PLAIN] if self.plain else parts

    def _flat(self, column: NDArray) -> NDArray:
        # `take` on a flat view copies rows several times faster than indexing with two arrays
        return column.reshape(self.size * self.n_envs, *column.shape[2:])
