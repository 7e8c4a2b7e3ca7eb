from __future__ import annotations

import pytest

from tests.replay import soak


def test_three_threads_leave_every_invariant_whole(backend: str) -> None:
    found = soak.run(200_000, capacity=1009)
    assert min(found.done.values()) > 0
    assert found.ignored > 0, "nothing came too late: the test shows less than it should"


@pytest.mark.slow
def test_three_threads_for_long() -> None:
    soak.run(2_000_000)
