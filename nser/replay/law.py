"""The one law that says how probable each stored item is; the six methods are six settings of it.

For an eligible item i with signal σ_i ≥ 0, birth step t_i and relevance s_i ∈ [0, 1], at clock t::

    b_i = σ_i + ε                                     base signal
    g_i = (b_i · exp(−(t − t_i)/τ))^α                 weight without rules
    r_i = 1 + η s_i           (η = ∞: r_i = s_i)      rule factor
    P_i ∝ g_i · (1 + c · (r_i^α − 1))                 c = 1 unless the guard holds the rules back
    q_i = λ P_i + (1 − λ) / N                         N = number of eligible items
    w_i = (N · q_i)^(−β) / maximum                    importance weight

With c = 1 that is P ∝ (b · exp(−age/τ) · r)^α.

**The guard.** P is a mixture of the law without rules, g/G, and of the bonus h/H with
h_i = g_i (r_i^α − 1), where G = Σ g and H = Σ h (η = ∞: h_i = g_i s_i^α and the part g/G is absent). The
share of expected draws that is owed to the rules is therefore exactly λ H / (G + H). When it would pass
``max_rule_share``, the bonus is scaled by the c < 1 that brings it to that share. c scales η itself when
α = 1, and to first order in η s otherwise; whatever c is, P, q and w are those of the density that is drawn
from. With η = ∞ and ``max_rule_share`` = m the law is the mixture (1 − m) g/G + m h/H: rules as a component.

**What the weight undoes** (``correct``): ``"full"`` uses q, so TD, age and rules are undone; ``"signal"``
uses q° = λ g_i/G + (1 − λ)/N, the density with relevance removed (r = 1), so TD and age are undone and the
rules' tilt is kept; ``"none"`` gives w = 1. If every eligible item has weight zero, q = q° = 1/N.

**The maximum** (``normalise``): ``"batch"`` the largest weight of the draw; ``"buffer"`` the largest weight
of any item that could be drawn; ``"none"`` 1.

Sources: PER, arXiv 1511.05952, eq. 1 and §3.4; age decay, arXiv 2604.16918; mixture, arXiv 2602.01915;
relevance, guard and ``correct`` are this toolkit's own.
"""

import math
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from nser.replay.errors import LawError
from nser.replay.schedule import Schedule

Correct = Literal["full", "signal", "none"]
Normalise = Literal["batch", "buffer", "none"]
Value = float | Schedule

MAX_ALPHA = 8.0
MAX_ETA = 1e6


