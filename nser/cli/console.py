"""The two streams of the command line: results go to `out`, everything said about them to `err`."""

from __future__ import annotations

import json
import math
from typing import Any

from rich.console import Console

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    """One JSON document on standard output, for machines."""
    print(json.dumps(value, indent=2))


def number(value: float | None, digits: int = 3) -> str:
    """A figure for a table; a dash where there is none."""
    return "–" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def percent(value: float | None) -> str:
    """A share for a table."""
    return "–" if value is None or math.isnan(value) else f"{100 * value:.1f}%"
