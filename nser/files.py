"""Files: written so that nobody ever sees half of one, and archives of arrays read without running what is in them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to; it replaces `path` when the block ends well and goes when it does not.

    The content is flushed to the disk before the rename, so that a crash leaves the old file or the new one.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
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


def read_arrays(path: Path) -> dict[str, NDArray]:
    """Every array of an `.npz`; pickled objects are refused, never loaded.

    Raises `OSError` where the file can't be opened, `ValueError` where it is no whole archive of plain arrays.
    """
    with path.open("rb") as stream:
        try:
            found = np.load(stream, allow_pickle=False)
            if not isinstance(found, np.lib.npyio.NpzFile):
                raise ValueError(f"{path} holds one bare array")
            with found as archive:
                return {name: archive[name] for name in archive.files}
        except (ValueError, EOFError, KeyError, BadZipFile, NotImplementedError) as error:
            raise ValueError(f"{path} is no whole archive of arrays") from error
