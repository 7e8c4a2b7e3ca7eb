"""Recorded transitions, grouped into episodes: what learners of rules read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from nser.errors import NserError
from nser.grounding.steps import Steps

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class TrajectoryError(NserError, ValueError):
    """Arrays that do not fit together as transitions."""


@dataclass(frozen=True)
class Trajectories:
    """`N` transitions in time order; the rows of one episode stand together.

    observations, next_observations: [N, D]
    actions:    [N] int64 for discrete actions, [N, A] float otherwise
    rewards:    [N]
    terminated: [N], the environment ended here; a time limit is no termination
    episodes:   [N] int64, one number for each episode
    finished:   [N], the last row of an episode that is over (terminated or cut by a time limit); an episode
                without such a row is still running, or lost its beginning to the ring buffer
    """

    observations: Floats
    actions: NDArray
    rewards: Floats
    next_observations: Floats
    terminated: Bools
    finished: Bools
    episodes: Ints

    def __post_init__(self) -> None:
        rows = len(self.observations)
        for name in ("actions", "rewards", "next_observations", "terminated", "finished", "episodes"):
            found = len(getattr(self, name))
            if found != rows:
                raise TrajectoryError(f"{name} has {found} rows, expected {rows}, as many as observations")

    def __len__(self) -> int:
        return len(self.observations)

    def __getitem__(self, rows: slice | NDArray) -> Trajectories:
        return Trajectories(
            self.observations[rows],
            self.actions[rows],
            self.rewards[rows],
            self.next_observations[rows],
            self.terminated[rows],
            self.finished[rows],
            self.episodes[rows],
        )

    @cached_property
    def starts(self) -> Ints:
        """[E] first row of each episode."""
        if not len(self):
            return np.zeros(0, np.int64)
        changes = np.r_[True, self.episodes[1:] != self.episodes[:-1]]
        return np.asarray(np.flatnonzero(changes), np.int64)

    @cached_property
    def lengths(self) -> Ints:
        """[E] rows of each episode."""
        return np.asarray(np.diff(np.append(self.starts, len(self))), np.int64)

    @cached_property
    def numbers(self) -> Ints:
        """[N] 0, 1, … : the place of each row's episode in `starts`."""
        return np.repeat(np.arange(len(self.starts)), self.lengths).astype(np.int64)

    @cached_property
    def complete(self) -> Bools:
        """[E] whether the episode is over."""
        if not len(self):
            return np.zeros(0, np.bool_)
        return np.logical_or.reduceat(self.finished, self.starts)

    @cached_property
    def returns(self) -> Floats:
        """[E] undiscounted return of each episode."""
        return np.add.reduceat(self.rewards, self.starts) if len(self) else np.zeros(0)

    def returns_to_go(self, gamma: float) -> Floats:
        """[N] discounted sum of the rewards from each row to the end of its episode."""
        result = np.zeros(len(self))
        ahead = 0.0
        last = np.zeros(len(self), np.bool_)
        if len(self):
            last[self.starts + self.lengths - 1] = True
        rewards, ends = self.rewards.tolist(), last.tolist()
        for row in range(len(self) - 1, -1, -1):
            ahead = rewards[row] + gamma * (0.0 if ends[row] else ahead)
            result[row] = ahead
        return result

    def only_complete(self) -> Trajectories:
        """The episodes that are over."""
        return self[self.complete[self.numbers]]

    def iterate(self) -> Iterator[Trajectories]:
        """One episode after the other."""
        for start, length in zip(self.starts, self.lengths, strict=True):
            yield self[start : start + length]

    def steps(self) -> Steps:
        """The same rows as tensors for the evaluator."""
        return as_steps(self.observations, self.actions, self.episodes)

    def next_steps(self) -> Steps:
        """The states that followed, each without neighbours; their actions are not known and are -1."""
        rows = np.arange(len(self))
        return as_steps(self.next_observations, np.full(len(self), -1), rows)


FIELDS = tuple(item.name for item in fields(Trajectories))


def joined(parts: Sequence[Trajectories]) -> Trajectories:
    """Several trajectories, one after the other; equal episode numbers at a seam would become one episode.

    Raises `TrajectoryError` where observations or actions differ in shape.
    """
    try:
        return Trajectories(*(np.concatenate([getattr(part, name) for part in parts]) for name in FIELDS))
    except ValueError as error:
        raise TrajectoryError(f"trajectories don't fit together: {error}") from error


def as_steps(observations: Floats, actions: NDArray, episodes: NDArray) -> Steps:
    """NumPy rows as `Steps`: observations flattened to [T, D] float32; discrete actions [T], several of them [T, A]."""
    flat = observations.reshape(len(observations), math.prod(observations.shape[1:]))
    if actions.dtype.kind in "iu":
        one = actions.size == len(actions)
        actions = (actions.reshape(len(actions)) if one else actions).astype(np.int64)
    return Steps(
        torch.from_numpy(np.ascontiguousarray(flat, dtype=np.float32)),
        torch.from_numpy(np.ascontiguousarray(actions)),
        torch.from_numpy(np.ascontiguousarray(episodes, dtype=np.int64)),
    )
