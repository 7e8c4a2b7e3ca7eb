"""Errors of the rollout store: the data first, the wording in ``__str__``.

Each also derives from ``ValueError``. A store that raised one of these is as it was before the call.
"""

from nser.errors import NserError, short


class RolloutError(NserError, ValueError):
    """A field of a rollout, a setting or an argument does not fit; ``field``, ``found``, ``expected``, ``way_out``.

    ``where`` says in which rollout, file or line, and is empty when there is only one.
    """

    def __init__(self, field: str, found: object, expected: str, way_out: str, where: str = "") -> None:
        super().__init__(field, found, expected, way_out, where)
        self.field = field
        self.found = found
        self.expected = expected
        self.way_out = way_out
        self.where = where

    def __str__(self) -> str:
        text = self.found if isinstance(self.found, str) else repr(self.found)
        short = text if len(text) <= 80 else f"{text[:77]}…"
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.field}: found {short}, expected {self.expected}. {self.way_out}"


class StoreStateError(NserError, ValueError):
    """A saved state does not fit the store, or its file is cut or foreign; ``field``, ``found``, ``expected``."""

    def __init__(self, field: str, found: object, expected: str) -> None:
        super().__init__(field, found, expected)
        self.field = field
        self.found = found
        self.expected = expected

    def __str__(self) -> str:
        return (
            f"state of a rollout store, {self.field}: found {short(self.found)}, expected {self.expected}. "
            "Build the store as it was when saved, or use RolloutStore.load; nothing was changed."
        )
