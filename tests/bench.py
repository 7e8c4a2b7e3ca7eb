"""Every benchmark of the project: `make bench`, or `python -m tests.bench NAME…` for some of them.

Each prints its figures and all go to `bench.json`. What is compared runs in one process and in turns; on a machine
that does other things, trust the ratios.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests import bench_background, bench_envs, bench_evaluator, bench_hosts, bench_replay, bench_rollouts, bench_train

BENCHES: dict[str, Callable[[], dict[str, float]]] = {
    "background": bench_background.run,
    "environments": bench_envs.run,
    "evaluator": bench_evaluator.run,
    "hosts": bench_hosts.run,
    "replay": bench_replay.run,
    "rollouts": bench_rollouts.run,
    "training": bench_train.run,
}
OUTPUT = Path("bench.json")


def main() -> None:
    """Run the named benchmarks, or all."""
    unknown = [name for name in sys.argv[1:] if name not in BENCHES]
    if unknown:
        sys.exit(f"found benchmark {unknown[0]}, expected some of {', '.join(BENCHES)}")
    results: dict[str, dict[str, float]] = {}
    for name in sys.argv[1:] or BENCHES:
        began = time.perf_counter()
        results[name] = BENCHES[name]()
        print(f"\n{name} ({time.perf_counter() - began:.0f} s)")
        for figure, value in results[name].items():
            print(f"  {figure:<56}{value:>14,.2f}")
    OUTPUT.write_text(json.dumps({"machine": platform.platform(), "figures": results}, indent=2) + "\n")
    print(f"\nwritten to {OUTPUT}")


if __name__ == "__main__":
    main()
