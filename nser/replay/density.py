"""The density that a draw uses, in numbers: totals and coefficients; see ``law`` for the equations."""

import math
from typing import NamedTuple

from nser.replay.law import Law
from nser.replay.types import Floats


class Density(NamedTuple):
    """q_i = per_base · g_i + per_bonus · h_i + floor, with g and h the leaves of the two trees.

    ``eligible`` N; ``mix`` λ in force (0 when all weights are zero); ``base_total`` G and ``bonus_total`` H;
    ``rule_share`` share of expected draws owed to the rules, in force; ``wanted_share`` the same without the
    guard; ``rule_scale`` c of the law, 1 when the guard is idle; ``per_plain`` = λ/G, so that
    q°_i = per_plain · g_i + floor; ``zero``: every eligible weight is zero.
    """

    eligible: int
    mix: float
    base_total: float
    bonus_total: float
    rule_share: float
    wanted_share: float
    rule_scale: float
    per_base: float
    per_bonus: float
    per_plain: float
    floor: float
    zero: bool

    def q(self, base: Floats, bonus: Floats | None) -> Floats:
        """Probabilities (n,) of the items with these leaves (n,); ``bonus`` None means that no rule counts."""
        probability = base * self.per_base
        if bonus is not None and self.per_bonus:
            probability += bonus * self.per_bonus
        if self.floor:
            probability += self.floor
        return probability

    def without_rules(self, base: Floats) -> Floats:
        """q° (n,): the density with relevance removed."""
        return base * self.per_plain + self.floor


def density(law: Law, eligible: int, mix: float, eta: float, base: float, bonus: float) -> Density:
    """The density of ``law`` over ``eligible`` ≥ 1 items, from λ and η at this clock and the totals G and H."""
    uniform = 1.0 / eligible
    only_rules = eta == math.inf
    cap = law.max_rule_share / mix if mix > law.max_rule_share else 1.0
    wanted = _ratio(bonus, 0.0 if only_rules else base)
    if base <= 0.0 or (only_rules and wanted == 0.0 and cap == 1.0):
        # The fallback: nothing is left to tilt towards.
        return Density(eligible, 0.0, base, bonus, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, uniform, True)
    share = min(wanted, cap)
    scale = 1.0
    if share < wanted:
        scale = 0.0 if only_rules else share / (1.0 - share) * base / bonus
    # By position: names cost as much as all the arithmetic.
    return Density(
        eligible,
        mix,
        base,
        bonus,
        mix * share,
        mix * wanted,
        scale,
        mix * (1.0 - share) / base,
        mix * share / bonus if share > 0.0 else 0.0,
        mix / base,
        (1.0 - mix) * uniform,
        False,
    )


def _ratio(bonus: float, base: float) -> float:
    return bonus / (base + bonus) if bonus > 0.0 else 0.0