@dataclass(frozen=True, slots=True)
class Law:
    """How draws and weights follow from signal, age and relevance; see the module for the equations.

    Fields (range, default):

    - ``alpha`` [0, 8], 0.6: how much the weight counts; 0 is uniform.
    - ``epsilon`` [0, 1e6], 1e-6: floor of the base signal; 0 means that an item of signal 0 is drawn by the uniform
      part alone.
    - ``tau`` > 0 or inf, inf: decay of the base signal, in steps of the clock. The sampling weight halves
      every ``half_life`` = τ ln 2 / α steps, not every τ ln 2.
    - ``max_age`` ≥ 0 or None, None: an item is eligible while its age is at most this.
    - ``mix`` λ [0, 1], 1: share of draws by the law; the rest is uniform. Float or schedule.
    - ``beta`` ≥ 0, 0.4: strength of the importance weight. Float or schedule.
    - ``eta`` [0, 1e6] or inf, 0: strength of relevance. Float or schedule (which η follows in 64 stairs).
    - ``correct`` "full" | "signal" | "none": what the weight undoes. "signal".
    - ``normalise`` "batch" | "buffer" | "none": the maximum that weights are divided by. "batch".
    - ``max_rule_share`` [0, 1], 0.5: largest share of expected draws owed to relevance.
    - ``default_relevance`` [0, 1], 0: relevance of an item that nobody has scored yet.
    - ``stratified``, True: one draw from each of ``batch`` equal strata of the density: same expectation, less
      variance. Draws without replacement are never stratified.

    Relevance never lowers a weight while η is finite: there is no demotion. Raises ``LawError``.
    """

    alpha: float = 0.6
    epsilon: float = 1e-6
    tau: float = math.inf
    max_age: int | None = None
    mix: Value = 1.0
    beta: Value = 0.4
    eta: Value = 0.0
    correct: Correct = "signal"
    normalise: Normalise = "batch"
    max_rule_share: float = 0.5
    default_relevance: float = 0.0
    stratified: bool = True

    def __post_init__(self) -> None:
        _in_range("alpha", self.alpha, 0.0, MAX_ALPHA, "0.6 is usual, 0 is uniform.")
        _in_range("epsilon", self.epsilon, 0.0, 1e6, "1e-6 is usual.")
        _in_range("mix", self.mix, 0.0, 1.0, "1 draws by the law alone, 0 uniformly.")
        _in_range("beta", self.beta, 0.0, 1e3, "0 gives no correction, 1 the full one.")
        if self.eta != math.inf:
            _in_range("eta", self.eta, 0.0, MAX_ETA, "4 is usual; math.inf draws related items alone.")
        _in_range("max_rule_share", self.max_rule_share, 0.0, 1.0, "0.5 is usual, 1 lifts the guard.")
        _in_range("default_relevance", self.default_relevance, 0.0, 1.0, "0 is usual.")
        if not _is_number(self.tau) or not self.tau > 0:
            raise LawError("tau", self.tau, "a number > 0, or math.inf", "Use math.inf for no decay.")
        age = self.max_age
        if age is not None and (isinstance(age, bool) or not isinstance(age, int) or age < 0):
            raise LawError("max_age", age, "an integer ≥ 0, or None", "Use None for no eviction.")
        for name, choices in (("correct", get_args(Correct)), ("normalise", get_args(Normalise))):
            if getattr(self, name) not in choices:
                raise LawError(name, getattr(self, name), f"one of {', '.join(choices)}", "Choose one of them.")
        if not isinstance(self.stratified, bool):
            raise LawError("stratified", self.stratified, "True or False", "Choose one of them.")

    @property
    def rate(self) -> float:
        """α/τ: how fast the logarithm of a sampling weight falls, per step of the clock."""
        return self.alpha / self.tau

    @property
    def half_life(self) -> float:
        """Steps in which a sampling weight halves: τ ln 2 / α.

        >>> round(Law(alpha=0.6, tau=500).half_life)
        578
        """
        return math.log(2) / self.rate if self.rate > 0 else math.inf

    @property
    def uses_rules(self) -> bool:
        """Whether relevance can change a draw at all."""
        high = self.eta.high if isinstance(self.eta, Schedule) else self.eta
        return high > 0 and self.alpha > 0 and self.max_rule_share > 0

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, infinities as the text "inf"; back by ``Law.from_dict``.

        >>> Law.from_dict(Law(tau=500).to_dict()) == Law(tau=500)
        True
        """
        return {field.name: _write(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Law":
        """The law of ``to_dict``; fields left out take their defaults. Raises ``LawError`` for unknown ones."""
        known = [field.name for field in fields(cls)]
        for name, value in data.items():
            if name not in known:
                raise LawError(name, value, f"one of the fields {', '.join(known)}", "Leave it out.")
        return cls(**{name: _read(value) for name, value in data.items()})


def value_at(value: Value, clock: int) -> float:
    """The number that a float or a schedule gives at ``clock``."""
    return value(clock) if isinstance(value, Schedule) else value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _in_range(name: str, value: object, low: float, high: float, way_out: str) -> None:
    ends = (value.low, value.high) if isinstance(value, Schedule) else (value,)
    for end in ends:
        if not isinstance(end, int | float) or isinstance(end, bool) or not low <= end <= high:
            raise LawError(name, value, f"a number in [{low:g}, {high:g}]", way_out)


def _write(value: object) -> object:
    if isinstance(value, Schedule):
        return value.to_dict()
    return "inf" if value == math.inf else value


def _read(value: object) -> Any:
    if isinstance(value, dict):
        return Schedule.from_dict(value)
    return math.inf if value == "inf" else value
