"""SIGKILL at random moments of a run or study, which then goes on: `python -m tests.soak_kills --times 20`.

A life begins the run or goes on with it, and ends by SIGKILL: at a random moment of the clock, or just before a random
one of its own file operations (opening, renaming, removing), which is where halves of files could come from. After the
last kill the run is let to its end, and must have the metrics and the weights of one that nobody disturbed.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from nser.runs.archive import read_archive
from nser.runs.directory import RunDirectory
from nser.study.cells import read_rows

LIFE = """
import os, signal, sys
from pathlib import Path
folder, moment = os.path.abspath(sys.argv[1]), int(sys.argv[2])
EVENTS = ("open", "os.rename", "os.remove", "os.mkdir")
seen = 0

def watch(event, arguments):
    global seen
    # An integer is a file that is open already; a folder has no end of its own here.
    if event in EVENTS and isinstance(arguments[0], (str, Path)) and str(arguments[0]).startswith(folder):
        seen += 1
        if seen == moment:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(watch)
from nser.cli.main import main
sys.argv = ["nser", *sys.argv[3:]]
try:
    main()
finally:
    print("events", seen, flush=True)
"""
NEVER = 0
RUN = ("--steps", "3000", "--seed", "3", "--explore", "rules")
SETTINGS = (
    "net_arch=16", "buffer_size=2000", "learning_starts=100", "batch_size=16", "induce_every=500", "log_every=250",
    "eval_every=500", "eval_episodes=2", "final_episodes=2", "checkpoint_every=100", "train_freq=8",
)  # fmt: skip
STUDY = (
    "--conditions", "uniform,per", "--seeds", "3", "--steps", "1500", "--workers", "1", "--set", "stack_size=1",
    "--set", "eval_every=500", "--set", "eval_episodes=3", "--set", "learning_starts=100",
)  # fmt: skip


def run_words(path: Path) -> list[str]:
    """The command that begins a run, goes on with it where it has begun, or makes the page that is all it lacks."""
    if (path / "config.json").exists():
        done = any(line["kind"] == "done" for line in RunDirectory.open(path).read_metrics())
        return ["report", str(path)] if done else ["train", "--resume", str(path)]
    given = [word for setting in SETTINGS for word in ("--set", setting)]
    return ["train", "FrozenLake-v1", "--name", str(path), *RUN, *given]


def study_words(path: Path) -> list[str]:
    """The command of a study, which is the same whenever it is given."""
    return ["study", "run", "FrozenLake-v1", "--name", str(path), *STUDY]


def run_result(path: Path) -> tuple[Any, bytes]:
    """Metrics without what the clock on the wall decides, and every array of the last checkpoint."""
    run = RunDirectory.open(path)
    timed = ("seconds", "cost_seconds", "cost")
    lines = [{k: v for k, v in line.items() if k not in timed} for line in run.read_metrics()]
    session = read_archive(run.checkpoint)["session"]
    for info in session["counters"]["episode_infos"]:
        del info["t"]  # seconds
    return lines, b"".join(_bytes(session))


def study_result(path: Path) -> Any:
    """The rows in an order of their own, without the time they took."""
    rows = [{k: v for k, v in row.items() if k != "cpu_seconds"} for row in read_rows(path)]
    return sorted(rows, key=lambda row: (row["condition"], row["seed"], row["step"]))


def _bytes(state: Any) -> list[bytes]:
    if isinstance(state, np.ndarray):
        return [state.tobytes()]
    if isinstance(state, dict):
        return [part for key in sorted(state) for part in _bytes(state[key])]
    return [repr(state).encode()]


def live(folder: Path, words: list[str], event: int = NEVER, seconds: float | None = None) -> tuple[bool, int]:
    """One life of a command: whether it came to its end, and how many file operations it made if so.

    It is killed before its `event`-th file operation in `folder`, or after so many `seconds`, if it comes to that.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", LIFE, str(folder), str(event), *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        told, said = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        told, said = process.communicate()
    if process.returncode == -signal.SIGKILL:
        return False, 0
    assert process.returncode == 0, said
    return True, int(told.split()[-1])


def soak(
    words: Callable[[Path], list[str]], result: Callable[[Path], Any], folder: Path, times: int, seed: int
) -> list[str]:
    """Kill `times` times, anew from the beginning whenever the end is reached; says when. Raises where results differ.

    Every second kill is at a file operation, the others at a moment of the clock.
    """
    rng = random.Random(seed)
    whole = folder / "whole"
    began = time.perf_counter()
    _, events = live(whole, words(whole))
    seconds = time.perf_counter() - began
    expected = result(whole)
    said: list[str] = []
    number, lives, ended = 0, 0, False
    while len(said) < times:
        path = folder / f"killed{number}"
        event = rng.randint(1, events) if lives % 2 else NEVER
        limit = rng.uniform(0, seconds) if event == NEVER else None
        lives += 1
        ended, _ = live(path, words(path), event, limit)
        if ended:
            assert result(path) == expected, f"{path}: another result after {said}"
            number += 1
        else:
            said.append(f"operation {event} of {events}" if event else f"second {limit:.1f} of {seconds:.1f}")
    if not ended:
        live(path, words(path))
        assert result(path) == expected, f"{path}: another result after {said}"
    return said


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--what", choices=("run", "study"), default="run")
    given = parser.parse_args()
    words, result = (run_words, run_result) if given.what == "run" else (study_words, study_result)
    with tempfile.TemporaryDirectory() as made:
        said = soak(words, result, Path(made), given.times, given.seed)
        left = [str(path.relative_to(made)) for path in Path(made).rglob(".*.part")]
    print(f"{given.what}: {len(said)} kills, every time the result of an undisturbed {given.what}", *said, sep="\n  ")
    print(f"left by killed writers: {left or 'nothing'}")


if __name__ == "__main__":
    main()
