"""A small vocabulary whose degrees are plain columns, for tests of the evaluator."""

from __future__ import annotations

import torch
from torch import Tensor

from nser.grounding.steps import Steps
from nser.grounding.vocabulary import Vocabulary, number, predicate

ACTIONS = ("left", "right", "forward")


@predicate()
def hot(steps: Steps) -> Tensor:
    """The stove is hot."""
    return steps.observations[:, 0]


@predicate("thing")
def near(steps: Steps, thing: str) -> Tensor:
    """The agent stands beside the thing."""
    return steps.observations[:, 1 if thing == "cup" else 2]


@number(unit="m", low=-2.0, high=2.0)
def height(steps: Steps) -> Tensor:
    """Height of the hand."""
    return steps.observations[:, 3]


@number(unit="s")
def clock(steps: Steps) -> Tensor:
    """Time since the start."""
    return steps.observations[:, 4]


WORLD = Vocabulary("world", (hot, near, height, clock), {"thing": ("cup", "pan")}, ACTIONS)


def random_steps(rows: int, seed: int, crisp: bool = False) -> Steps:
    """Random degrees and numbers, in episodes of random lengths."""
    generator = torch.Generator().manual_seed(seed)
    degrees = torch.rand(rows, 3, generator=generator)
    if crisp:
        degrees = degrees.round()
    numbers = 4 * torch.rand(rows, 2, generator=generator) - 2
    actions = torch.randint(len(ACTIONS), (rows,), generator=generator)
    ends = torch.rand(rows, generator=generator) < 0.3
    return Steps(torch.cat([degrees, numbers], 1), actions, ends.cumsum(0))
