"""Errors of the replay index: the data first, the wording in ``__str__``.

Each also derives from the built-in error that a caller would expect (``ValueError``, ``IndexError``,
``LookupError``), so that code which knows nothing of nser still catches it. An index that raised one of
these is as it was before the call.
"""

from nser.errors import NserError, short


class ReplayError(NserError):
    """Root of the errors of ``nser.replay``."""


class ArgumentError(ReplayError, ValueError):
    """An argument of a call is of the wrong size or kind; ``argument``, ``found``, ``expected``, ``way_out``."""

    def __init__(self, argument: str, found: object, expected: str, way_out: str) -> None:
        super().__init__(argument, found, expected, way_out)
        self.argument = argument
        self.found = found
        self.expected = expected
        self.way_out = way_out

    def __str__(self) -> str:
        return f"{self.argument}: found {short(self.found)}, expected {self.expected}. {self.way_out}"


class LawError(ArgumentError):
    """A field of a ``Law``, a ``Schedule`` or a preset is out of its range; ``argument`` names the field."""


class SignalError(ReplayError, ValueError):
    """One of the signals is NaN, infinite or negative.

    Attributes: ``found`` the value; ``position`` its place in the array that was passed; ``slot`` the slot
    that it was meant for, −1 for an item that was not yet stored.
    """

    def __init__(self, found: float, position: int, slot: int = -1) -> None:
        super().__init__(found, position, slot)
        self.found = found
        self.position = position
        self.slot = slot

    def __str__(self) -> str:
        where = f"slot {self.slot}" if self.slot >= 0 else "a new item"
        return (
            f"signal[{self.position}] = {self.found} for {where}, expected a finite number ≥ 0. "
            "Pass |TD error| or |advantage|, and look for the NaN in the loss that made it; nothing was changed."
        )


class RelevanceError(ReplayError, ValueError):
    """One of the relevances lies outside [0, 1]; ``found``, ``position`` and ``slot`` as in ``SignalError``."""

    def __init__(self, found: float, position: int, slot: int = -1) -> None:
        super().__init__(found, position, slot)
        self.found = found
        self.position = position
        self.slot = slot

    def __str__(self) -> str:
        where = f"slot {self.slot}" if self.slot >= 0 else "a new item"
        return (
            f"relevance[{self.position}] = {self.found} for {where}, expected a number in [0, 1]. "
            "Rescale the scores; their strength is the law's η. Nothing was changed."
        )


class SlotError(ReplayError, IndexError):
    """A slot lies outside the index; ``slot``, ``position``, ``capacity``."""

    def __init__(self, slot: int, position: int, capacity: int) -> None:
        super().__init__(slot, position, capacity)
        self.slot = slot
        self.position = position
        self.capacity = capacity

    def __str__(self) -> str:
        return (
            f"slots[{self.position}] = {self.slot}, expected 0 ≤ slot < {self.capacity} (the capacity). "
            "Pass slots that this index gave; nothing was changed."
        )


class EmptyIndexError(ReplayError, LookupError):
    """A draw from an index that holds no eligible item; ``capacity``, ``clock``."""

    def __init__(self, capacity: int, clock: int) -> None:
        super().__init__(capacity, clock)
        self.capacity = capacity
        self.clock = clock

    def __str__(self) -> str:
        return (
            f"nothing to draw: 0 of {self.capacity} slots hold an eligible item at clock {self.clock}. "
            "Insert before drawing, or raise max_age if every item grew too old."
        )


class CheckpointError(ReplayError, ValueError):
    """A saved state does not fit; ``field``, ``found``, ``expected``. Nothing was changed."""

    def __init__(self, field: str, found: object, expected: str) -> None:
        super().__init__(field, found, expected)
        self.field = field
        self.found = found
        self.expected = expected

    def __str__(self) -> str:
        return (
            f"checkpoint field {self.field}: found {short(self.found)}, expected {self.expected}. "
            "Build the index as it was when saved, or use ReplayIndex.load; nothing was changed."
        )


class ZeroWeightWarning(UserWarning):
    """Every eligible item has weight zero, so the index draws uniformly (said once an index)."""
