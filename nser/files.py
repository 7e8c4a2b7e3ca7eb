"""Writing files so that nobody ever sees half of one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to; it replaces `path` when the block ends well and goes when it does not.

    The content is flushed to the disk before the rename, so that a crash leaves the old file or the new one.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.{get_ident()}.part")
    try:
        yield beside
        with beside.open("rb+") as stream:
            os.fsync(stream.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Replace the content of a text file at once."""
    with atomic_path(path) as beside:
        beside.write_text(text, encoding="utf-8")
