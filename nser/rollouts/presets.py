"""The published replay methods for rollouts, as settings of one store.

What a source states is used as it stands; what it leaves **open** is this toolkit's choice, and said to be so.
"""

from __future__ import annotations

from typing import Any

from nser.replay import preset
from nser.replay.presets import chosen
from nser.rollouts.errors import RolloutError
from nser.rollouts.settings import StoreSettings

FRESHPER = StoreSettings(
    capacity=50_000,
    law=preset("freshper"),
    signal="reward",
    zero_signal=None,
    replace=True,
    composition="separate",
    updates=1,
    ratio=1.0,
    max_share=1.0,
    correction="clip",
    advantage_clip=0.2,
)
"""Freshness-aware PER, arXiv 2604.16918: |reward| + ε (critic-free; ``signal="advantage"`` with a critic), τ = 500
(their FrozenLake: 1000), stratified draws, one fresh update and then K = 1 on replayed ones, clip 0.2, advantages
cut to ± 0.2. Either unit.

Ours: the floor is ``law.epsilon`` and can be raised, for under |reward| + 1e-6 an item of reward 0 is next to never
drawn; replayed batches are as large as the fresh ones (open); β rises over 100,000 versions (open).
"""

ROLLOUT_GRPO = StoreSettings(
    capacity=30_000,
    law=preset("rollout-grpo"),
    composition="anchored",
    ratio=0.5,
    warm_up=20,
    correction="clip",
    clip_low=0.2,
    clip_high=0.28,
)
"""Rollout-level advantage-prioritized replay, arXiv 2606.04560: P ∝ (|A| + ε)^0.5, ages 1 … 10, ρ = 0.5 beside all
fresh survivors in one update, 20 steps of warm-up, no importance weight, clip 0.2 / 0.28.

Open, ours: draws without replacement; groups with σ = 0 are recognised by |A| ≤ 1e-6.
"""

NSER = StoreSettings(law=preset("nser", tau=10.0, max_age=10, beta=0.0, correct="none"))
"""Rules × |A| × age: (|A| exp(−age/10) (1 + 4 s))^0.6, ages up to 10, at most a third of a batch, decoupled.

Every number is ours: arXiv 2605.09419 gives none. No importance weight, since the tilt is what is wanted.
"""

UNIFORM = StoreSettings(law=preset("uniform", max_age=10))
"""Every stored rollout alike, ages up to 10, beside the fresh ones: the baseline of ``nser``. Ours."""

NONE = StoreSettings(capacity=1, ratio=0.0)
"""No replay: ``plan`` gives the fresh rollouts alone and stores nothing."""

STORE_PRESETS: dict[str, StoreSettings] = {
    "freshper": FRESHPER,
    "rollout-grpo": ROLLOUT_GRPO,
    "nser": NSER,
    "uniform": UNIFORM,
    "none": NONE,
}


def store_preset(name: str, **overrides: Any) -> StoreSettings:
    """The settings of a preset, some fields replaced; raises ``RolloutError`` for an unknown name or field.

    A field of the law is changed so: ``store_preset("freshper", law=nser.replay.preset("freshper", tau=1000.0))``.

    >>> store_preset("nser", ratio=0.25).ratio
    0.25
    """
    return chosen(STORE_PRESETS, name, overrides, RolloutError, "the settings")
