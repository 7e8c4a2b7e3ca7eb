"""JSON from anybody: whatever is wrong with a text or file is a `ValueError` or `OSError`, never another error."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nser.files import open_file

MAX_BYTES = 2**26  # of a file that is read as one JSON value
MAX_LINE = 2**26  # characters of a line


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text. Raises `ValueError`, also for one that is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def read_json(path: Path, max_bytes: int = MAX_BYTES) -> Any:
    """The value of a JSON file. Raises `OSError` where it can't be read, `ValueError` for no JSON or a larger file."""
    with open_file(path) as stream:
        content = stream.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ValueError(f"it has more than {max_bytes:,} bytes")
    return parse_json(content)


def read_objects(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines; other lines, such as one that a kill cut short, are passed over.

    Raises `OSError` where the file can't be read.
    """
    with open_file(path) as raw, io.TextIOWrapper(raw, encoding="utf-8", errors="replace") as stream:
        while line := stream.readline(MAX_LINE):
            try:
                found = parse_json(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                yield found
