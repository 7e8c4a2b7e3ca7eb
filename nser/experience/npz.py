"""Trajectories as a NumPy archive: one array for each field, no pickled objects, sizes checked before reading."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import IO
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from nser.experience.trajectories import FIELDS, Trajectories, TrajectoryError
from nser.files import atomic_path

MAX_BYTES = 2**33  # of all arrays together; what an archive declares is checked against it before anything is read


def save_npz(path: Path, trajectories: Trajectories) -> None:
    """Write the archive beside the old file first and then in its place."""
    with atomic_path(path) as beside, beside.open("wb") as stream:
        np.savez_compressed(stream, **{name: getattr(trajectories, name) for name in FIELDS})


def load_npz(path: Path, max_bytes: int = MAX_BYTES) -> Trajectories:
    """Read what `save_npz` wrote; never executes what stands in the file.

    Raises `TrajectoryError` for a file that is missing, cut, of another kind, lacks a field, or would fill more than
    `max_bytes`, whatever little room it takes on the disk.
    """
    try:
        with ZipFile(path) as archive:
            return _read(path, archive, max_bytes)
    except OSError as error:
        raise TrajectoryError(f"can't read {path}: {error.strerror or error}; expected {EXPECTED}") from error
    except TrajectoryError:
        raise
    except (BadZipFile, zlib.error, ValueError, EOFError, KeyError, NotImplementedError, RuntimeError) as error:
        raise TrajectoryError(f"can't read {path}: no whole NumPy archive; expected {EXPECTED}") from error


EXPECTED = "an .npz of trajectories"


def _read(path: Path, archive: ZipFile, max_bytes: int) -> Trajectories:
    members = {info.filename: info for info in archive.infolist()}
    missing = [name for name in FIELDS if f"{name}.npy" not in members]
    if missing:
        raise TrajectoryError(f"{path} lacks {', '.join(missing)}; expected the arrays {', '.join(FIELDS)}")
    sizes = {name: members[f"{name}.npy"].file_size for name in FIELDS}
    if sum(sizes.values()) > max_bytes:
        raise TrajectoryError(
            f"{path} would fill {sum(sizes.values()):,} bytes, expected at most {max_bytes:,}; write it in parts"
        )
    arrays = {}
    for name in FIELDS:
        with archive.open(members[f"{name}.npy"]) as stream:
            arrays[name] = _array(stream, path, name, sizes[name])
    return Trajectories(**arrays)


def _array(stream: IO[bytes], path: Path, name: str, size: int) -> NDArray:
    """One array; a header that promises more than the archive holds would make NumPy ask for all that memory."""
    version = npy.read_magic(stream)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read(stream)
    if dtype.kind not in "iufb":
        raise TrajectoryError(f"{path} holds {dtype} in {name}, expected numbers; objects are never loaded")
    count = 1
    for length in shape:
        count *= length  # Python's whole numbers, which don't overflow
    if count * dtype.itemsize > size:
        raise TrajectoryError(f"{path} is cut: {name} promises {count:,} values and holds fewer")
    values = np.frombuffer(stream.read(count * dtype.itemsize), dtype)
    stream.read(1)  # reaching the end checks the sum of the bytes
    array = values.reshape(shape[::-1]).T if fortran else values.reshape(shape)
    return array.copy()
