"""How a study's figures are written for people."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from nser.study.statistics import Estimate


def cell_text(name: str, ratio: float) -> str:
    """A condition with its ratio, for people."""
    return f"{name} at {ratio_text(ratio)}"


def ratio_text(ratio: float) -> str:
    """An update ratio as people write it.

    >>> ratio_text(0.25), ratio_text(1 / 3), ratio_text(1.0), ratio_text(0.3)
    ('1/4', '1/3', '1', '0.3')
    """
    fraction = Fraction(ratio).limit_denominator(1000)
    exact = fraction.numerator == 1 < fraction.denominator and float(fraction) == ratio
    return f"1/{fraction.denominator}" if exact else f"{ratio:g}"


def updates_text(ratio: float) -> str:
    """An update ratio as a heading.

    >>> updates_text(0.25), updates_text(2)
    ('1/4 update per environment step', '2 updates per environment step')
    """
    return f"{ratio_text(ratio)} update{'s' if ratio > 1 else ''} per environment step"


def estimate_text(estimate: Estimate) -> str:
    """A figure with its interval, if it has one.

    >>> estimate_text(Estimate(0.35, 0.301, 0.387)), estimate_text(Estimate(0.2, None, None))
    ('.350 [.301, .387]', '.200')
    """
    if estimate.low is None or estimate.high is None:
        return short(estimate.value)
    return f"{short(estimate.value)} [{short(estimate.low)}, {short(estimate.high)}]"


def short(value: float) -> str:
    """Three digits without the zero before the point, as is usual for shares.

    >>> short(0.25), short(-0.031), short(1.0), short(-0.0001)
    ('.250', '−.031', '1.000', '.000')
    """
    text = f"{abs(value):.3f}"
    sign = "−" if value < 0 and float(text) else ""
    return sign + (text[1:] if text.startswith("0") else text)


def listed(numbers: Sequence[int]) -> str:
    """Ascending numbers, runs of three or more written short.

    >>> listed([0, 1, 2, 3, 7, 9, 10])
    '0-3, 7, 9, 10'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)
