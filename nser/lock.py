"""One process at a time in a directory, however the one before it ended.

The kernel holds the lock (`flock`) and lets go of it when its holder ends: killed, crashed or rebooted away. What is
written in the file only serves to name the holder to others. On NFS the lock reaches every host that mounts without
`nolock`; where the file system knows no locks at all, what the file says of the holder is believed instead, as far as
it can be looked up: a process of this host that is gone, or whose number another one has now, holds nothing.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from nser.errors import NserError
from nser.files import writing
from nser.jsons import parse_json

NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
MAX_RECORD = 4096  # bytes


@dataclass(frozen=True)
class Holder:
    """Who holds a lock: process number, host, when it took the lock, and when the process began (empty: unknown).

    `born` has no unit; with the host's boot it tells a process from a later one of the same number.
    """

    pid: int
    host: str
    since: str
    born: str

    @classmethod
    def here(cls) -> Holder:
        """This process, now."""
        return cls(os.getpid(), socket.gethostname(), time.strftime("%Y-%m-%d %H:%M:%S"), _born(os.getpid()))

    @property
    def gone(self) -> bool:
        """Whether it is known that the process lives no more; of other hosts nothing is known."""
        if self.host != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except (PermissionError, OverflowError):
            pass
        return _born(self.pid) != self.born

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since}"


class LockedError(NserError):
    """Another process works in `folder`; `holder` is None where it did not say who it is; `lock` is the file."""

    def __init__(self, folder: Path, lock: Path, holder: Holder | None) -> None:
        super().__init__(folder, lock, holder)
        self.folder, self.lock, self.holder = folder, lock, holder

    def __str__(self) -> str:
        who = str(self.holder or "another process")
        return f"{self.folder} is in use by {who}; wait for it, stop it, or work in another directory"


@contextmanager
def locked(lock: Path) -> Iterator[None]:
    """Hold the lock file `lock`, made where it is missing, for the time of the block.

    Raises `LockedError` at once where another process, or another block of this one, holds it, and `WriteError` where
    the file can't be made.
    """
    with writing(lock):
        handle = _open(lock)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LockedError(lock.parent, lock, _read(handle)) from error
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            holder = _read(handle)
            if holder is not None and not holder.gone:
                raise LockedError(lock.parent, lock, holder) from error
        _write(handle, json.dumps(asdict(Holder.here())))
        try:
            yield
        finally:
            _write(handle, "")
    finally:
        os.close(handle)


def _open(lock: Path) -> int:
    # No link is followed: it might lead to a file that must not be emptied. The lock is not for child processes.
    return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)


def _write(handle: int, text: str) -> None:
    """What names the holder; a disk without room for it does not matter, for the kernel knows."""
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, text.encode(), 0)
    except OSError:
        pass


def _read(handle: int) -> Holder | None:
    try:
        found = parse_json(os.pread(handle, MAX_RECORD, 0))
        holder = Holder(**found)
        return holder if isinstance(holder.pid, int) and holder.pid > 0 else None
    except (OSError, ValueError, TypeError):
        return None


def _born(pid: int) -> str:
    """The boot of this host and the tick in which a process began; empty where the system does not tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return f"{boot} {told.rpartition(')')[2].split()[19]}"  # the name in brackets may hold anything
