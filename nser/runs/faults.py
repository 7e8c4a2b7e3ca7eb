"""What pydantic finds wrong with settings, as nser words it."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import ValidationError

from nser.rules.wording import nearest_name


def first_fault(error: ValidationError, known: Iterable[str]) -> str:
    """One sentence about the first wrong setting; `known` are the names that there are."""
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    match first["type"]:
        case "value_error":
            return str(first["ctx"]["error"])
        case "extra_forbidden":
            near = nearest_name(name, tuple(known))
            meant = f"did you mean {near}? " if near else ""
            return f"found setting {name}, which is unknown; {meant}expected one of {', '.join(known)}"
    expected = first["msg"].replace("Input should be", "expected", 1).replace("'", "")
    return f"found {name} = {first['input']!r}: {expected}"
