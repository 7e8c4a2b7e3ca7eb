"""The published methods as settings of the one law.

What a source states is used as it stands; what it leaves **open** is this toolkit's choice, and said to be so
beside the value. Capacity, warm-up and how many items to draw belong to the host, not to the law.
"""

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from nser.replay.errors import LawError
from nser.replay.law import Law
from nser.replay.schedule import linear

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")

# PER anneals β to 1 "at the end of learning"; how long that is, only the user knows. Open: our choice.
ANNEAL_STEPS = 100_000

UNIFORM = Law(alpha=0.0, mix=0.0, beta=0.0, correct="none")
"""Every eligible item alike, no weight: the baseline."""

PER = Law(alpha=0.6, beta=linear(0.4, 1.0, ANNEAL_STEPS), correct="full")
"""Prioritized experience replay, proportional variant, arXiv 1511.05952: α 0.6, β 0.4 → 1, stratified.

Open, ours: ε = 1e-6 ("small positive constant"); the maximum over the batch; the length of the annealing.
"""

FRESHPER = Law(alpha=0.6, epsilon=1e-6, tau=500.0, beta=linear(0.4, 1.0, ANNEAL_STEPS), correct="full")
"""Freshness-aware PER, arXiv 2604.16918: PER with age decay, τ = 500 optimiser iterations (FrozenLake: 1000).

Ours: weights divided by the batch's maximum, for the published division by the buffer's shrinks every
gradient; the length of β's annealing (open).
"""

ROLLOUT_GRPO = Law(alpha=0.5, max_age=10, beta=0.0, correct="none", stratified=False)
"""Rollout-level advantage-prioritized replay, arXiv 2606.04560: P ∝ (|A| + ε)^0.5, ages up to 10, no weight.

Draw ``round(ρ·B')`` with ``replace=False`` *before* inserting the fresh survivors, so that ages are 1 … 10.
Open, ours: without replacement; ε = 1e-6.
"""

VLM_RB = Law(
    alpha=1.0,
    epsilon=0.0,
    mix=linear(0.0, 0.5, ANNEAL_STEPS),
    beta=0.0,
    eta=math.inf,
    correct="none",
    max_rule_share=1.0,
    default_relevance=1.0,
)
"""VLM-guided replay, arXiv 2602.01915: P ∝ p (discrete) or p·|δ| (continuous), λ from 0 to 0.5, no weight.

p is the relevance (η = ∞), |δ| the signal; where no signal is ever given all are 1, which is P ∝ p.
Open, ours: an item counts as p = 1 until its score arrives; the length of λ's warm-up.
"""

NSER = Law(
    alpha=0.6,
    mix=0.95,
    beta=linear(0.4, 1.0, ANNEAL_STEPS),
    eta=4.0,
    correct="signal",
    max_rule_share=0.5,
)
"""Neuro-symbolic replay, arXiv 2605.09419, which gives no equation: every number here is ours.

PER times the rules' relevance (1 + 4 s), the rules' tilt kept in the weights, at most half of the draws owed
to the rules, and a uniform floor of 5 %.
"""

PLACEBO = NSER
"""The control of ``nser``: the same law; the host relates items at random instead of by rules."""

PRESETS: dict[str, Law] = {
    "uniform": UNIFORM,
    "per": PER,
    "freshper": FRESHPER,
    "rollout-grpo": ROLLOUT_GRPO,
    "vlm-rb": VLM_RB,
    "nser": NSER,
    "placebo": PLACEBO,
}


def preset(name: str, **overrides: Any) -> Law:
    """The law of a preset, some fields replaced; raises ``LawError`` for an unknown name or field.

    >>> preset("freshper", tau=1000.0).tau
    1000.0
    """
    return chosen(PRESETS, name, overrides, LawError, "the law's fields")


def chosen(
    presets: Mapping[str, T],
    name: str,
    overrides: Mapping[str, Any],
    error: Callable[[str, object, str, str], Exception],
    fields_of_it: str,
) -> T:
    """The one of ``presets`` called ``name``, fields replaced; raises ``error`` for an unknown name or field."""
    found = presets.get(name)
    if found is None:
        near = difflib.get_close_matches(name.lower().replace("_", "-"), presets, n=1, cutoff=0.4)
        way_out = f"Did you mean {near[0]!r}?" if near else "Choose one of them."
        raise error("preset", name, f"one of {', '.join(presets)}", way_out)
    known = [field.name for field in fields(found)]
    for field, value in overrides.items():
        if field not in known:
            raise error(field, value, f"one of {fields_of_it} {', '.join(known)}", "Leave it out.")
    return replace(found, **overrides)
