"""A study that is killed leaves no process behind."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

PARENT = """
import multiprocessing, os, signal
from concurrent.futures import ProcessPoolExecutor
from nser.study.run import _prepare

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(1, context, _prepare, (context.SimpleQueue(),))
    print(pool.submit(os.getpid).result(), flush=True)
    pool.submit(signal.pause).result()
"""
PATIENCE = 60_000  # milliseconds


def test_workers_end_with_a_parent_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = os.pidfd_open(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)
        ended = select.poll()
        ended.register(worker, select.POLLIN)
        assert ended.poll(PATIENCE), "the worker lives on"
        os.close(worker)
