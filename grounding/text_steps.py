"""Rollouts and turns as the evaluator reads them: rows of objects in place of rows of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from nser.grounding.errors import UngroundedError
from nser.grounding.steps import Steps
from nser.grounding.transcripts import Transcript, Turn


@dataclass(frozen=True, slots=True)
class TextSteps(Steps):
    """`T` rollouts, or `T` turns with those of one rollout together; `observations` [T, 0] and `actions` are blank.

    `items` [T] are what predicates over rollouts or turns are asked about.
    """

    items: tuple[Transcript | Turn, ...] = ()

    def __getitem__(self, rows: slice) -> TextSteps:
        return TextSteps(self.observations[rows], self.actions[rows], self.episodes[rows], self.items[rows])


def text_steps(rollouts: Sequence[Transcript], sort: str) -> TextSteps:
    """The rows of a sort: each rollout by itself for `rollout`, every turn of each for `turn`."""
    items: tuple[Transcript | Turn, ...]
    if sort == "rollout":
        items, numbers = tuple(rollouts), torch.arange(len(rollouts))
    elif sort == "turn":
        items = tuple(turn for rollout in rollouts for turn in rollout.turns)
        lengths = torch.tensor([len(rollout.messages) for rollout in rollouts], dtype=torch.int64)
        numbers = torch.repeat_interleave(lengths)
    else:
        raise UngroundedError(f"found rules over {sort}, expected rollout or turn: texts have no {sort}s")
    return TextSteps(torch.zeros(len(items), 0), torch.zeros(len(items), dtype=torch.int64), numbers, items)


def items_of(steps: Steps, predicate: str) -> tuple[Transcript | Turn, ...]:
    """The rollouts or turns of some rows. Raises `UngroundedError` for rows of numbers."""
    if not isinstance(steps, TextSteps):
        raise UngroundedError(
            f"{predicate} is asked about numbers, expected rollouts or turns as `text_steps` gives them"
        )
    return steps.items
