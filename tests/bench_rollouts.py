"""What the rollout store costs: ``python -m tests.bench rollouts`` prints medians in ms, one thread.

A full store of 100,000 rollouts of 512 tokens (128 of prompt, 384 of response), 460 MB raw; raw bytes are those of
token ids (4 each), and of mask and log-probs of the response (1 and 4). Set OMP_NUM_THREADS=1. On a busy machine the
figures by the processor's clock say more than those by the wall's.
"""

from __future__ import annotations

import gc
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from nser.rollouts import Rollout, RolloutStore, StoreSettings, pad_batch, store_preset

ROLLOUTS, BATCH, PROMPT, RESPONSE = 100_000, 256, 128, 384
RAW = 4 * (PROMPT + RESPONSE) + 5 * RESPONSE


def some(rng: np.random.Generator, version: int) -> list[Rollout]:
    """A batch of rollouts that nothing else holds."""
    return [
        Rollout(
            prompt_ids=rng.integers(0, 50_000, PROMPT, dtype=np.int32),
            response_ids=rng.integers(0, 50_000, RESPONSE, dtype=np.int32),
            response_mask=np.ones(RESPONSE, np.bool_),
            behavior_logps=-rng.random(RESPONSE, dtype=np.float32),
            advantage=float(rng.normal()),
            reward=1.0,
            rule_scores={"short": 0.5},
            policy_version=(version, version),
            group=f"{version}/{number // 8}",
            task="sums",
        )
        for number in range(BATCH)
    ]


def timed(call: Callable[[], object], repeats: int = 21) -> tuple[float, float]:
    """Median ms of a call, by the wall's and by the processor's clock."""
    walls, processor = [], []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        call()
        walls.append(time.perf_counter() - wall)
        processor.append(time.process_time() - cpu)
    return statistics.median(walls) * 1e3, statistics.median(processor) * 1e3


def resident() -> int:
    """Bytes of memory that the process occupies."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def measure(directory: str | None, kind: str) -> dict[str, float]:
    """Figures of a store in memory, or in files of ``directory``."""
    rng = np.random.default_rng(0)
    settings = StoreSettings(capacity=ROLLOUTS, law=store_preset("nser").law)
    warm = RolloutStore(settings, directory=directory)
    warm.admit(some(rng, 0))
    warm.draw(8)
    before = resident()
    store = RolloutStore(settings, directory=directory)
    version = 0
    while len(store) < ROLLOUTS:
        if len(store) % 50_000 < BATCH:
            version += 1
            store.advance(version)
        store.admit(some(rng, version))
    figures = {f"{kind}: resident memory over raw bytes": (resident() - before) / (RAW * ROLLOUTS)}
    batches = iter([some(rng, version) for _ in range(21)])
    calls: dict[str, Callable[[], object]] = {
        f"draw of {BATCH} and collation": lambda: pad_batch(store.draw(BATCH).rollouts, 0),
        f"insert of {BATCH}, full store": lambda: store.admit(next(batches)),
    }
    for name, call in calls.items():
        figures[f"{kind}: {name} (ms)"], figures[f"{kind}: {name} (ms, processor)"] = timed(call)
    with tempfile.TemporaryDirectory() as folder:
        figures[f"{kind}: save (ms)"] = timed(lambda: store.save(Path(folder) / "store.npz"), 1)[0]
        figures[f"{kind}: load (ms)"] = timed(lambda: RolloutStore.load(Path(folder) / "store.npz", directory), 1)[0]
    return figures


def run() -> dict[str, float]:
    """All figures, in memory and in mapped files."""
    with tempfile.TemporaryDirectory() as folder:
        return measure(None, "memory") | measure(folder, "files")
