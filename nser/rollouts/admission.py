"""What a store says about what came in and what it handed out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from nser.replay import Draw
from nser.replay.types import Floats, Ints
from nser.rollouts.record import Rollout

Reason = Literal["duplicate", "zero signal", "too old", "nothing to train on", "no room"]


@dataclass(frozen=True)
class Admission:
    """What became of the rollouts of one ``admit``.

    - ``slots`` int64 (n,): where the items of the admitted rollouts are, in their order (of a store of turns one
      for each turn);
    - ``refused``: reason → how many rollouts;
    - ``by_task``: task → (admitted, refused).
    """

    slots: Ints
    refused: Mapping[Reason, int]
    by_task: Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class Replayed:
    """What one draw of a store gave; hand it back to ``RolloutStore.update``.

    - ``rollouts``: n of them, in no meaningful order, ``uses`` counting this replay;
    - ``weights`` float64 (n,) > 0: importance weights, 1 where the law corrects nothing;
    - ``draw``: slots, generations, probabilities, and ``ages``: the store's version minus the version that
      generated the first token.
    """

    rollouts: tuple[Rollout, ...]
    weights: Floats
    draw: Draw

    def __len__(self) -> int:
        return len(self.rollouts)


def admission(rollouts: Sequence[Rollout], refused: Mapping[int, Reason], slots: Ints) -> Admission:
    """The account of ``rollouts`` of which those at the positions in ``refused`` were not stored in ``slots``."""
    reasons: dict[Reason, int] = {}
    by_task: dict[str, tuple[int, int]] = {}
    for position, rollout in enumerate(rollouts):
        reason = refused.get(position)
        yes, no = by_task.get(rollout.task, (0, 0))
        by_task[rollout.task] = (yes + 1, no) if reason is None else (yes, no + 1)
        if reason is not None:
            reasons[reason] = reasons.get(reason, 0) + 1
    return Admission(slots, reasons, by_task)
