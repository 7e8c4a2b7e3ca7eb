"""What a rollout store keeps, what it replays, and how a trainer corrects for it: one frozen object."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from nser.replay import Law, LawError
from nser.rollouts.errors import RolloutError

Unit = Literal["trajectory", "turn"]
Signal = Literal["advantage", "reward"]
Composition = Literal["anchored", "separate", "pool"]
Correction = Literal["decoupled", "clip"]


@dataclass(frozen=True, kw_only=True)
class StoreSettings:
    """Everything that a replay method for rollouts consists of; see ``nser.rollouts.presets`` for the published ones.

    What is stored:

    - ``capacity`` ≥ 1 items;
    - ``unit`` "trajectory": an item is a whole rollout; "turn": each assistant turn (a stretch of response tokens
      whose mask is True) is an item of its own, whose tokens alone are trained on;
    - ``zero_signal`` ≥ 0 or None: rollouts with |advantage| ≤ this everywhere teach nothing and are neither stored
      nor kept by ``plan``; None keeps all. Never "all rewards equal", which is wrong with shaped rewards.

    What is drawn:

    - ``law``: the law of the index; ages are counted in versions of the trainer. Its ``epsilon`` is the floor that
      lets items of signal 0 be drawn at all; its weights are divided by the largest of the batch;
    - ``signal`` "advantage" or "reward": the absolute value of which is the base signal;
    - ``replace``: whether one draw may hold an item twice;
    - ``composition`` of a step: "anchored" (all fresh rollouts and some replayed, one update), "separate" (a fresh
      update, then ``updates`` K ≥ 1 updates on replayed batches), "pool" (fresh and stored merged, the whole batch
      drawn from the pool);
    - ``ratio`` ρ ≥ 0: replayed rollouts of a batch, as a multiple of the fresh ones; 0 replays and stores nothing.
      Not used by "pool";
    - ``max_share`` in (0, 1]: the largest share of replayed rollouts in an update beside fresh ones;
    - ``warm_up`` ≥ 0: versions after the first admission in which nothing is replayed.

    How the trainer corrects for old policies (used by the hosts in ``nser.trainers``):

    - ``correction`` "decoupled": the proximal policy is the present one, and a truncated importance weight, at most
      ``cap`` > 0, makes up for the behaviour policy; "clip": the PPO ratio to the behaviour policy, clipped to
      [1 − ``clip_low``, 1 + ``clip_high``], which gives most old rows no gradient;
    - ``advantage_clip`` > 0 or None: replayed advantages are cut to ± this.

    Raises ``RolloutError``.
    """

    capacity: int = 30_000
    unit: Unit = "trajectory"
    zero_signal: float | None = 1e-6
    law: Law = field(default_factory=Law)
    signal: Signal = "advantage"
    replace: bool = False
    composition: Composition = "anchored"
    updates: int = 1
    ratio: float = 0.5
    max_share: float = 1 / 3
    warm_up: int = 0
    correction: Correction = "decoupled"
    cap: float = 2.0
    clip_low: float = 0.2
    clip_high: float = 0.2
    advantage_clip: float | None = None

    def __post_init__(self) -> None:
        for name, least in (("capacity", 1), ("updates", 1), ("warm_up", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise RolloutError(name, value, f"a whole number ≥ {least}", "Change the setting.")
        for name, kinds in CHOICES.items():
            if getattr(self, name) not in kinds:
                raise RolloutError(name, getattr(self, name), f"one of {', '.join(kinds)}", "Choose one of them.")
        self._check_numbers()
        if not isinstance(self.law, Law):
            raise RolloutError("law", self.law, "a Law", 'Use nser.replay.preset("per"), say.')
        if self.law.normalise != "batch" and self.law.correct != "none":
            raise RolloutError(
                "law.normalise", self.law.normalise, "'batch'", "Dividing by the buffer's maximum shrinks gradients."
            )
        if not isinstance(self.replace, bool):
            raise RolloutError("replace", self.replace, "True or False", "Choose one of them.")

    def _check_numbers(self) -> None:
        ranges = {
            "ratio": (0.0, 1e6, True),
            "max_share": (0.0, 1.0, False),
            "cap": (0.0, 1e6, False),
            "clip_low": (0.0, 1.0, True),
            "clip_high": (0.0, 1e6, True),
            "zero_signal": (0.0, 1e6, True),
            "advantage_clip": (0.0, 1e6, False),
        }
        for name, (low, high, closed) in ranges.items():
            value = getattr(self, name)
            if value is None and name in ("zero_signal", "advantage_clip"):
                continue
            number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            if not number or not low <= value <= high or (value == low and not closed):
                bracket = "[" if closed else "("
                raise RolloutError(name, value, f"a number in {bracket}{low:g}, {high:g}]", "Change the setting.")

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; back by ``StoreSettings.from_dict``.

        >>> StoreSettings.from_dict(StoreSettings(ratio=0.25).to_dict()).ratio
        0.25
        """
        return {item.name: getattr(self, item.name) for item in fields(self)} | {"law": self.law.to_dict()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> StoreSettings:
        """The settings of ``to_dict``; fields left out take their defaults. Raises ``RolloutError``."""
        known = [item.name for item in fields(cls)]
        for name, value in data.items():
            if name not in known:
                raise RolloutError(name, value, f"one of the settings {', '.join(known)}", "Leave it out.")
        try:
            law = Law.from_dict(data["law"]) if "law" in data else Law()
        except (LawError, TypeError, AttributeError) as error:
            raise RolloutError("law", data["law"], f"what Law.to_dict gives ({error})", "Write it so.") from error
        return cls(**(data | {"law": law}))


CHOICES = {
    "unit": get_args(Unit),
    "signal": get_args(Signal),
    "composition": get_args(Composition),
    "correction": get_args(Correction),
}
