"""Whole replay buffers, data and all, against those of other libraries: ``python -m tests.bench_hosts [items…]``.

CartPole-like transitions, batches of 256, one thread; every operation is timed in turns, contender after
contender, round after round, so that a busy machine slows all alike. Ratios are medians over the rounds of
theirs : ours. Who is not installed, or does not load, is left out, and said so. Needs ``tianshou`` (the extra
of that name) and ``cpprb`` (``pip install cpprb``; only this file knows it). 10⁶ items take about two minutes.
"""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from nser.replay import ArrayBuffer, Law, preset

BATCH = 256
ROUNDS = 15
SIZES = (10**5, 10**6)
CALLS = {"add 1": 200, f"add {BATCH}": 60, "sample": 60, "sample + update": 60}


class Data:
    """One transition, a batch of them, and errors: the same for all."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.many: dict[str, Any] = {
            "obs": rng.normal(size=(BATCH, 4)).astype(np.float32),
            "act": rng.integers(2, size=BATCH),
            "rew": np.ones(BATCH, np.float32),
            "next_obs": rng.normal(size=(BATCH, 4)).astype(np.float32),
            "done": np.zeros(BATCH, np.bool_),
        }
        self.one = {name: part[0] for name, part in self.many.items()}
        self.errors = rng.exponential(size=BATCH)


DATA = Data()


class Ours:
    """``ArrayBuffer``, by any law, on either kernels."""

    def __init__(self, items: int, law: Law, numba: bool = True) -> None:
        os.environ["NSER_NUMBA"] = "1" if numba else "0"
        self.buffer = ArrayBuffer(items, (4,), law=law)
        os.environ.pop("NSER_NUMBA")
        rng = np.random.default_rng(1)
        for start in range(0, items, 10_000):
            count = min(10_000, items - start)
            obs = np.zeros((count, 4), np.float32)
            flags = np.zeros(count, np.bool_)
            self.buffer.add(obs, np.zeros(count, np.int64), flags, obs, flags)
            self.buffer.index.tick()
        draw = self.buffer.index.draw(items // 2, replace=False)
        self.buffer.update(draw, rng.exponential(size=len(draw)))
        related = rng.choice(items, items // 50, replace=False)
        self.buffer.relate(related, rng.random(len(related)), version=1)

    def add_one(self) -> None:
        one = DATA.one
        self.buffer.add(one["obs"], one["act"], one["rew"], one["next_obs"], one["done"])

    def add_many(self) -> None:
        many = DATA.many
        self.buffer.add(many["obs"], many["act"], many["rew"], many["next_obs"], many["done"])

    def sample(self) -> Any:
        return self.buffer.sample(BATCH)

    def update(self, drawn: Any) -> None:
        self.buffer.update(drawn.draw, DATA.errors)

    def save(self, folder: Path) -> None:
        self.buffer.save(folder / "ours.npz")


class Tianshou:
    """tianshou's ``PrioritizedReplayBuffer``; it adds one at a time."""

    def __init__(self, items: int) -> None:
        from tianshou.data import Batch, PrioritizedReplayBuffer

        self.buffer = PrioritizedReplayBuffer(items, alpha=0.6, beta=0.4)
        # Ones, for zeros take no memory before they are written.
        flags = np.ones(items, np.bool_)
        obs = np.ones((items, 4), np.float32)
        data: dict[str, Any] = {
            "obs": obs,
            "act": np.ones(items, np.int64),
            "rew": np.ones(items),
            "obs_next": obs.copy(),
        }
        self.buffer.set_batch(Batch(**data, terminated=flags, truncated=flags.copy(), done=flags.copy()))
        self.buffer._size = items
        self.buffer.update_weight(np.arange(items), np.random.default_rng(1).exponential(size=items))
        one = DATA.one
        self.batch = Batch(
            obs=one["obs"], act=one["act"], rew=1.0, obs_next=one["next_obs"], terminated=False, truncated=False
        )

    def add_one(self) -> None:
        self.buffer.add(self.batch)

    def sample(self) -> Any:
        return self.buffer.sample(BATCH)

    def update(self, drawn: Any) -> None:
        self.buffer.update_weight(drawn[1], DATA.errors)

    def save(self, folder: Path) -> None:
        with (folder / "tianshou.pickle").open("wb") as stream:
            pickle.dump(self.buffer, stream)


