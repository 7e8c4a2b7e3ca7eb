from __future__ import annotations

import threading

import pytest

from nser.background import Background
from nser.errors import NserError


class Gate:
    """Work that waits until a test lets it go."""

    def __init__(self) -> None:
        self.open, self.started = threading.Event(), threading.Event()

    def work(self, job: int) -> int:
        self.started.set()
        assert self.open.wait(10)
        return job * job


def test_results_come_in_order_and_once() -> None:
    background: Background[int, int] = Background(lambda job: job * job, room=20)
    assert all(background.submit(job) for job in range(10))
    assert background.drain(10)
    assert background.results() == [(job, job * job) for job in range(10)]
    assert background.results() == []
    background.close()


def test_the_learner_never_waits_and_what_has_no_room_is_counted() -> None:
    gate = Gate()
    background = Background(gate.work, room=2)
    background.submit(0)
    assert gate.started.wait(10)
    assert background.submit(1)
    assert background.submit(2)
    assert not background.has_room()
    assert not background.submit(3)
    assert background.results() == []
    figures = background.figures()
    assert (figures.submitted, figures.dropped, figures.backlog, figures.done) == (3, 1, 3, 0)
    gate.open.set()
    assert background.drain(10)
    assert [job for job, _ in background.results()] == [0, 1, 2]
    background.close()


class SpokenError(NserError):
    pass


def test_a_failed_job_costs_the_job_alone() -> None:
    def work(job: int) -> int:
        if job == 1:
            raise SpokenError("no")
        return job

    background = Background(work, room=5)
    for job in range(3):
        background.submit(job)
    assert background.drain(10)
    assert background.results() == [(0, 0), (2, 2)]
    assert (background.figures().failed, background.figures().done) == (1, 2)
    assert isinstance(background.last_error, SpokenError)
    background.close()


def test_a_defect_is_not_swallowed() -> None:
    def work(job: int) -> int:
        raise ZeroDivisionError(job)

    background = Background(work, room=5)
    background.submit(1)
    background._thread.join(10)
    with pytest.raises(RuntimeError, match="defect") as caught:
        background.results()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_close_drops_what_waits() -> None:
    gate = Gate()
    background = Background(gate.work, room=5)
    for job in range(4):
        background.submit(job)
    assert gate.started.wait(10)
    threading.Timer(0.05, gate.open.set).start()
    background.close()
    assert not background._thread.is_alive()
    assert [job for job, _ in background.results()] == [0]
    with pytest.raises(ValueError, match="room 0"):
        Background(gate.work, room=0)
