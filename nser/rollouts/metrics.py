"""What a store did so far, in numbers: ages, reuse, admission, bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


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

    - ``version``, ``items`` that can be drawn, ``capacity``, ``bytes`` of tokens, log-probs and metadata stored;
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