class Cpprb:
    """cpprb's ``PrioritizedReplayBuffer``; what it saves has no priorities."""

    def __init__(self, items: int) -> None:
        import cpprb

        kinds: dict[str, Any] = {"obs": {"shape": 4}, "next_obs": {"shape": 4}, "rew": {}, "done": {}}
        self.buffer = cpprb.PrioritizedReplayBuffer(items, {**kinds, "act": {"dtype": np.int64}}, alpha=0.6)
        rng = np.random.default_rng(1)
        for _ in range(items // 10_000):
            obs, ones = np.zeros((10_000, 4), np.float32), np.zeros(10_000)
            self.buffer.add(
                obs=obs, act=ones, rew=ones, next_obs=obs, done=ones, priorities=rng.exponential(size=10_000)
            )

    def add_one(self) -> None:
        self.buffer.add(**DATA.one)

    def add_many(self) -> None:
        self.buffer.add(**DATA.many)

    def sample(self) -> Any:
        return self.buffer.sample(BATCH, beta=0.4)

    def update(self, drawn: Any) -> None:
        self.buffer.update_priorities(drawn["indexes"], DATA.errors)

    def save(self, folder: Path) -> None:
        self.buffer.save_transitions(str(folder / "cpprb"))


class Torchrl:
    """torchrl's ``ReplayBuffer`` with its ``PrioritizedSampler``, where its compiled tree loads."""

    def __init__(self, items: int) -> None:
        import torch
        from tensordict import TensorDict
        from torchrl.data import LazyTensorStorage, PrioritizedSampler, TensorDictReplayBuffer

        self.buffer = TensorDictReplayBuffer(
            storage=LazyTensorStorage(items), sampler=PrioritizedSampler(items, 0.6, 0.4), batch_size=BATCH
        )
        self.many = TensorDict({k: torch.from_numpy(v) for k, v in DATA.many.items()}, [BATCH])
        self.one = self.many[0]
        zeros = TensorDict({k: torch.zeros(10_000, *v.shape[1:]).to(v.dtype) for k, v in self.many.items()}, [10_000])
        for _ in range(items // 10_000):
            self.buffer.extend(zeros)
        self.errors = torch.from_numpy(DATA.errors)

    def add_one(self) -> None:
        self.buffer.add(self.one)

    def add_many(self) -> None:
        self.buffer.extend(self.many)

    def sample(self) -> Any:
        return self.buffer.sample()

    def update(self, drawn: Any) -> None:
        self.buffer.update_priority(drawn["index"], self.errors)

    def save(self, folder: Path) -> None:
        self.buffer.dumps(folder / "torchrl")


CONTENDERS: dict[str, Callable[[int], Any]] = {
    "nser": lambda items: Ours(items, Law()),
    "nser, age": lambda items: Ours(items, Law(tau=1e5)),
    "nser, rules and age": lambda items: Ours(items, preset("nser", tau=1e5)),
    "nser, NumPy twin": lambda items: Ours(items, Law(), numba=False),
    "tianshou": Tianshou,
    "cpprb": Cpprb,
    "torchrl": Torchrl,
}


def resident() -> float:
    """MB of memory that the process holds; 0 where the system does not say."""
    gc.collect()
    # What was freed is given back first, else the next contender grows into it and seems to need nothing.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6 if statm.exists() else 0.0


def build(items: int, say: Callable[[str], None]) -> tuple[dict[str, Any], dict[str, float]]:
    """Every contender that loads, full, and the MB that each holds."""
    made, memory = {}, {}
    for name, make in CONTENDERS.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                make(10_000)  # so that its imports, and its compiled code, count for nobody
                before = resident()
                made[name] = make(items)
        except (ImportError, RuntimeError, OSError) as error:
            say(f"{name} is left out: {str(error).splitlines()[0]}")
            continue
        memory[name] = resident() - before
    return made, memory


def timed(call: Callable[[], object], calls: int) -> float:
    """Median time of a call in µs."""
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return median(times) * 1e6


def operations(contender: Any) -> dict[str, Callable[[], object]]:
    """What is timed, by name; adding many only where that is one call."""
    calls = {"add 1": contender.add_one}
    if hasattr(contender, "add_many"):
        calls[f"add {BATCH}"] = contender.add_many
    calls["sample"] = contender.sample
    calls["sample + update"] = lambda: contender.update(contender.sample())
    return calls


def run(sizes: tuple[int, ...] = SIZES, rounds: int = ROUNDS, say: Callable[[str], None] = print) -> dict[str, float]:
    """All figures: "items, operation, contender" → µs; with ", : nser" behind → the ratio to ours."""
    found: dict[str, float] = {}
    for items in sizes:
        made, memory = build(items, say)
        times: dict[tuple[str, str], list[float]] = {}
        for turn in range(rounds + 1):
            for operation, calls in CALLS.items():
                for name, contender in made.items():
                    call = operations(contender).get(operation)
                    if call is not None:
                        took = timed(call, calls)
                        if turn:  # the first round warms up
                            times.setdefault((operation, name), []).append(took)
        for (operation, name), took_all in times.items():
            ours = times[operation, "nser"]
            found[f"{items:,}, {operation}, {name}"] = median(took_all)
            found[f"{items:,}, {operation}, {name}, : nser"] = median(
                theirs / own for theirs, own in zip(took_all, ours, strict=True)
            )
        twin, tianshou = (times.get(("sample + update", name)) for name in ("nser, NumPy twin", "tianshou"))
        if twin and tianshou:
            ratio = median(ours / theirs for ours, theirs in zip(twin, tianshou, strict=True))
            found[f"{items:,}, sample + update, NumPy twin : tianshou"] = ratio
        with tempfile.TemporaryDirectory() as folder:
            for name, contender in made.items():
                found[f"{items:,}, checkpoint to disk (ms), {name}"] = (
                    timed(lambda c=contender: c.save(Path(folder)), 1) / 1e3  # type: ignore[misc]
                )
        state = timed(made["nser"].buffer.index.state_dict, 3) / 1e3
        found[f"{items:,}, state of the index (ms), nser"] = state
        found.update({f"{items:,}, memory (MB), {name}": value for name, value in memory.items()})
    return found


def main() -> None:
    """Print the table."""
    sizes = tuple(int(size) for size in sys.argv[1:]) or SIZES
    found = run(sizes)
    print(f"batch {BATCH}, medians of {ROUNDS} rounds: µs (times as long as nser)")
    for key, value in found.items():
        if key.endswith(": nser"):
            continue
        ratio = found.get(f"{key}, : nser")
        figure = f"{value:.2f}" if " : " in key else f"{value:,.1f}"
        print(f"{key:<48}{figure:>10}" + (f"   ({ratio:.2f})" if ratio is not None else ""))


if __name__ == "__main__":
    main()
