"""Settings and presets: the papers' numbers, and what is refused."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from nser.replay import Law, preset
from nser.rollouts import STORE_PRESETS, RolloutError, StoreSettings, store_preset


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("capacity", 0, "≥ 1"),
        ("capacity", True, "≥ 1"),
        ("updates", 0, "≥ 1"),
        ("warm_up", -1, "≥ 0"),
        ("unit", "token", "trajectory, turn"),
        ("signal", "loss", "advantage, reward"),
        ("composition", "mixed", "anchored, separate, pool"),
        ("correction", "none", "decoupled, clip"),
        ("ratio", -0.1, r"\[0, 1e\+06\]"),
        ("ratio", math.nan, r"\[0"),
        ("max_share", 0.0, r"\(0, 1\]"),
        ("max_share", 1.1, r"\(0, 1\]"),
        ("cap", 0, r"\(0"),
        ("clip_low", 1.5, r"\[0, 1\]"),
        ("clip_high", None, r"\[0"),
        ("zero_signal", -1.0, r"\[0"),
        ("advantage_clip", 0.0, r"\(0"),
        ("law", "per", "a Law"),
        ("law", Law(normalise="buffer"), "shrinks"),
        ("replace", 1, "True or False"),
    ],
)
def test_a_setting_out_of_range_is_named(field: str, value: Any, expected: str) -> None:
    with pytest.raises(RolloutError, match=rf"^{field}.*{expected}"):
        StoreSettings(**{field: value})


@pytest.mark.parametrize("name", STORE_PRESETS)
def test_presets_go_through_json(name: str) -> None:
    text = json.dumps(store_preset(name).to_dict(), allow_nan=False)
    assert StoreSettings.from_dict(json.loads(text)) == store_preset(name)


def test_what_is_unknown_is_named_with_the_way_out() -> None:
    with pytest.raises(RolloutError, match="Did you mean 'freshper'"):
        store_preset("fresh_per")
    with pytest.raises(RolloutError, match="one of the settings capacity"):
        store_preset("nser", size=3)
    with pytest.raises(RolloutError, match="Leave it out"):
        StoreSettings.from_dict({"size": 3})
    with pytest.raises(RolloutError, match=r"law: .*Law\.to_dict"):
        StoreSettings.from_dict({"law": {"alpha": -1}})


def test_the_papers_numbers() -> None:
    fresh = store_preset("freshper")
    assert (fresh.capacity, fresh.law.alpha, fresh.law.tau, fresh.law.epsilon) == (50_000, 0.6, 500.0, 1e-6)
    assert (fresh.composition, fresh.updates, fresh.signal) == ("separate", 1, "reward")
    assert (fresh.correction, fresh.clip_low, fresh.clip_high, fresh.advantage_clip) == ("clip", 0.2, 0.2, 0.2)
    assert fresh.law.stratified
    assert fresh.replace
    rollout = store_preset("rollout-grpo")
    assert (rollout.capacity, rollout.law.alpha, rollout.law.max_age, rollout.ratio) == (30_000, 0.5, 10, 0.5)
    assert (rollout.warm_up, rollout.composition, rollout.replace) == (20, "anchored", False)
    assert (rollout.correction, rollout.clip_low, rollout.clip_high) == ("clip", 0.2, 0.28)
    assert rollout.law.correct == "none"


def test_our_own_defaults() -> None:
    for name in ("nser", "uniform"):
        ours = store_preset(name)
        assert (ours.correction, ours.cap, ours.max_share) == ("decoupled", 2.0, 1 / 3)
        assert ours.law.max_age == 10
    assert store_preset("nser").law.uses_rules
    assert store_preset("uniform").law == preset("uniform", max_age=10)
    assert store_preset("none").ratio == 0.0


def test_age_decay_is_on_in_freshper_without_any_flag() -> None:
    assert store_preset("freshper").law.rate > 0
