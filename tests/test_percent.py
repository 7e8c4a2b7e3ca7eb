"""Per cent, rounded: what is said of all or of none is true of all or of none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nser
from nser.percent import percent


@given(st.integers(1, 10**8).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))), st.integers(0, 3))
def test_all_and_none_are_said_of_all_and_none_only(counts: tuple[int, int], digits: int) -> None:
    some, of = counts
    told = percent(some / of, digits, "")
    assert (not told.startswith(">") and float(told.lstrip("<")) == 100) == (some == of)
    assert (not told.startswith("<") and float(told.lstrip(">")) == 0) == (some == 0)


@given(st.floats(0, 1), st.integers(0, 3))
def test_what_is_said_is_near_and_bounds_hold(share: float, digits: int) -> None:
    told = percent(share, digits, "")
    figure = float(told.lstrip("<>"))
    assert abs(figure - 100 * share) <= (1 if told[0] in "<>" else 0.5) * 10**-digits + 1e-9
    if told[0] in "<>":
        assert (share > figure / 100) == (told[0] == ">")


@pytest.mark.parametrize("sum_of_shares", [sum([0.1] * 10), 1 - 2**-53, 1.0])
def test_a_sum_that_misses_1_by_rounding_is_all(sum_of_shares: float) -> None:
    assert percent(sum_of_shares) == "100.0 %"


def test_no_other_code_rounds_a_share_to_per_cent() -> None:
    """Constants may be told as they are; a share that was measured may lie beside 0 or 1."""
    root = Path(nser.__file__).parent
    own = re.compile(r"100(\.0)? \* [^/]*:[.,0-9]*f\}|:\.\df\} %|format\(100 \*|\{[a-z_.\[\]\"']+:\.\d%\}")
    files = [path for path in root.rglob("*") if path.suffix in (".py", ".html") and path.name != "percent.py"]
    assert len(files) > 200
    lines = {(path.name, line.strip()) for path in files for line in path.read_text().splitlines() if own.search(line)}
    assert {name for name, line in lines if "style=" not in line and "math.floor" not in line} == set()
