"""Training a run from its first step, or on from its last checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nser.rules.store import RuleSet
from nser.runs.archive import fitting, read_archive
from nser.runs.callback import Observer, RunCallback, Silent
from nser.runs.directory import MetricsLog, RunDirectory
from nser.runs.errors import RunError
from nser.runs.evaluate import Evaluation
from nser.runs.extend import extend
from nser.runs.session import Session
from nser.runs.settings import RunSettings

NEVER = 1_000_000_000
REPLIES = "replies"


@dataclass(frozen=True)
class Outcome:
    """What a finished run came to."""

    run: RunDirectory
    evaluation: Evaluation | None
    ruleset: RuleSet | None
    seconds: float


def train(path: Path, settings: RunSettings, *, overwrite: bool = False, observer: Observer | None = None) -> Outcome:
    """Train a new run in the folder `path`.

    Raises `RunExistsError`, `UnknownEnvironmentError`, `LockedError` while another process trains there, and `RunError`
    or `WriteError` where the disk refuses; the last checkpoint stays.
    """
    session = _session(path, settings)  # first: a run that can't be leaves no folder behind
    RunDirectory.require_free(path, overwrite=overwrite)
    with RunDirectory(path).claimed():
        run = RunDirectory.create(path, settings, overwrite=overwrite)
        return _begin(session, run, observer or Silent())


def resume(path: Path, *, steps: int | None = None, observer: Observer | None = None) -> Outcome:
    """Go on with a run from its last checkpoint; what was written after that is written again, the same.

    steps: where the run is to end, if later than it was to; see `extend`

    Raises `NoRunError`, `CheckpointError`, `LockedError` while another process trains there, and `RunError` for a run
    that is done.
    """
    run = RunDirectory.open(path)
    with run.claimed():
        if steps is not None:
            extend(run, steps)
        return _resume(run, observer or Silent())


def _resume(run: RunDirectory, observer: Observer) -> Outcome:
    path, settings = run.path, run.settings()
    if any(line["kind"] == "done" and line["step"] >= settings.steps for line in run.read_metrics()):
        raise RunError(
            path,
            f"run {path} is done: all its {settings.steps:,} steps are taken; look at {run.report}, or let it go on "
            "with --steps",
        )
    session = _session(path, settings)
    run.make_folders()
    if not run.checkpoint.exists():
        # Killed before the first checkpoint: nothing is kept, and the same seeds write the same again.
        run.rewind(-1, 0)
        return _begin(session, run, observer)
    state = read_archive(run.checkpoint)
    with fitting(run.checkpoint):
        version = int(state["session"]["rules_version"])
        session.load_state(state["session"], run.load_rules(version) if version else None)
        seen = int(state["callback"]["seen"])
    run.rewind(seen, version)
    log = MetricsLog(run.metrics)
    callback = RunCallback(session, run, log, observer)
    with fitting(run.checkpoint):
        callback.load_state(state["callback"])
    return _learn(session, run, log, callback)


def _begin(session: Session, run: RunDirectory, observer: Observer) -> Outcome:
    log = MetricsLog(run.metrics)
    return _learn(session, run, log, RunCallback(session, run, log, observer))


def _session(path: Path, settings: RunSettings) -> Session:
    session = Session(settings, path / REPLIES)
    if session.inducing is not None:
        _ = session.inducing.proposer  # a model that can't be had is better missed now than after the first episodes
    return session


def _learn(session: Session, run: RunDirectory, log: MetricsLog, callback: RunCallback) -> Outcome:
    agent = session.agent
    left = session.settings.steps - agent.num_timesteps
    try:
        if left > 0:
            # SB3 would print its own table every few episodes; the run's metrics are written by the callback.
            agent.learn(left, callback, NEVER, reset_num_timesteps=agent.num_timesteps == 0)
        else:
            callback.init_callback(agent)
            callback.num_timesteps = agent.num_timesteps
        evaluation = callback.finish()
    finally:
        log.close()
        session.close()
    return Outcome(run, evaluation, session.ruleset, callback.seconds)
