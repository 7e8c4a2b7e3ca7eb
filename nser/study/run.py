"""Running the cells of a study that are not done yet, stacks side by side in processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache
from multiprocessing.queues import SimpleQueue
from pathlib import Path

from nser.induce.cassette import Cassette
from nser.induce.proposers import proposer_of
from nser.induce.proposing import NoProposer, Proposer
from nser.induce.symbolic import SymbolicProposer
from nser.study.beforehand import events_beforehand, rules_beforehand
from nser.study.cells import Cell, Row, StudyDirectory
from nser.study.conditions import Condition, condition_of
from nser.study.errors import WorkerDiedError
from nser.study.explorers import explorer_of
from nser.study.settings import StudySettings
from nser.study.single import SingleRun
from nser.study.stack import Stack, StackJob
from nser.study.world import World

Report = Callable[[int, int, str], None]
"""`done, total, text`: environment steps done and to do over all cells of this call, and what is going on."""

POLL = 0.5  # seconds between two looks at what the workers have reported


def run_study(settings: StudySettings, directory: Path, report: Report) -> None:
    """Run every cell of `settings` that `directory` does not hold yet, and add its rows to `evaluations.jsonl`.

    A stack's rows are written once all its cells are done; a study that is interrupted begins its unfinished stacks
    again. Raises `StudyError` (its subclasses say what is wrong), `UnknownEnvironmentError`, `WriteError`, and
    `LockedError` while another process runs the study.
    """
    conditions = [condition_of(name) for name in settings.conditions]
    check_world(settings, conditions)
    study = StudyDirectory(directory)
    with study.claimed():
        study.open(settings)
        jobs = pending(settings, conditions, study.finished())
        progress = _Progress(report, settings.steps * sum(len(job.seeds) for job in jobs))
        progress.tell("")
        if settings.workers == 1 or len(jobs) <= 1:
            _run_here(settings, study, jobs, progress)
        else:
            _run_in_processes(settings, study, jobs, progress)


def check_world(settings: StudySettings, conditions: Sequence[Condition]) -> None:
    """Raise before hours of work what would be raised in the middle of it."""
    world = World.of(settings.env, settings.unseen)
    for condition in conditions:
        explorer_of(condition, world.vocabulary, world.actions, 0)
        if condition.rules in ("hand", "wrong"):
            rules_beforehand(world.vocabulary, condition.rules)
        if condition.replay == "vlm-rb":
            events_beforehand(world.vocabulary)


def pending(settings: StudySettings, conditions: Sequence[Condition], done: set[Cell]) -> list[StackJob]:
    """The stacks of all cells that are not done, the longest first."""
    jobs = []
    for condition in conditions:
        for ratio in settings.ratios:
            seeds = [s for s in settings.seed_numbers if Cell(condition.name, ratio, s) not in done]
            size = settings.stack_size if settings.agent == "stacked" else 1
            jobs += [
                StackJob(condition, ratio, tuple(seeds[first : first + size])) for first in range(0, len(seeds), size)
            ]
    return sorted(jobs, key=lambda job: -_cost(job))


def run_job(settings: StudySettings, job: StackJob, directory: Path, report: Callable[[int], None]) -> list[Row]:
    """The rows of a stack's cells; `report` is told its environment steps, summed over seeds."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # small matrices: more threads only wait for each other
    try:
        proposer = _proposer(job.condition, settings.llm, directory / "replies")
        trained = SingleRun if settings.agent == "sb3" else Stack
        return trained(settings, job, proposer).run(lambda step: report(step * len(job.seeds)))
    finally:
        torch.set_num_threads(threads)


def _cost(job: StackJob) -> float:
    """Time of a stack, in no unit: a step, an update, and what inductions add to both."""
    return len(job.seeds) * (1 + 3 * job.ratio + 2 * job.condition.induces)


@cache
def _model(llm: str, replies: Path) -> Proposer:
    """Loaded once in each process."""
    return proposer_of(llm if llm.startswith("both:") else f"both:{llm}", Cassette(replies))


def _proposer(condition: Condition, llm: str, replies: Path) -> Proposer:
    match condition.rules:
        case "induced-llm":
            return _model(llm, replies)
        case "hand" | "wrong":
            return NoProposer()
        case _:
            return SymbolicProposer()


class _Progress:
    """Adds up what jobs report."""

    def __init__(self, report: Report, total: int) -> None:
        self._report, self._total = report, total
        self._done: dict[int, int] = {}

    def advance(self, job: int, steps: int) -> None:
        """Job number `job` has taken so many steps in all."""
        self._done[job] = steps

    def tell(self, text: str) -> None:
        """Report the sum."""
        self._report(sum(self._done.values()), self._total, text)


def _named(job: StackJob) -> str:
    seeds = f"seeds {job.seeds[0]}–{job.seeds[-1]}" if len(job.seeds) > 1 else f"seed {job.seeds[0]}"
    return f"{job.condition.name} at {job.ratio:g}, {seeds}"


def _run_here(settings: StudySettings, study: StudyDirectory, jobs: Sequence[StackJob], progress: _Progress) -> None:
    for number, job in enumerate(jobs):

        def report(steps: int, number: int = number, job: StackJob = job) -> None:
            progress.advance(number, steps)
            progress.tell(_named(job))

        study.append(run_job(settings, job, study.path, report))


def _run_in_processes(
    settings: StudySettings, study: StudyDirectory, jobs: Sequence[StackJob], progress: _Progress
) -> None:
    context = multiprocessing.get_context("spawn")  # threads of torch and numba do not outlive a fork
    reports: SimpleQueue[tuple[int, int]] = context.SimpleQueue()
    workers = min(settings.workers, len(jobs))
    with _pool(ProcessPoolExecutor(workers, context, _prepare, (reports,))) as pool:
        waiting = {pool.submit(_in_worker, settings, job, study.path, number): job for number, job in enumerate(jobs)}
        while waiting:
            ended, _ = wait(waiting, POLL, FIRST_COMPLETED)
            while not reports.empty():
                progress.advance(*reports.get())
            for future in ended:
                study.append(_rows_of(future, study.path))
                del waiting[future]
            progress.tell(", ".join(_named(job) for future, job in waiting.items() if future.running()))


def _rows_of(future: Future[list[Row]], path: Path) -> list[Row]:
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise WorkerDiedError(path) from error


@contextmanager
def _pool(pool: ProcessPoolExecutor) -> Iterator[ProcessPoolExecutor]:
    """Ends the workers at once where the block is left by an error or an interrupt: their stacks begin again."""
    try:
        yield pool
    except BaseException:
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_reports: SimpleQueue[tuple[int, int]] | None = None


def _prepare(reports: SimpleQueue[tuple[int, int]]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()
    global _reports  # noqa: PLW0603 - a worker process has one
    _reports = reports


def _end_with_parent() -> None:
    """A worker whose parent was killed would work on, and then wait for ever for somebody to take what it found."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _in_worker(settings: StudySettings, job: StackJob, directory: Path, number: int) -> list[Row]:
    assert _reports is not None
    tell = _reports
    return run_job(settings, job, directory, lambda steps: tell.put((number, steps)))
