"""Every error of nser: the data first, the wording in ``__str__``.

Each message says what was found, what was expected and the way out, so that the same error serves a
person, a program that reads the fields, and a prompt that asks a language model for a repair.
"""


def short(value: object, most: int = 80) -> str:
    """A value as it stands in a sentence: written out, and cut where it is long.

    >>> short("x" * 9, 6), short([1, 2])
    ("'xxxx…", '[1, 2]')
    """
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


class NserError(Exception):
    """Root of every error that nser raises on purpose; the command line prints it as one line.

    `exit_code` is what the command line leaves with: 2 for wrong use, 1 for a problem found on the way.
    """

    exit_code: int = 2
