"""Greedy evaluation of all members of a stack, all their episodes side by side."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from nser.envs.grid import GridWorld
from nser.runs.environment import UNENDING, evaluation_env, limit_of
from nser.runs.evaluate import Evaluation
from nser.study.world import Observations, World

Greedy = Callable[[Observations], NDArray[np.int64]]


@dataclass
class _Episode:
    """One episode that is being played.

    limit: its length should it go round for ever;  rounds: whether a state that comes back means that it does
    """

    env: gymnasium.Env[Any, Any]
    limit: int
    rounds: bool
    earned: float = 0.0
    length: int = 0
    success: bool | None = None
    seen: set[Hashable] = field(default_factory=set)

    def step(self, action: int) -> tuple[Any, bool]:
        """Act; the observation, and whether the episode is over."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.earned += float(reward)
        self.length += 1
        if terminated or truncated:
            self.success = info.get("is_success")
            return observation, True
        if self.rounds and self._been_here():
            self.length, self.success = self.limit, False
        return observation, self.length >= self.limit

    def _been_here(self) -> bool:
        before = len(self.seen)
        self.seen.add(grid_state(self.env.unwrapped))
        return len(self.seen) == before


class GreedyEvaluations:
    """Greedy episodes of all members side by side; each member's layouts come from its own seed, and stay the same.

    In MiniGrid's worlds nothing happens by chance, and nothing is earned but at the end. A greedy policy that comes
    back to a state goes round until the time limit, so that the episode need not be played on: it is counted as it
    would have ended. That is most of the time of policies that have not learnt yet.

    whole: play such episodes to their ends all the same
    """

    def __init__(self, world: World, seeds: Sequence[int], episodes: int, *, whole: bool = False) -> None:
        self.world, self.episodes = world, episodes
        self.envs = [[evaluation_env(world.env) for _ in range(episodes)] for _ in seeds]
        self._seeds = [np.random.SeedSequence(seed).generate_state(episodes).tolist() for seed in seeds]
        self.rounds = not whole and isinstance(self.envs[0][0].unwrapped, GridWorld)

    def run(self, greedy: Greedy) -> list[Evaluation]:
        """One evaluation for each member; `greedy` is asked for the actions [S, E] of all at once."""
        shape = (len(self.envs), self.episodes)
        observations = np.zeros((*shape, self.world.width), np.float32)
        episodes = [[_Episode(env, limit_of(env) or UNENDING, self.rounds) for env in envs] for envs in self.envs]
        running = list(np.ndindex(shape))
        for member, number in running:
            found, _ = self.envs[member][number].reset(seed=self._seeds[member][number])
            observations[member, number] = self.world.stored(found)
        while running:
            actions = greedy(observations).tolist()
            still = []
            for member, number in running:
                found, over = episodes[member][number].step(actions[member][number])
                observations[member, number] = self.world.stored(found)
                if not over:
                    still.append((member, number))
            running = still
        return [_summary(one) for one in episodes]

    def close(self) -> None:
        """Close the environments."""
        for envs in self.envs:
            for env in envs:
                env.close()


def grid_state(world: Any) -> Hashable:
    """Everything that decides what follows in a MiniGrid world, but for its clock.

    Things are told apart by identity: each lives as long as its layout.
    """
    doors = tuple(
        (cell.is_open, cell.is_locked) for cell in world.grid.grid if cell is not None and cell.type == "door"
    )
    return world.agent_pos, world.agent_dir, id(world.carrying), tuple(map(id, world.grid.grid)), doors


def _summary(episodes: Sequence[_Episode]) -> Evaluation:
    known = [one.success for one in episodes if one.success is not None]
    return Evaluation(
        len(episodes),
        float(np.mean([one.earned for one in episodes])),
        float(np.mean([one.length for one in episodes])),
        float(np.mean(known)) if known else None,
    )
