"""What a user of `nser study` can run into."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nser.errors import NserError
from nser.rules.wording import nearest_name


class StudyError(NserError, ValueError):
    """A study that can't be run as asked."""


class UnknownConditionError(StudyError):
    """A word that names no condition; `found` and the `known` ones."""

    def __init__(self, found: str, known: Sequence[str]) -> None:
        super().__init__(found, known)
        self.found, self.known = found, tuple(known)

    def __str__(self) -> str:
        near = nearest_name(self.found, self.known)
        meant = f"did you mean {near}? " if near else ""
        return f"found condition {self.found!r}; {meant}expected one of {', '.join(self.known)}"


class OverrideError(StudyError):
    """A `key=value` after a condition's name that means nothing; which `condition`, what was `found` and `expected`."""

    def __init__(self, condition: str, found: str, expected: str) -> None:
        super().__init__(condition, found, expected)
        self.condition, self.found, self.expected = condition, found, expected

    def __str__(self) -> str:
        return f"found {self.found!r} in condition {self.condition!r}, expected {self.expected}"


class DifferentStudyError(StudyError):
    """The directory holds a study with other settings; `differing` maps a setting to (there, asked)."""

    def __init__(self, path: Path, differing: dict[str, tuple[object, object]]) -> None:
        super().__init__(path, differing)
        self.path, self.differing = path, differing

    def __str__(self) -> str:
        told = "; ".join(
            f"{name} is {there!r} there, {asked!r} was asked" for name, (there, asked) in self.differing.items()
        )
        return f"{self.path} holds a study with other settings: {told}; take those settings, or another directory"


class NoStudyError(StudyError):
    """There is no study where one was named."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason)
        self.path, self.reason = path, reason

    def __str__(self) -> str:
        return f"{self.path} is no study: {self.reason}; name a directory that `nser study` made"


class WorkerDiedError(StudyError):
    """A worker process ended without a word, as one does that the system killed for want of memory."""

    exit_code = 1

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return (
            f"a worker process of the study in {self.path} died, probably for want of memory; finished cells are kept: "
            "start it again with fewer --workers, or with a smaller stack_size or buffer_size"
        )


class NothingKnownError(StudyError):
    """A condition needs a file that the `vocabulary` lacks, with this `ending`; the `known` vocabularies have one."""

    def __init__(self, vocabulary: str, ending: str, known: Sequence[str]) -> None:
        super().__init__(vocabulary, ending, known)
        self.vocabulary, self.ending, self.known = vocabulary, ending, tuple(known)

    def __str__(self) -> str:
        return (
            f"found no {self.vocabulary}.{self.ending}, expected it beside those for {', '.join(self.known)}; "
            "leave out the conditions that need it"
        )


class NoResultsError(StudyError):
    """There is nothing to make a table of."""


class BaselineError(StudyError):
    """A baseline that the study does not hold; `found`, `known`."""

    def __init__(self, found: str, known: Sequence[str]) -> None:
        super().__init__(found, known)
        self.found, self.known = found, known

    def __str__(self) -> str:
        known = ", ".join(self.known)
        return f"found baseline {self.found}, which has no whole run in this study; expected one of {known}"
