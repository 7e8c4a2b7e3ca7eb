"""How rules are induced: one frozen value, stored with the run."""

from __future__ import annotations

from dataclasses import dataclass

from nser.induce.labels import LABELS, Label


@dataclass(frozen=True)
class InductionSettings:
    """Settings of one induction.

    label:        what a transition was worth, see `nser.induce.labels`
    gamma:        discount of returns and of progress, in (0, 1]
    max_rules:    rules kept at the most
    max_literals: literals of a body at the most, the action not counted
    min_firings:  a rule that fired less often in the data is no evidence
    beam:         bodies kept at each length of the search
    held_out:     share of the episodes that no proposal has seen, in (0, 1)
    window:       newest transitions that are read; older ones tell of an agent that is gone
    curious:      judge by novelty instead of the label while fewer than `min_firings` episodes are good
    """

    label: Label = "progress"
    gamma: float = 0.99
    max_rules: int = 12
    max_literals: int = 4
    min_firings: int = 10
    beam: int = 24
    held_out: float = 0.34
    window: int = 50_000
    curious: bool = False

    def __post_init__(self) -> None:
        if self.label not in LABELS:
            raise ValueError(f"found label {self.label!r}, expected one of {', '.join(LABELS)}")
        if not 0 < self.gamma <= 1:
            raise ValueError(f"found gamma {self.gamma}, expected a discount in (0, 1]")
        if not 0 < self.held_out < 1:
            raise ValueError(f"found held_out {self.held_out}, expected a share between 0 and 1")
        for name in ("max_rules", "max_literals", "min_firings", "beam", "window"):
            if getattr(self, name) < 1:
                raise ValueError(f"found {name} {getattr(self, name)}, expected at least 1")
