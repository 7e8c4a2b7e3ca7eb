"""Archives of arrays from anybody: nothing in them is run, and none fills more memory than was allowed.

An archive of some kilobytes can promise terabytes, by compression or in the header of an array. So the sizes that its
directory and its headers tell are held against the limit, and against each other, before memory is asked for.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Collection
from pathlib import Path
from typing import IO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from nser.files import open_file

SUFFIX = ".npy"
PIECE = 2**20  # bytes that are read at once
KINDS = "biufcSUV"  # every kind of number, text and record; no objects, which only pickle can hold


def read_arrays(path: Path, names: Collection[str] | None = None, max_bytes: int | None = None) -> dict[str, NDArray]:
    """The arrays of an `.npz`, those called `names` or all; pickled objects are refused, never loaded.

    They may fill `max_bytes` together; without it as many as the file has, which suffices where nothing is compressed,
    as in the states that nser saves. Raises `OSError` where the file can't be opened, `ValueError` with the reason
    where it is no whole archive of plain arrays, lacks a name, or would fill more.
    """
    with open_file(path) as stream:
        limit = os.fstat(stream.fileno()).st_size if max_bytes is None else max_bytes
        try:
            with ZipFile(stream) as archive:
                return _read(archive, names, limit)
        except Exception as error:  # a dozen kinds, of zipfile, zlib, struct, tokenize and NumPy
            raise ValueError(f"{path} is no whole archive of arrays ({_reason(error)})") from error


def _read(archive: ZipFile, names: Collection[str] | None, limit: int) -> dict[str, NDArray]:
    members = {info.filename.removesuffix(SUFFIX): info for info in archive.infolist()}
    missing = sorted(set(names or ()) - members.keys())
    if missing:
        raise ValueError(f"it lacks {', '.join(missing)}")
    chosen = {name: members[name] for name in (members if names is None else names)}
    total = sum(info.file_size for info in chosen.values())
    if total > limit:
        raise ValueError(f"it would fill {total:,} bytes, expected at most {limit:,}")
    return {name: _member(archive, name, info) for name, info in chosen.items()}


def _member(archive: ZipFile, name: str, info: ZipInfo) -> NDArray:
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise ValueError(f"{name} is compressed in a way that NumPy does not use")
    with archive.open(info) as stream:
        return _array(stream, name, info.file_size)


def _array(stream: IO[bytes], name: str, size: int) -> NDArray:
    """One array of `size` bytes with its header; a header that promises more would make NumPy ask for all of it."""
    shape, fortran, dtype = _header(stream)
    if dtype.hasobject or dtype.kind not in KINDS:
        raise ValueError(f"{name} holds {dtype}; objects are never loaded")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > size - stream.tell():
        raise ValueError(f"{name} is cut: it promises the shape {shape} of {dtype}")
    array = np.empty(shape, dtype, order="F" if fortran else "C")
    if array.nbytes:
        room = array.reshape(-1, order="A").view(np.uint8).data
        for start in range(0, array.nbytes, PIECE):
            part = room[start : start + PIECE]
            if stream.readinto(part) != len(part):  # type: ignore[attr-defined]
                raise ValueError(f"{name} is cut")
    stream.read(1)  # reaching the end checks the sum of the bytes
    return array


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the text of a header might have meant to Python 2
        version = npy.read_magic(stream)
        if version == (1, 0):
            return npy.read_array_header_1_0(stream)
        if version == (2, 0):
            return npy.read_array_header_2_0(stream)
    raise ValueError(f"an array in version {version} of its format, expected (1, 0) or (2, 0)")


def _reason(error: Exception) -> str:
    said = str(error).splitlines()
    return f"{said[0][:200]}" if said else type(error).__name__
