"""Two processes that train together replay equal numbers of rows, whatever their stores hold."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra: pip install nser[trl]")

ROOT = Path(__file__).parents[2]
LIMIT = 240
"""Seconds after which two ranks that wait for each other are ended; they take about 20."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run_ranks(folder: Path) -> list[dict[str, Any]]:
    shared = os.environ | {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    # Gloo asks for the address of the host's name, which a machine without a network may not have.
    shared |= {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.trainers.trl_rank", str(folder)],
            cwd=ROOT,
            env=shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        outputs = [process.communicate(timeout=LIMIT) for process in started]
    finally:
        for process in started:
            process.kill()
    for process, (_, errors) in zip(started, outputs, strict=True):
        assert process.returncode == 0, errors[-3000:]
    lines = [next(line for line in said.splitlines() if line.startswith("RANK ")) for said, _ in outputs]
    return [json.loads(line.removeprefix("RANK ")) for line in lines]


def test_two_ranks_agree_and_finish(tmp_path: Path) -> None:
    first, second = run_ranks(tmp_path)
    # Rank 1 draws 3 at most, so rank 0 gives five of its eight back.
    assert first["rows"] == second["rows"] == [8, 11, 11, 11, 11, 11]
    tokens = [one + other for one, other in zip(first["own_items"], second["own_items"], strict=True)]
    assert first["items"] == second["items"] == tokens
    assert first["weights"] == second["weights"]
    assert first["rewards_fit"]
    assert second["rewards_fit"]
    assert not set(first["groups"]) & set(second["groups"])  # prompts are not split between these ranks
    assert first["saved"] == ["rollouts_0.npz", "rollouts_1.npz"]
