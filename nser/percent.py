"""A share as per cent, rounded so that it never claims more than it knows."""

from __future__ import annotations

EXACT = 1e-12  # a sum of shares misses 1 by as little; no count of items does


def percent(share: float, digits: int = 1, unit: str = " %") -> str:
    """A share in [0, 1] with so many digits behind the point: 100 is said of all only, and 0 of none only.

    >>> percent(0.125), percent(1.0), percent(0.0)
    ('12.5 %', '100.0 %', '0.0 %')
    >>> percent(0.9999), percent(0.9999, 0, "%"), percent(0.0001)
    ('>99.9 %', '>99%', '<0.1 %')
    """
    least = 10**-digits
    if EXACT < share < 1 - EXACT:
        if round(100 * share, digits) >= 100:
            return f">{100 - least:.{digits}f}{unit}"
        if round(100 * share, digits) <= 0:
            return f"<{least:.{digits}f}{unit}"
    return f"{100 * share:.{digits}f}{unit}"
