"""Replay pays: the small version of `tests.bench_trl`, one seed of two conditions."""

from __future__ import annotations

import pytest

pytest.importorskip("trl", reason="needs the extra: pip install nser[trl]")

from tests.bench_trl import CONDITIONS, mean_fresh_reward


@pytest.mark.slow
def test_weighted_replay_beats_none_with_as_much_generation() -> None:
    none = mean_fresh_reward(CONDITIONS["no replay, 16 fresh"], seed=5, steps=120)
    weighted = mean_fresh_reward(CONDITIONS["|A|, decoupled"], seed=5, steps=120)
    assert weighted > none + 0.02
