"""A stack: seeds of one condition and ratio, trained side by side as one batched network."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nser.induce.proposing import Proposer
from nser.runs.session import Streams
from nser.study.cells import Row
from nser.study.conditions import Condition
from nser.study.greedy import GreedyEvaluations
from nser.study.learner import StackedLearner
from nser.study.member import Member, Place, drawn
from nser.study.ring import Ring, Transitions
from nser.study.settings import StudySettings
from nser.study.world import TrainingEnvs, World

SCORE_EVERY = 100  # new transitions that wait for their score together; one by one, the call costs more than the score


@dataclass(frozen=True)
class StackJob:
    """What a stack runs: a condition, updates per environment step, and the seeds."""

    condition: Condition
    ratio: float
    seeds: tuple[int, ...]


class Stack:
    """Trains `S` seeds in lockstep; `run` gives the rows of all its cells.

    At each step every member acts and stores; then, where they are due: induction, updates, evaluation. Members share
    nothing but the clock, so a seed's figures do not depend on who else is in its stack (but for the order in which a
    batched product of matrices adds up).
    """

    def __init__(self, settings: StudySettings, job: StackJob, proposer: Proposer) -> None:
        self.settings, self.job = settings, job
        self.world = World.of(settings.env, settings.unseen)
        streams = [Streams.of(seed) for seed in job.seeds]
        self.envs = TrainingEnvs(self.world, [stream.environment for stream in streams])
        self.evaluations = GreedyEvaluations(
            self.world, [stream.evaluation for stream in streams], settings.eval_episodes
        )
        self.ring = Ring(len(job.seeds), min(settings.buffer_size, settings.steps), self.world.width)
        self.members = [
            Member(job.condition, self.world, stream, Place(self.ring, number), proposer)
            for number, stream in enumerate(streams)
        ]
        networks = [stream.network for stream in streams]
        self.learner = StackedLearner(settings, self.world.encode, self.world.inputs, self.world.actions, networks)
        self.rows: list[Row] = []
        self._success: list[list[bool]] = [[] for _ in job.seeds]
        self._ended = np.zeros(len(job.seeds), np.int64)
        self._told = 0  # transitions of each member that its index knows of

    def run(self, report: Callable[[int], None]) -> list[Row]:
        """Train to the end; `report` is told the steps done at every evaluation."""
        began = time.process_time()
        evaluate_at = set(self.settings.eval_steps)
        for step in range(1, self.settings.steps + 1):
            self._act(step)
            self._rules(step)
            self._update(step)
            if step in evaluate_at:
                self._evaluate(step, time.process_time() - began)
                report(step)
        self.envs.close()
        self.evaluations.close()
        return self.rows

    def epsilon(self, step: int) -> float:
        """Rate of random actions at a step, from 1 down; as in `nser train`, every action of the warm-up is random."""
        settings = self.settings
        if step <= settings.learning_starts:
            return 1.0
        falling = settings.exploration_fraction * settings.steps
        done = min((step - 1) / falling, 1.0) if falling else 1.0
        return 1.0 + done * (settings.exploration_final_eps - 1.0)

    def _act(self, step: int) -> None:
        rate, before = self.epsilon(step), self.envs.observations
        explores = [bool(member.explorer.explores(1, rate)[0]) for member in self.members]
        actions = np.zeros(len(self.members), np.int64) if all(explores) else self.learner.greedy_one_each(before)
        for number, member in enumerate(self.members):
            if explores[number]:
                actions[number] = member.explorer.actions(before[number : number + 1])[0]
        found = self.envs.step(actions)
        self.ring.add(
            Transitions(before, actions, found.rewards, found.next_observations, found.terminated, found.finished)
        )
        for number, success in found.success:
            self._ended[number] += 1
            if success is not None:
                self._success[number].append(success)

    def _rules(self, step: int) -> None:
        condition = self.job.condition
        if step % SCORE_EVERY == 0:
            self._tell()
            for member in self.members:
                member.score_new()
        if condition.judges and step % condition.induce_every == 0:
            self._tell()
            for member in self.members:
                member.induce(step)

    def _update(self, step: int) -> None:
        if step <= self.settings.learning_starts:
            return
        # Counted in whole numbers of what is due: a ratio such as 1/3 neither drifts nor bunches.
        due = int(step * self.job.ratio + 1e-9) - int((step - 1) * self.job.ratio + 1e-9)
        for _ in range(due):
            self._tell()
            draws, slots, weights = drawn(self.members, self.settings.batch_size)
            errors = self.learner.update(self.ring.gather(slots), weights)
            if self.job.condition.feedback:
                for member, draw, error in zip(self.members, draws, errors, strict=True):
                    member.index.update(draw, error)

    def _tell(self) -> None:
        """Make items of what was stored since the last time: nothing has asked the indexes in between."""
        new = self.ring.stored - self._told
        if new:
            self._told = self.ring.stored
            for member in self.members:
                member.stored(new)

    def _evaluate(self, step: int, seconds: float) -> None:
        self._tell()
        found = self.evaluations.run(self.learner.greedy)
        for number, (seed, member) in enumerate(zip(self.job.seeds, self.members, strict=True)):
            success = self._success[number]
            row: Row = {
                "environment": self.settings.env,
                "condition": self.job.condition.name,
                "ratio": self.job.ratio,
                "seed": seed,
                "step": step,
                "success": found[number].success,
                "return": round(found[number].mean_return, 6),
                "length": round(found[number].mean_length, 3),
                "train_success": round(float(np.mean(success)), 6) if success else None,
                "train_episodes": int(self._ended[number]),
                "updates": self.learner.updates,
                "rules": len(member.ruleset.rules) if member.ruleset else 0,
                "rule_share": round(member.rule_share(), 6),
                "cpu_seconds": round(seconds / len(self.members), 3),
            }
            self.rows.append(row)
            success.clear()
        self._ended[:] = 0
