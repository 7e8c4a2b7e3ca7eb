"""What a store did so far, in numbers: ages, reuse, admission, bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import ConfigDict, Field

from nser.replay.types import Floats, Ints

AGE_BINS = 16  # the last one holds all ages from 2¹⁴


@dataclass(frozen=True)
class TaskFigures:
    """One task's rollouts: how many were ``admitted``, and how many ``refused`` for which reason."""

    admitted: int
    refused: Mapping[str, int]

    @property
    def rate(self) -> float:
        """Share admitted, in [0, 1]; 0 before any came."""
        offered = self.admitted + sum(self.refused.values())
        return self.admitted / offered if offered else 0.0


@dataclass(frozen=True)
class StoreMetrics:
    """The state of a store and what it did since it was made; ages in versions of the trainer.

    - ``version``, ``items`` that can be drawn, ``capacity``;
    - ``bytes`` written of tokens, log-probs and texts, and ``bytes_allocated`` for them, in memory or files;
    - ``drawn`` so far; ``age_mean``, ``age_max`` of these; ``age_counts``: how many had an age of 0, 1, 2–3, 4–7, …;
    - ``last_age_mean``, ``last_age_max``, ``last_effective_size`` (Σw)²/Σw² of the last draw;
    - ``uses_mean``, ``uses_max`` of the items held; ``gone`` items evicted so far and ``gone_unused`` the share of
      them that was never replayed, ``gone_uses_mean`` their mean number of replays;
    - ``tasks``: task → ``TaskFigures``;
    - ``effective_size`` 1/Σq² of the law at present; ``rule_share`` of expected draws owed to rules;
      ``scored`` share of items that rules have scored.
    """

    version: int
    items: int
    capacity: int
    bytes: int
    bytes_allocated: int
    drawn: int
    age_mean: float
    age_max: int
    age_counts: tuple[int, ...]
    last_age_mean: float
    last_age_max: int
    last_effective_size: float
    uses_mean: float
    uses_max: int
    gone: int
    gone_unused: float
    gone_uses_mean: float
    tasks: Mapping[str, TaskFigures]
    effective_size: float
    rule_share: float
    scored: float

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self)

    def scalars(self) -> dict[str, float]:
        """The plain numbers alone, for a trainer's log."""
        return {name: float(value) for name, value in vars(self).items() if isinstance(value, int | float)}


@dataclass
class Counters:
    """What only grows, and the figures of the last draw; part of the checkpoint, which may come from anybody."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    drawn: int = 0
    age_sum: int = 0
    age_max: int = 0
    age_counts: Annotated[list[int], Field(min_length=AGE_BINS, max_length=AGE_BINS)] = field(
        default_factory=lambda: [0] * AGE_BINS
    )
    last_age_mean: float = 0.0
    last_age_max: int = 0
    last_effective_size: float = 0.0
    gone: int = 0
    gone_unused: int = 0
    gone_uses: int = 0
    admitted: dict[str, int] = field(default_factory=dict)
    refused: dict[str, dict[str, int]] = field(default_factory=dict)

    def note_draw(self, ages: Ints, weights: Floats) -> None:
        """Items of these ages (n,) and weights (n,) are replayed."""
        self._count(ages, 1)
        self.age_max = max(self.age_max, int(ages.max(initial=0)))
        self.last_age_mean = float(ages.mean()) if len(ages) else 0.0
        self.last_age_max = int(ages.max(initial=0))
        self.last_effective_size = effective_size(weights)

    def take_back(self, ages: Ints) -> None:
        """Items of these ages (n,) were drawn and are not replayed; the largest age so far stays."""
        self._count(ages, -1)

    def note_gone(self, uses: Ints) -> None:
        """Items that were replayed ``uses`` (n,) times are evicted."""
        self.gone += len(uses)
        self.gone_unused += int(np.count_nonzero(uses == 0))
        self.gone_uses += int(uses.sum())

    def note_offer(self, task: str, reason: str | None) -> None:
        """A rollout of ``task`` was admitted, or refused for a ``reason``."""
        if reason is None:
            self.admitted[task] = self.admitted.get(task, 0) + 1
        else:
            reasons = self.refused.setdefault(task, {})
            reasons[reason] = reasons.get(reason, 0) + 1

    def tasks(self) -> dict[str, TaskFigures]:
        """The figures of every task, by name."""
        names = sorted(self.admitted.keys() | self.refused.keys())
        return {name: TaskFigures(self.admitted.get(name, 0), dict(self.refused.get(name, {}))) for name in names}

    def _count(self, ages: Ints, sign: int) -> None:
        self.drawn += sign * len(ages)
        self.age_sum += sign * int(ages.sum())
        # The number of binary digits: 0, 1, 2 for 2–3, 3 for 4–7, …
        digits = np.minimum(np.frexp(ages.astype(np.float64))[1], AGE_BINS - 1)
        for place, count in enumerate(np.bincount(digits, minlength=AGE_BINS).tolist()):
            self.age_counts[place] += sign * count


def effective_size(weights: Floats) -> float:
    """(Σw)²/Σw² of weights (n,): as many equal weights would vary as little; 0 without any."""
    square = float(np.sum(weights * weights))
    return float(np.sum(weights)) ** 2 / square if square > 0 else 0.0
