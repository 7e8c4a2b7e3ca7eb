"""What the replay index costs: ``python -m tests.bench_replay [items]`` prints medians in µs, one thread.

``run()`` returns them by name, for numba and for its NumPy twin, with the ratio of both. Host work (copying
the items) is not in it. Set OMP_NUM_THREADS=1, and trust the ratios more than the figures on a busy machine.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from nser.replay import Law, ReplayIndex

BATCH = 256
LAWS = {"per": Law(), "age": Law(tau=1e5), "rules": Law(tau=1e5, eta=4.0, mix=0.95)}


def median(call: Callable[[], object], repeats: int) -> float:
    """Median time of ``call`` in µs, over ``repeats`` calls."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def filled(items: int, law: Law) -> ReplayIndex:
    """A full index of which rules hold for 2 %, warmed up."""
    rng = np.random.default_rng(0)
    index = ReplayIndex(items, law)
    for part in np.array_split(rng.exponential(size=items), 10):
        index.insert(len(part), part)
        index.tick()
    index.relate(rng.choice(items, items // 50, replace=False), rng.random(items // 50), version=1)
    for _ in range(20):
        index.insert(1)
        index.insert(BATCH)
        index.update(index.draw(BATCH), rng.exponential(size=BATCH))
    return index


def measure(items: int, law: Law, repeats: int) -> dict[str, float]:
    """Medians in µs of every call, at ``items`` items under ``law``."""
    index = filled(items, law)
    signals = np.random.default_rng(1).exponential(size=BATCH)
    result = {
        "draw": median(lambda: index.draw(BATCH), repeats),
        "draw+update": median(lambda: index.update(index.draw(BATCH), signals), repeats),
        "insert 1": median(lambda: index.insert(1), repeats),
        f"insert {BATCH}": median(lambda: index.insert(BATCH, signals), repeats),
        "tick": median(index.tick, repeats),
    }
    state = index.state_dict()
    result["state_dict"] = median(index.state_dict, 5)
    result["load_state_dict"] = median(lambda: index.load_state_dict(state), 5)
    return result


def reanchoring(items: int) -> float:
    """Milliseconds of the one pass over all items that age decay needs, once in 200 τ/α steps."""
    law = Law(tau=10.0)
    index = filled(items, law)
    times = []
    for _ in range(5):
        index.tick(round(250 * law.tau / law.alpha))  # past the bound, so that the next birth moves the anchor
        start = time.perf_counter()
        index.insert(1)
        times.append(time.perf_counter() - start)
        index.insert(min(items, 1000), np.ones(min(items, 1000)))
    return statistics.median(times) * 1e3


def run(items: int = 10**6, repeats: int = 1000) -> dict[str, float]:
    """All figures, "law, call, kernels" → µs, and "law, call, ratio" → NumPy over numba."""
    before, result = os.environ.get("NSER_NUMBA"), {}
    try:
        for name, law in LAWS.items():
            figures = {}
            for kernels in ("numba", "numpy"):
                os.environ["NSER_NUMBA"] = "1" if kernels == "numba" else "0"
                figures[kernels] = measure(items, law, repeats)
            for call, figure in figures["numba"].items():
                result[f"{name}, {call}, numba"] = figure
                result[f"{name}, {call}, numpy"] = figures["numpy"][call]
                result[f"{name}, {call}, ratio"] = figures["numpy"][call] / figure
    finally:
        os.environ.pop("NSER_NUMBA", None)
        if before is not None:
            os.environ["NSER_NUMBA"] = before
    result["age, re-anchoring (ms, one in 200 τ/α steps)"] = reanchoring(items)
    return result


def main() -> None:
    """Print a table of ``run``."""
    items = int(sys.argv[1]) if len(sys.argv) > 1 else 10**6
    figures = run(items)
    print(f"{items:,} items, batch {BATCH}: median µs")
    print(f"{'law, call':<24}{'numba':>10}{'numpy':>10}{'ratio':>8}")
    for key in [key.removesuffix(", numba") for key in figures if key.endswith(", numba")]:
        numbers = figures[f"{key}, numba"], figures[f"{key}, numpy"], figures[f"{key}, ratio"]
        print(f"{key:<24}{numbers[0]:>10.1f}{numbers[1]:>10.1f}{numbers[2]:>8.1f}")
    print("\n".join(f"{key}: {value:.1f}" for key, value in figures.items() if "anchoring" in key))


if __name__ == "__main__":
    main()
