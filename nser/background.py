"""Slow judgements beside the learner: a thread, a bounded queue, and figures that say how far behind it is.

The learner never waits: a job that finds no room is dropped and counted, results are fetched when the learner comes by,
and a judge that fails costs the job, not the run.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from nser.errors import NserError

Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass(frozen=True)
class BackgroundFigures:
    """How the work stands.

    submitted: jobs taken;  done, failed: of them;  dropped: jobs that found no room;  backlog: waiting or in work;
    total_seconds: of all jobs that ended;  mean_seconds: for one of them, 0 before the first
    """

    submitted: int
    done: int
    failed: int
    dropped: int
    backlog: int
    total_seconds: float
    mean_seconds: float


class Background(Generic[Job, Result]):
    """Runs `work` on one thread over jobs from a queue of at most `room`.

    An `NserError` of `work` counts as a failed job and is kept as `last_error`; any other exception is a defect,
    ends the thread, and is raised from the next call of `results`.
    """

    def __init__(self, work: Callable[[Job], Result], room: int = 8) -> None:
        if room < 1:
            raise ValueError(f"found room {room}, expected at least 1")
        self._work = work
        self._jobs: queue.Queue[Job | None] = queue.Queue(room)
        self._results: queue.SimpleQueue[tuple[Job, Result]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._submitted = self._done = self._failed = self._dropped = 0
        self._seconds = 0.0
        self._defect: BaseException | None = None
        self.last_error: NserError | None = None
        self._thread = threading.Thread(target=self._run, name="nser-background", daemon=True)
        self._thread.start()

    def has_room(self) -> bool:
        """Whether a job would be taken now: ask before making one that is dear to make."""
        return not self._jobs.full()

    def submit(self, job: Job) -> bool:
        """Queue a job; False, and counted, where there is no room."""
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            with self._lock:
                self._dropped += 1
            return False
        with self._lock:
            self._submitted += 1
        return True

    def results(self) -> list[tuple[Job, Result]]:
        """What is finished and was not fetched yet, in order; never waits."""
        if self._defect is not None:
            raise RuntimeError("the background work ended by a defect") from self._defect
        found = []
        while True:
            try:
                found.append(self._results.get_nowait())
            except queue.Empty:
                return found

    def figures(self) -> BackgroundFigures:
        """How the work stands now."""
        with self._lock:
            ended = self._done + self._failed
            return BackgroundFigures(
                self._submitted,
                self._done,
                self._failed,
                self._dropped,
                self._submitted - ended,
                self._seconds,
                self._seconds / ended if ended else 0.0,
            )

    def drain(self, timeout: float) -> bool:
        """Wait until nothing is queued or in work, at most `timeout` seconds; whether that came true."""
        deadline = time.monotonic() + timeout
        while self.figures().backlog and time.monotonic() < deadline and self._thread.is_alive():
            time.sleep(0.002)
        return not self.figures().backlog

    def close(self, timeout: float = 5.0) -> None:
        """Take no more work, drop what waits, and end the thread once the job in work is done or `timeout` is over."""
        while True:
            try:
                self._jobs.get_nowait()
            except queue.Empty:
                break
        self._jobs.put(None)
        self._thread.join(timeout)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            began = time.perf_counter()
            try:
                result = self._work(job)
            except NserError as error:
                self.last_error = error
                self._count(began, failed=True)
                continue
            except BaseException as error:
                self._defect = error
                self._count(began, failed=True)
                return
            self._results.put((job, result))
            self._count(began, failed=False)

    def _count(self, began: float, *, failed: bool) -> None:
        with self._lock:
            self._seconds += time.perf_counter() - began
            self._failed += failed
            self._done += not failed
