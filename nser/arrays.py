"""Archives of arrays, read without running what is in them."""

from __future__ import annotations

from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray


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
