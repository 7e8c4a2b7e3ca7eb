"""What all members of a stack have stored: one ring of transitions for each, written in lockstep."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nser.experience.trajectories import Trajectories, as_steps
from nser.grounding.steps import Steps

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Transitions:
    """One transition of each of `S` members, or [S, B] of them.

    observations, next_observations: [S, …, D];  actions, rewards: [S, …]
    terminated: [S, …], the environment ended here;  finished: the episode did, be it by a time limit
    """

    observations: Floats
    actions: Ints
    rewards: Floats
    next_observations: Floats
    terminated: Bools
    finished: Bools


class Ring:
    """Transitions of `members`, the newest `capacity` of each; slot k of all of them was written at one time."""

    def __init__(self, members: int, capacity: int, width: int) -> None:
        shape = (members, capacity)
        self.capacity = capacity
        self.observations = np.zeros((*shape, width), np.float32)
        self.next_observations = np.zeros((*shape, width), np.float32)
        self.actions = np.zeros(shape, np.int64)
        self.rewards = np.zeros(shape, np.float32)
        self.terminated = np.zeros(shape, np.bool_)
        self.finished = np.zeros(shape, np.bool_)
        self.episodes = np.zeros(shape, np.int64)
        self.stored = 0  # in all, overwritten ones too
        self._running = np.zeros(members, np.int64)
        self._offsets = (np.arange(members) * capacity)[:, None]

    def __len__(self) -> int:
        return min(self.stored, self.capacity)

    def add(self, one: Transitions) -> None:
        """Store one transition of each member."""
        slot = self.stored % self.capacity
        self.observations[:, slot] = one.observations
        self.next_observations[:, slot] = one.next_observations
        self.actions[:, slot] = one.actions
        self.rewards[:, slot] = one.rewards
        self.terminated[:, slot] = one.terminated
        self.finished[:, slot] = one.finished
        self.episodes[:, slot] = self._running
        self._running += one.finished
        self.stored += 1

    def gather(self, slots: Ints) -> Transitions:
        """The transitions in slots [S, B]."""
        at = slots + self._offsets
        return Transitions(
            _rows(self.observations, at),
            self.actions.take(at),
            self.rewards.take(at),
            _rows(self.next_observations, at),
            self.terminated.take(at),
            self.finished.take(at),
        )

    def slots(self, newest: int | None = None) -> Ints:
        """[n] slots of the newest transitions (all that are kept, by default) in the order of time."""
        count = len(self) if newest is None else min(newest, len(self))
        return np.arange(self.stored - count, self.stored) % self.capacity

    def steps(self, member: int, slots: Ints) -> Steps:
        """Transitions of one member in these slots [T], as rules read them."""
        return as_steps(self.observations[member, slots], self.actions[member, slots], self.episodes[member, slots])

    def trajectories(self, member: int, newest: int) -> Trajectories:
        """One member's newest transitions, without the oldest episode where its beginning may be gone."""
        slots = self.slots(newest)
        episodes = self.episodes[member]
        if len(slots) < self.stored:
            slots = slots[episodes[slots] != episodes[slots[0]]]
        return Trajectories(
            self.observations[member, slots],
            self.actions[member, slots],
            self.rewards[member, slots],
            self.next_observations[member, slots],
            self.terminated[member, slots],
            self.finished[member, slots],
            episodes[slots],
        )


def _rows(array: Floats, at: Ints) -> Floats:
    # `take` on a flat view copies rows several times faster than indexing with two arrays
    return array.reshape(-1, array.shape[-1]).take(at, axis=0)
