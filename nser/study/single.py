"""A cell run by `nser train`'s own session: one Stable-Baselines3 agent, the same conditions, the same rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from nser.agents.replay_buffer import IndexedReplayBuffer
from nser.envs.make import vocabulary_of
from nser.induce.proposing import Proposer
from nser.replay.index import ReplayIndex
from nser.rules.ruleset import RuleSet
from nser.runs.environment import evaluation_env
from nser.runs.evaluate import evaluate
from nser.runs.session import Session
from nser.runs.settings import RunSettings
from nser.scorers.placebo import PlaceboScorer
from nser.scorers.rules import RuleScorer
from nser.study.beforehand import events_beforehand, rules_beforehand
from nser.study.cells import Row
from nser.study.conditions import Condition
from nser.study.dealt import DealtScorer
from nser.study.explorers import explorer_of
from nser.study.judging import renewed
from nser.study.settings import StudySettings
from nser.study.stack import StackJob

NEVER = 1_000_000_000
FINEST = 64  # SB3 counts updates in whole numbers for so many steps at the most


class SingleRun:
    """One seed of a condition as an SB3 agent.

    A ratio becomes the nearest fraction with a denominator up to `FINEST`: so many gradient steps for so many
    environment steps.
    """

    def __init__(self, settings: StudySettings, job: StackJob, proposer: Proposer) -> None:
        (seed,) = job.seeds
        self.settings, self.condition, self.ratio, self.seed = settings, job.condition, job.ratio, seed
        self.proposer = proposer
        self.session = Session(_run_settings(settings, job))
        self.vocabulary = vocabulary_of(self.session.envs[0])
        self.buffer: IndexedReplayBuffer = self.session.buffer
        streams = self.session.streams
        self.buffer.index = ReplayIndex(self.buffer.buffer_size, self.condition.law(), streams.replay)
        self.buffer.feedback = self.condition.feedback
        if self.condition.explore in ("table", "less"):
            actions = int(self.session.agent.action_space.n)  # type: ignore[attr-defined]
            self.session.agent.explorer = explorer_of(self.condition, self.vocabulary, actions, streams.exploration)
        self._lots = np.random.default_rng(streams.placebo).random(self.buffer.buffer_size)
        if self.condition.boosted is not None:
            self.buffer.set_scorer(PlaceboScorer(self.condition.boosted, streams.placebo))
        if self.condition.rules in ("hand", "wrong"):
            self.put_in_force(rules_beforehand(self.vocabulary, self.condition.rules, audited=self.condition.audit))

    def run(self, report: Callable[[int], None]) -> list[Row]:
        """Train to the end; `report` is told the steps done at every evaluation."""
        callback = _Cell(self, report)
        # SB3 would print its own table every few episodes
        self.session.agent.learn(self.settings.steps, callback, NEVER)
        self.session.close()
        return callback.rows

    def induce(self, step: int) -> None:
        """Rules from what is stored, put in force where anything changes."""
        settings = self.condition.induction()
        trajectories = self.buffer.trajectories(newest=settings.window)
        before = self.session.ruleset
        ruleset = renewed(trajectories, self.vocabulary, self.proposer, settings, step=step, current=before)
        if ruleset is not None:
            self.put_in_force(ruleset)

    def put_in_force(self, ruleset: RuleSet) -> None:
        """Replay and explore by these rules, as the condition asks."""
        self.session.put_in_force(ruleset)
        if self.condition.replay == "placebo":
            rules = RuleScorer(ruleset, self.vocabulary)
            self.buffer.set_scorer(DealtScorer(rules, self._lots, lambda n: self.buffer.stored_rows()[-n:]))

    def row(self, step: int, training: list[bool | None], seconds: float) -> Row:
        """An evaluation; `training` holds the verdicts on the training episodes since the one before."""
        agent, settings = self.session.agent, self.settings
        found = evaluate(
            agent.policy, lambda: evaluation_env(settings.env), settings.eval_episodes, self.session.streams.evaluation
        )
        known = [verdict for verdict in training if verdict is not None]
        return {
            "environment": settings.env,
            "condition": self.condition.name,
            "ratio": self.ratio,
            "seed": self.seed,
            "step": step,
            "success": found.success,
            "return": round(found.mean_return, 6),
            "length": round(found.mean_length, 3),
            "train_success": round(float(np.mean(known)), 6) if known else None,
            "train_episodes": len(training),
            "updates": int(agent._n_updates),
            "rules": len(self.session.ruleset.rules) if self.session.ruleset else 0,
            "rule_share": round(float(self.buffer.index.stats().rule_share), 6),
            "cpu_seconds": round(seconds, 3),
        }


class _Cell(BaseCallback):
    """Evaluates at exact steps; induces on the border between two rollouts, where the buffer holds every step."""

    def __init__(self, cell: SingleRun, report: Callable[[int], None]) -> None:
        super().__init__()
        self.cell, self.report = cell, report
        self.rows: list[Row] = []
        self._evaluate_at = set(cell.settings.eval_steps)
        self._training: list[bool | None] = []
        self._induced = 0
        self._began = time.process_time()

    def _on_rollout_start(self) -> None:
        every = self.cell.condition.induce_every
        if self.cell.condition.judges and self.num_timesteps // every > self._induced:
            self._induced = self.num_timesteps // every
            self.cell.induce(self.num_timesteps)

    def _on_step(self) -> bool:
        self._training += [
            info.get("is_success")
            for info, done in zip(self.locals["infos"], self.locals["dones"], strict=True)
            if done
        ]
        if self.num_timesteps in self._evaluate_at:
            self.rows.append(self.cell.row(self.num_timesteps, self._training, time.process_time() - self._began))
            self._training = []
            self.report(self.num_timesteps)
        return True


def _run_settings(settings: StudySettings, job: StackJob) -> RunSettings:
    """What `nser train` would be told; what it has no words for is set afterwards."""
    updates = Fraction(job.ratio).limit_denominator(FINEST)
    condition = job.condition
    given: dict[str, Any] = {
        name: getattr(settings, name) for name in RunSettings.model_fields if name in StudySettings.model_fields
    }
    return RunSettings.model_validate(
        given
        | {
            "agent": "dqn",
            "llm": "symbolic",
            "seed": job.seeds[0],
            "buffer_size": min(settings.buffer_size, settings.steps),
            "replay": _replay(condition),
            "vlm": _events(settings, condition),
            "explore": "rules" if condition.explore == "rules" else "epsilon",
            "explore_share": condition.share,
            "train_freq": updates.denominator,
            "gradient_steps": updates.numerator,
            "target_update_interval": max(1, round(settings.target_every / job.ratio)),
        }
    )


def _replay(condition: Condition) -> str:
    # The placebo deals out the scores of rules, so that it needs them as `nser` does.
    return "nser" if condition.replay == "placebo" else condition.replay


def _events(settings: StudySettings, condition: Condition) -> str:
    if condition.replay != "vlm-rb":
        return ""
    env = evaluation_env(settings.env)
    events = events_beforehand(vocabulary_of(env))
    env.close()
    return "events:" + ";".join(events)
