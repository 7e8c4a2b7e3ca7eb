"""Whatever happens to a store, in whatever order, it is as its slow twin says; checkpoints at any moment included."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import event
from hypothesis import settings as run_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from nser.replay import Law
from nser.rollouts import Replayed, RolloutStore, StoreSettings
from tests.rollouts.making import content, random_rollout, rollout
from tests.rollouts.twin import StoreTwin

LAWS = [
    Law(max_age=3, tau=2.0, eta=4.0, max_rule_share=1.0, mix=0.8, epsilon=0.1, beta=0.5, correct="full"),
    Law(alpha=0.0, mix=0.0, max_age=2),
    Law(tau=5.0, epsilon=1e-3, beta=1.0),
    Law(alpha=0.5, max_age=4, correct="none", eta=2.0, max_rule_share=1.0),
]


class StoreMachine(RuleBasedStateMachine):
    """Random calls of everything, on a store with small shards, each compared with the twin."""

    @initialize(
        law=st.sampled_from(LAWS),
        unit=st.sampled_from(["trajectory", "turn"]),
        capacity=st.integers(1, 12),
        replace=st.booleans(),
        signal=st.sampled_from(["advantage", "reward"]),
        zero=st.sampled_from([None, 0.2]),
        mapped=st.booleans(),
        seed=st.integers(0, 2**16),
    )
    def start(self, law: Law, capacity: int, mapped: bool, seed: int, zero: float | None, **choices: Any) -> None:
        choice = StoreSettings(law=law, capacity=capacity, zero_signal=zero, **choices)
        self.folder = TemporaryDirectory()
        self.directory = self.folder.name if mapped else None
        self.store = RolloutStore(choice, seed, self.directory, shard_bytes=600)
        self.twin = StoreTwin(choice)
        self.rng = np.random.default_rng(seed)
        self.offered = [rollout()]
        self.drawn: Replayed | None = None

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()

    @rule(steps=st.sampled_from([1, 1, 2, 4, 0]))
    def advance(self, steps: int) -> None:
        self.store.advance(self.store.version + steps)
        self.twin.advance(self.twin.version + steps)
        self.drawn = None

    @rule(count=st.integers(0, 8), again=st.booleans())
    def admit(self, count: int, again: bool) -> None:
        new = []
        for _ in range(count):
            first = int(self.rng.integers(max(self.twin.version - 3, 0), self.twin.version + 1))
            extra = {"advantage": 0.0} if self.rng.random() < 0.2 else {}
            new.append(random_rollout(self.rng, first, policy_version=(first, self.twin.version), **extra))
        if again:
            new.insert(int(self.rng.integers(len(new) + 1)), self.offered[int(self.rng.integers(len(self.offered)))])
        self.offered = (self.offered + new)[-30:]
        slots, reasons = self.twin.admit(new)
        admission = self.store.admit(new)
        assert admission.slots.tolist() == slots
        assert {reason: reasons.count(reason) for reason in reasons} == dict(admission.refused)
        self.drawn = None

    @rule(count=st.integers(0, 10))
    def draw(self, count: int) -> None:
        drawn = self.store.draw(count)
        live, density = self.twin.live, self.twin.densities()
        enough = bool(live) and self.store.settings.replace
        assert len(drawn) == (count if enough else min(count, len(live)))
        slots = drawn.draw.slots.tolist()
        assert set(slots) <= set(live)
        assert self.store.settings.replace or len(set(slots)) == len(slots)
        for slot in slots:
            self.twin.entries[slot].uses += 1
        np.testing.assert_allclose(drawn.draw.probabilities, [density[slot] for slot in slots], rtol=1e-9)
        assert drawn.draw.ages.tolist() == [self.twin.age(slot) for slot in slots]
        assert [content(one) for one in drawn.rollouts] == [content(self.twin.rollout(slot)) for slot in slots]
        if self.store.settings.law.correct == "full" and slots:
            weights = drawn.draw.probabilities ** -float(self.store.settings.law.beta)  # type: ignore[arg-type]
            np.testing.assert_allclose(drawn.weights, weights / weights.max(), rtol=1e-9)
        self.drawn = drawn

    @precondition(lambda self: self.drawn is not None)
    @rule(share=st.floats(0, 1))
    def give_back(self, share: float) -> None:
        assert self.drawn is not None
        keep = int(share * len(self.drawn))
        for slot in self.drawn.draw.slots[keep:].tolist():
            self.twin.entries[slot].uses -= 1
        before = self.store.metrics().drawn
        self.drawn, dropped = self.store.give_back(self.drawn, keep), len(self.drawn) - keep
        assert self.store.metrics().drawn == before - dropped
        assert len(self.drawn) == keep

    @precondition(lambda self: self.drawn is not None)
    @rule()
    def update(self) -> None:
        assert self.drawn is not None
        signals = self.rng.normal(size=len(self.drawn))
        for slot, signal in zip(self.drawn.draw.slots.tolist(), signals.tolist(), strict=True):
            self.twin.entries[slot].signal = abs(signal)
        assert self.store.update(self.drawn, signals) == 0

    @rule()
    def relate(self) -> None:
        slots = self.store.live_slots()[::2]
        scores = self.rng.random(len(slots))
        for slot, score in zip(slots.tolist(), scores.tolist(), strict=True):
            self.twin.entries[slot].score = score
        assert self.store.relate(slots, scores, version=1) == 0

    @rule(by_file=st.booleans())
    def checkpoint(self, by_file: bool) -> None:
        if by_file:
            path = Path(self.folder.name) / "store.npz"
            self.store.save(path)
            other = RolloutStore.load(path, self.directory)
        else:
            other = RolloutStore(self.store.settings, 99, self.directory, shard_bytes=600)
            other.load_state_dict(self.store.state_dict())
        self.drawn = None
        self.store = other

    @invariant()
    def same(self) -> None:
        if not hasattr(self, "store"):
            return
        live = self.twin.live
        event(f"some too old in the index: {len(live) < len(self.twin.entries)}")
        assert len(self.store) == len(live)
        assert sorted(self.store.live_slots().tolist()) == live
        found = self.store.rollouts(live)
        assert [content(one) for one in found] == [content(self.twin.rollout(slot)) for slot in live]
        explained, density = self.store.explain(live), self.twin.densities()
        np.testing.assert_allclose(explained.probability, [density[slot] for slot in live], rtol=1e-9)
        np.testing.assert_allclose(explained.signal, [self.twin.entries[slot].signal for slot in live], rtol=1e-12)
        assert explained.age.tolist() == [self.twin.age(slot) for slot in live]
        metrics = self.store.metrics()
        assert metrics.gone == len(self.twin.gone)
        assert round(metrics.gone_uses_mean * max(metrics.gone, 1)) == sum(self.twin.gone)
        # Space: what is held, at most the oldest and the newest shard beside it.
        assert metrics.bytes <= metrics.bytes_allocated
        assert (metrics.bytes == 0) == (not self.twin.entries)


StoreMachine.TestCase.settings = run_settings(max_examples=60, stateful_step_count=25, deadline=None)
TestStore = StoreMachine.TestCase
