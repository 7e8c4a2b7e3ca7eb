"""Writing files so that nobody ever sees half of one, and opening those of others without waiting for ever."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from typing import BinaryIO

from nser.errors import NserError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class WriteError(NserError, OSError):
    """A file that can't be written: `errno`, `strerror` (the reason) and `filename`; the file is as it was before.

    `exit_code` is 1 for a disk that is full or broken, and 2 for a place that can't be written at all.
    """

    def __init__(self, number: int | None, reason: str, path: str) -> None:
        super().__init__(number, reason, path)
        self.exit_code = 1 if number in FULL else 2

    def __str__(self) -> str:
        full = "what was there before is whole; make room and try again"
        way_out = full if self.errno in FULL else "expected a place that can be written"
        return f"can't write {self.filename}: {self.strerror}; {way_out}"


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Whatever the disk refuses inside the block is a `WriteError` about `path`."""
    try:
        yield
    except NserError:
        raise
    except OSError as error:
        raise WriteError(error.errno, error.strerror or str(error), str(path)) from error


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to; it replaces `path` when the block ends well and goes when it does not.

    The content is flushed to the disk before the rename, so that a crash leaves the old file or the new one. Raises
    `WriteError` where the disk refuses.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.{get_ident()}.part")
    with writing(path):
        try:
            yield beside
            with beside.open("rb+") as stream:
                os.fsync(stream.fileno())
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise


def write_text(path: Path, text: str) -> None:
    """Replace the content of a text file at once. Raises `WriteError`."""
    with atomic_path(path) as beside:
        beside.write_text(text, encoding="utf-8")


def remove_parts(path: Path) -> None:
    """Remove what writers of `path` left that were killed; nobody may be writing it now."""
    for part in path.parent.glob(f".{path.name}.*.part"):
        part.unlink(missing_ok=True)


def open_file(path: Path) -> BinaryIO:
    """Open a file to read its bytes. Raises `OSError`, also for a pipe or device, whose end might never come."""
    # Without O_NONBLOCK opening a pipe waits for somebody to write to it.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "Not a regular file", str(path))
    return os.fdopen(handle, "rb")
