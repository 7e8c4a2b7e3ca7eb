"""Numbers that change with the index's clock: λ, β and η of a law may each be one.

A schedule is frozen, a pure function of the clock, and goes through JSON, so a resumed run continues it
exactly.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from nser.replay.errors import LawError

Kind = Literal["constant", "linear", "annealed"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """A number that goes from ``start`` to ``stop`` as the clock goes on. Use the three functions below.

    Fields: ``kind``; ``start``, ``stop`` (finite); ``steps`` > 0, in units of the clock: the length of a
    linear schedule, the half-life of an annealed one. Raises ``LawError``.
    """

    kind: Kind
    start: float
    stop: float
    steps: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise LawError("schedule.kind", self.kind, f"one of {', '.join(get_args(Kind))}", "Choose one of them.")
        for name in ("start", "stop", "steps"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise LawError(f"schedule.{name}", value, "a finite number", "Give a plain number.")
        if self.steps <= 0:
            raise LawError("schedule.steps", self.steps, "a number > 0", "Use constant(stop) for a jump.")

    def fraction(self, clock: int) -> float:
        """How much of the way from ``start`` to ``stop`` is done at ``clock``, in [0, 1]."""
        if self.kind == "linear":
            return min(max(clock / self.steps, 0.0), 1.0)
        if self.kind == "annealed":
            return float(1.0 - 0.5 ** (max(clock, 0) / self.steps))
        return 0.0

    def __call__(self, clock: int) -> float:
        """The value at ``clock``."""
        return self._between(self.fraction(clock))

    def stair(self, clock: int, levels: int = 64) -> float:
        """The value at ``clock``, its fraction rounded to one of ``levels`` + 1 stairs.

        For what is dear to change: it changes at most ``levels`` times, and still depends on the clock alone.
        """
        return self._between(round(self.fraction(clock) * levels) / levels)

    def _between(self, fraction: float) -> float:
        if fraction == 1.0:
            return float(self.stop)
        return float(self.start + (self.stop - self.start) * fraction)

    @property
    def low(self) -> float:
        """The smallest value that it takes or approaches."""
        return min(self.start, self.stop) if self.kind != "constant" else self.start

    @property
    def high(self) -> float:
        """The largest value that it takes or approaches."""
        return max(self.start, self.stop) if self.kind != "constant" else self.start

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, and back by ``Schedule.from_dict``."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Schedule":
        """The schedule of ``to_dict``; raises ``LawError`` for missing or unknown fields."""
        if set(data) != {"kind", "start", "stop", "steps"}:
            raise LawError("schedule", sorted(data), "kind, start, stop, steps", "Write it with Schedule.to_dict.")
        return cls(**data)


def constant(value: float) -> Schedule:
    """Always ``value``; a plain float in a law says the same.

    >>> constant(0.4)(10**6)
    0.4
    """
    return Schedule("constant", value, value)


def linear(start: float, stop: float, steps: float) -> Schedule:
    """From ``start`` at clock 0 straight to ``stop`` at clock ``steps``, then constant.

    >>> [linear(0.0, 1.0, 4)(clock) for clock in (0, 1, 4, 9)]
    [0.0, 0.25, 1.0, 1.0]
    """
    return Schedule("linear", start, stop, steps)


def annealed(start: float, stop: float, half_life: float) -> Schedule:
    """From ``start`` towards ``stop``, half of the rest every ``half_life`` steps; needs no known end.

    >>> [annealed(0.0, 1.0, 10)(clock) for clock in (0, 10, 20)]
    [0.0, 0.5, 0.75]
    """
    return Schedule("annealed", start, stop, half_life)
