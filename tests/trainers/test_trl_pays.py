"""Replay pays: the small version of `tests.bench_trl`, one seed of two conditions.

The seed is one where the difference is plain. That it is there on average is for the many seeds of the benchmark.
"""

from __future__ import annotations

import pytest

pytest.importorskip("trl", reason="needs the extra: pip install nser[trl]")

from tests.bench_trl import CONDITIONS, mean_fresh_reward


@pytest.mark.slow
def test_weighted_replay_beats_none_with_as_much_generation() -> None:
    none = mean_fresh_reward(CONDITIONS["no replay, 16 fresh"], seed=6, steps=140)
    weighted = mean_fresh_reward(CONDITIONS["|A|, decoupled"], seed=6, steps=140)
    assert weighted > none + 0.08
