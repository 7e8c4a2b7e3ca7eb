"""A soak of `ArrayBuffer` from three threads: ``python -m tests.replay.soak [operations]``, 10⁷ by default.

One thread adds, one samples and feeds back (late, now and then), one relates and reads statistics. Every item's
number is in its observation and its reward, and every signal is a function of that number: so a transition torn in
two, an unfilled slot, or feedback that landed on another item shows. Prints what was done, and the time.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from nser.replay import ArrayBuffer, Law

LAW = Law(alpha=0.6, epsilon=1e-3, tau=5e3, eta=4.0, mix=0.95)


def signal_of(number: np.ndarray) -> np.ndarray:
    """The signal that is fed back for items of these numbers: any fixed function of the number alone."""
    return 1.5 + np.sin(number.astype(np.float64))


@dataclass
class Soak:
    """Counts of one run; operations are items added, drawn, fed back and related."""

    buffer: ArrayBuffer
    operations: int
    done: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("added", "drawn", "updated", "related"), 0))
    ignored: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def finished(self) -> bool:
        """Whether as much was done as was asked for, a twentieth of it of each kind, or something went wrong.

        A busy machine may starve the thread that adds; without wraps the soak would show nothing.
        """
        done = self.done.values()
        return bool(self.faults) or (sum(done) >= self.operations and 20 * min(done) >= self.operations)

    def add(self) -> None:
        """Add single items and batches, numbered as they come."""
        rng, number = np.random.default_rng(1), 0
        while not self.finished:
            count = int(rng.integers(1, 65))
            numbers = np.arange(number, number + count)
            obs = numbers[:, None].astype(np.float64)
            flags = np.zeros(count, np.bool_)
            if count == 1:
                self.buffer.add(obs[0], number, number % 1000, obs[0] + 1, False)
            else:
                self.buffer.add(obs, numbers, numbers % 1000, obs + 1, flags)
            number += count
            self.done["added"] += count
            time.sleep(0)  # lets the others at the lock

    def sample(self) -> None:
        """Sample; feed back at once, or much later."""
        rng, late = np.random.default_rng(2), deque[tuple[object, np.ndarray]]()
        while not self.finished:
            if not len(self.buffer):
                continue
            batch = self.buffer.sample(int(rng.integers(1, 257)))
            number = batch.obs[:, 0]
            whole = (
                np.array_equal(batch.actions, number)
                and np.array_equal(batch.next_obs[:, 0], number + 1)
                and np.array_equal(batch.rewards, number % 1000)
            )
            if not whole:
                self.faults.append("a transition was torn, or an unfilled slot drawn")
            self.done["drawn"] += len(batch)
            late.append((batch.draw, number.copy()))
            if len(late) > 8 or rng.random() < 0.5:
                draw, numbers = late.popleft()
                self.ignored += self.buffer.update(draw, signal_of(numbers))  # type: ignore[arg-type]
                self.done["updated"] += len(numbers)

    def relate(self) -> None:
        """Relate what was live a while ago, and read statistics."""
        rng, version = np.random.default_rng(3), 0
        while not self.finished:
            live = self.buffer.index.live_slots()
            if not len(live):
                continue
            slots = rng.choice(live, 64)
            generations = self.buffer.index.generations_of(slots)
            self.buffer.relate(slots, rng.random(64), version, generations)
            self.done["related"] += 64
            version += 1
            if version % 500 == 0:
                self.buffer.index.stats()

    def check(self) -> None:
        """What must hold at the end; raises `AssertionError`."""
        assert not self.faults, self.faults[0]
        index, forest = self.buffer.index, self.buffer.index._forest
        for tree in (forest.base, forest.bonus):
            assert tree is not None
            total = float(np.sum(tree.leaves))
            assert abs(tree.root - total) <= 1e-9 * max(total, 1e-300), "the root is not the sum of the leaves"
            assert (tree.leaves >= 0).all()
        slots = index.live_slots()
        explained = index.explain(slots)
        assert forest.peak.root == explained.signal.max()
        # A signal is that of its own item, or what it was born with: the largest at that time, which was one of them.
        own = signal_of(self.buffer.obs[slots, 0])
        born = (explained.signal > 2.0) | (explained.signal == 1.0)
        assert (born | (explained.signal == own)).all(), "feedback landed on another item"
        assert index.stats().stale_updates == self.ignored
        assert np.isclose(explained.probability.sum(), 1.0, rtol=1e-9)


def run(operations: int, capacity: int = 50_021) -> Soak:
    """Run the three threads until so many operations are done, and check."""
    soak = Soak(ArrayBuffer(capacity, (1,), np.float64, law=LAW, seed=0), operations)

    def guarded(work: object) -> None:
        try:
            work()  # type: ignore[operator]
        except BaseException as error:
            soak.faults.append(repr(error))
            raise

    threads = [threading.Thread(target=guarded, args=(work,)) for work in (soak.add, soak.sample, soak.relate)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    soak.check()
    return soak


def main() -> None:
    """Run the soak and print its counts."""
    operations = int(sys.argv[1]) if len(sys.argv) > 1 else 10**7
    began = time.perf_counter()
    soak = run(operations)
    parts = ", ".join(f"{count:,} {name}" for name, count in soak.done.items())
    print(f"{parts}; {soak.ignored:,} updates came too late; all invariants hold; {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
