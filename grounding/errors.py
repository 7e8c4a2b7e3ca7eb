"""What can go wrong between a rule and the numbers it is about."""

from __future__ import annotations

from nser.errors import NserError


class VocabularyError(NserError, ValueError):
    """A vocabulary that was declared wrongly; the message names the predicate and the way out."""


class DegreeError(NserError, ValueError):
    """A predicate gave something that is no truth degree, or no finite number.

    Attributes: `name` (predicate with its arguments, or feature), `row` (index in the batch), `value`,
    `expected` (in words).
    """

    def __init__(self, name: str, row: int, value: float, expected: str) -> None:
        super().__init__(name, row, value, expected)
        self.name, self.row, self.value, self.expected = name, row, value, expected

    def __str__(self) -> str:
        return (
            f"{self.name} gave {self.value:g} at row {self.row}, expected {self.expected}; "
            "mend the predicate's function or the observation it reads"
        )


class UngroundedError(NserError, ValueError):
    """A formula that this vocabulary or this kind of data can't give a degree to."""


class ImplicationWarning(UserWarning):
    """Someone scores steps by the truth of implications."""

    def __str__(self) -> str:
        return (
            "scoring by the truth of the implication gives nearly all of the replay to steps of which the rules say "
            "nothing, because an implication is true wherever its body is false; use mode='support'"
        )


class FitError(NserError, ValueError):
    """Data from which nothing can be learnt; the message says what was found and what is needed."""
