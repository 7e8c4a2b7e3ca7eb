"""One process at a time, however the one before it ended."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from nser.files import WriteError
from nser.lock import Holder, LockedError, locked

HOLD = """
import sys
from pathlib import Path
from nser.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holding(lock: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock for the time of the block, unless it is killed before."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process


def test_another_process_is_refused_and_told_who_is_there(tmp_path: Path) -> None:
    lock = tmp_path / "run.lock"
    with holding(lock) as process, pytest.raises(LockedError) as caught, locked(lock):
        pass
    told = str(caught.value)
    assert told.startswith(f"{tmp_path} is in use by process {process.pid} on {socket.gethostname()} since 20")
    assert told.endswith("wait for it, stop it, or work in another directory")
    assert caught.value.holder is not None
    assert caught.value.holder.gone
    with locked(lock):
        pass
    assert lock.read_text() == ""


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    lock = tmp_path / "run.lock"
    with holding(lock) as process:
        process.send_signal(signal.SIGKILL)
    left = Holder(**json.loads(lock.read_text()))
    assert left.pid == process.pid
    assert left.gone
    with locked(lock):
        assert json.loads(lock.read_text())["pid"] == os.getpid()


def test_an_error_lets_go(tmp_path: Path) -> None:
    lock = tmp_path / "run.lock"
    with pytest.raises(RuntimeError), locked(lock):
        raise RuntimeError
    with locked(lock), pytest.raises(LockedError), locked(lock):
        pass


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": "x"}', '{"pid": -1, "host": 1}', "[" * 5000, "\xff"])
def test_whatever_stands_in_the_file_the_kernel_decides(tmp_path: Path, content: str) -> None:
    lock = tmp_path / "run.lock"
    lock.write_text(content)
    with locked(lock):
        lock.write_text(content)
        with pytest.raises(LockedError, match="in use by another process"), locked(lock):
            pass


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("years of work")
    (tmp_path / "run.lock").symlink_to(precious)
    with pytest.raises(WriteError), locked(tmp_path / "run.lock"):
        pass
    assert precious.read_text() == "years of work"


def test_no_child_process_inherits_the_lock(tmp_path: Path) -> None:
    lock = tmp_path / "run.lock"
    with locked(lock):
        child = subprocess.Popen(
            [sys.executable, "-c", "print(flush=True); input()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            close_fds=False,
        )
        assert child.stdout is not None
        child.stdout.readline()  # until it runs a program of its own, a forked process is this one twice
    with locked(lock):
        pass
    child.communicate(b"\n")


NOW = Holder.here()
DEAD = 2**22 + 1  # above the largest number that Linux gives to a process


@pytest.mark.parametrize(
    ("holder", "refused"),
    [
        (replace(NOW, pid=DEAD), False),
        (replace(NOW, born="another boot 17"), False),  # the number belongs to a later process
        (replace(NOW, pid=1), False),
        (NOW, True),
        (replace(NOW, host="elsewhere"), True),  # of other hosts nothing is known
    ],
)
def test_without_locks_the_file_is_believed_as_far_as_it_can_be_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holder: Holder, refused: bool
) -> None:
    def no_locks(handle: int, how: int) -> Any:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    lock = tmp_path / "run.lock"
    lock.write_text(json.dumps(asdict(holder)))
    if refused:
        with pytest.raises(LockedError, match=f"process {holder.pid} on {holder.host}"), locked(lock):
            pass
    else:
        with locked(lock):
            assert json.loads(lock.read_text()) == asdict(NOW) | {"since": json.loads(lock.read_text())["since"]}
