"""The two streams of the command line: results go to `out`, everything said about them to `err`."""

from __future__ import annotations

import json
import math
from typing import Any

from rich.console import Console

from nser.percent import percent as as_percent

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    """One JSON document on standard output, for machines; null for what is no finite number, as JSON has none."""
    print(json.dumps(finite(value), indent=2, allow_nan=False))


def finite(value: Any) -> Any:
    """The same with None for NaN and infinities.

    >>> finite({"a": [1.5, math.nan], "b": (math.inf, "x")})
    {'a': [1.5, None], 'b': [None, 'x']}
    """
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: finite(inner) for key, inner in value.items()}
        case list() | tuple():
            return [finite(inner) for inner in value]
        case _:
            return value


def number(value: float | None, digits: int = 3) -> str:
    """A figure for a table; a dash where there is none."""
    return "–" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def counted(count: int, one: str, many: str = "") -> str:
    """A number with its noun.

    >>> counted(1, "rule"), counted(1200, "rule"), counted(2, "reply", "replies")
    ('1 rule', '1,200 rules', '2 replies')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def percent(value: float | None) -> str:
    """A share for a table."""
    return "–" if value is None or math.isnan(value) else as_percent(value, unit="%")
