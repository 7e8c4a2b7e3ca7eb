"""Episodes with a planted rule, so that a test knows what is right: a chain of rooms that only one action leaves."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from nser.experience.trajectories import Trajectories
from nser.grounding.steps import Steps
from nser.grounding.vocabulary import Vocabulary, number, predicate

ACTIONS = ("wait", "push", "pull", "lift")
ROOMS = 4
LEAVES = (1, 2, 3)  # the action that leaves room 0, 1 and 2; room 3 is the goal


@predicate("room")
def inside(steps: Steps, room: str) -> Tensor:
    """The agent is in this room."""
    return (steps.observations[:, 0] == int(room[1:])).float()


@predicate()
def noise(steps: Steps) -> Tensor:
    """A coin that has no part in anything."""
    return steps.observations[:, 1]


@number(unit="m")
def place(steps: Steps) -> Tensor:
    """How far the agent has come."""
    return steps.observations[:, 0]


CHAIN = Vocabulary("chain", (inside, noise), {"room": tuple(f"r{i}" for i in range(ROOMS))}, ACTIONS)
NUMBERS = Vocabulary("numbers", (place,), actions=ACTIONS)


def play(episodes: int, seed: int, limit: int = 12) -> Trajectories:
    """Random play; an episode ends with reward 1 in the last room, or unrewarded at the limit."""
    generator = np.random.default_rng(seed)
    rows: list[tuple[int, int, int, int, float, bool, bool, int, int]] = []
    for episode in range(episodes):
        room, coin = 0, int(generator.integers(2))
        for step in range(limit):
            action = int(generator.integers(len(ACTIONS)))
            after = room + (action == LEAVES[room])
            new_coin = int(generator.integers(2))
            won = after == ROOMS - 1
            over = won or step == limit - 1
            rows.append((room, coin, after, new_coin, float(won), won, over, action, episode))
            room, coin = after, new_coin
            if over:
                break
    table = np.array(rows, dtype=np.float64)
    return Trajectories(
        table[:, :2].astype(np.float32),
        table[:, 7].astype(np.int64),
        table[:, 4],
        table[:, 2:4].astype(np.float32),
        table[:, 5] > 0,
        table[:, 6] > 0,
        table[:, 8].astype(np.int64),
    )


def steps_in(room: int, action: int) -> Steps:
    """One step in a room."""
    return Steps(torch.tensor([[float(room), 0.0]]), torch.tensor([action]), torch.tensor([0]))
