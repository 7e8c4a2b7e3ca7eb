"""How rules are fitted: one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Objective = Literal["correlation", "bce"]


@dataclass(frozen=True)
class FitSettings:
    """Settings of one fit.

    objective:     what thresholds follow: the correlation of firing and outcome, or binary cross-entropy of the
                   firing against `outcome > 0` with a floor under the support
    iterations:    steps of gradient ascent on the soft firings
    rate:          length of such a step, as a share of the feature's observed range
    sharpness:     k of the soft comparison at the first and at the last step
    support_floor: share of a rule's support at the start that `bce` must leave it
    least_firings: a rule that fires on fewer steps is retired
    penalty:       of the weights, as a share of the smallest L1 penalty that would make all of them 0
    """

    objective: Objective = "correlation"
    iterations: int = 120
    rate: float = 0.02
    sharpness: tuple[float, float] = (10.0, 30.0)
    support_floor: float = 0.5
    least_firings: int = 10
    penalty: float = 0.02

    def __post_init__(self) -> None:
        if self.objective not in ("correlation", "bce"):
            raise ValueError(f"found objective {self.objective!r}, expected correlation or bce")
        for name in ("iterations", "least_firings"):
            if getattr(self, name) < 1:
                raise ValueError(f"found {name} {getattr(self, name)}, expected at least 1")
        for name in ("rate", "support_floor", "penalty"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"found {name} {getattr(self, name)}, expected a share in [0, 1]")
        if not 0 < self.sharpness[0] <= self.sharpness[1]:
            raise ValueError(f"found sharpness {self.sharpness}, expected two numbers above 0, the second not smaller")
