"""What happens between two rollouts, in this order: induce, log, evaluate, save."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any, Protocol

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from nser.induce.loop import Induction
from nser.runs.archive import write_archive
from nser.runs.directory import MetricsLog, RunDirectory
from nser.runs.edits import RuleEdits
from nser.runs.environment import evaluation_env
from nser.runs.errors import RunStopped
from nser.runs.evaluate import Evaluation, evaluate
from nser.runs.owed import rule_shares
from nser.runs.session import NoContrastError, Session

BESIDE = "models"  # seconds of language models and judges of clips, on threads of their own


class Observer(Protocol):
    """Who watches a run: the command line, a notebook, nobody."""

    def progress(self, step: int, success: float | None, mean_return: float | None, rules: int) -> None:
        """The run has come to this step."""

    def say(self, message: str) -> None:
        """Something that a person should read, once."""

    def stopping(self) -> bool:
        """Whether the run should save and stop at the next border."""


class Silent:
    """Watches without a word."""

    def progress(self, step: int, success: float | None, mean_return: float | None, rules: int) -> None:
        """Nothing."""

    def say(self, message: str) -> None:
        """Nothing."""

    def stopping(self) -> bool:
        """Never."""
        return False


class RunCallback(BaseCallback):
    """Drives a session from inside SB3's loop.

    Everything is done on the border between two rollouts, where buffer, index and network agree; `seen` is the last
    border that was dealt with, so that a resumed run does nothing twice.
    """

    def __init__(self, session: Session, run: RunDirectory, log: MetricsLog, observer: Observer) -> None:
        super().__init__()
        self.session, self.run, self.log, self.observer = session, run, log, observer
        self.seen = 0
        self.seconds_before = 0.0
        self._began = time.perf_counter()
        self._beside_before = 0.0
        self._episodes_before: int | None = None
        self._told_fallback = False
        self._label: str = session.settings.label  # that rules were judged by last
        self._loss_before: float | None = None
        self.edits = RuleEdits(run.rules)

    @property
    def seconds(self) -> float:
        """Wall-clock time of the run so far, earlier parts included."""
        return self.seconds_before + time.perf_counter() - self._began

    def state(self) -> dict[str, Any]:
        """Session and own counters, for the checkpoint."""
        own = {"seen": self.seen, "seconds": self.seconds, "told_fallback": self._told_fallback, "cost": self._cost()}
        own["label"] = self._label
        own["batch_episodes"] = self._batch_episodes()
        own["loss"] = self._loss()
        return {"session": self.session.state(), "callback": own}

    def load_state(self, own: dict[str, Any]) -> None:
        """Take over the counters of a checkpoint; the session is loaded by its owner."""
        self.seen, self.seconds_before = int(own["seen"]), float(own["seconds"])
        self._told_fallback = bool(own["told_fallback"])
        self._label = str(own.get("label", self._label))  # checkpoints of earlier versions have none
        self._loss_before = own.get("loss")
        self._episodes_before = own.get("batch_episodes")
        cost = own.get("cost", {})  # checkpoints of earlier versions have none
        self._beside_before = float(cost.get(BESIDE, 0.0))
        self.session.clock.go_on(cost)

    def _on_step(self) -> bool:
        if self.session.watching is not None:
            self.session.watching.on_step(self.locals["dones"])
        return True

    def _on_rollout_start(self) -> None:
        self.session.clock.switch("other")
        if self.num_timesteps != self.seen:
            self._on_border(self.num_timesteps)
        self.session.clock.switch("acting")

    def _on_rollout_end(self) -> None:
        self.session.clock.switch("learning")

    def _on_border(self, step: int) -> None:
        settings = self.session.settings
        if self.session.watching is not None:
            self.session.watching.flush()
        self._take_late_rules(step)
        if settings.uses_rules and self._due(step, settings.induce_every):
            self._induce(step)
        if self._due(step, settings.log_every):
            self._log(step)
        if self._due(step, settings.eval_every):
            self._evaluate(step)
        save = self._due(step, settings.checkpoint_every)
        self.seen = step
        if save:
            self.save()
        if step % 200 < settings.n_envs * settings.train_freq:
            self._tell_progress(step)
        if self.observer.stopping():
            if not save:
                self.save()
            raise RunStopped(self.run.path, step)

    def save(self) -> None:
        """Write a checkpoint beside the old one and put it in its place.

        Saving changes nothing: what waits for its score waits on, so that a stopped run goes on as if it had not been.
        """
        write_archive(self.run.checkpoint, self.state())

    def finish(self) -> Evaluation | None:
        """Log, evaluate on the final episodes and save, once the last step is done."""
        step = self.num_timesteps
        settings = self.session.settings
        self.session.clock.switch("other")
        final = self._run_evaluation(settings.final_episodes) if settings.final_episodes else None
        if step != self.seen:
            self._log(step)
        # `seen` stays at the border before: a run that is given more steps has this one still to deal with.
        self.save()
        self.log.write("done", step, seconds=round(self.seconds, 3), cost=self._cost(), **_evaluation(final))
        self._tell_progress(step)
        return final

    def _due(self, step: int, every: int) -> bool:
        return step // every > self.seen // every

    def _take_edits(self, step: int) -> None:
        """Rule files that a person edited come into force, or are refused with their line."""
        assert self.session.vocabulary is not None
        ruleset, said = self.edits.take(self.session.ruleset, self.session.vocabulary, step)
        for message in said:
            self.observer.say(message)
        if ruleset is not None:
            self.run.save_rules(ruleset)
            self.session.put_in_force(ruleset)
            self.log.write("edit", step, version=ruleset.version, rules=[rule.name for rule in ruleset.rules])

    def _induce(self, step: int) -> None:
        self._take_edits(step)
        began = time.perf_counter()
        try:
            with self.session.clock.during("induction"):
                result = self.session.induce(step)
        except NoContrastError as reason:
            if not self._told_fallback:
                self._told_fallback = True
                instead = "PER" if self.session.settings.replay == "nser" else self.session.settings.replay
                self.observer.say(f"step {step:,}: no rules yet, for {reason}; replaying by {instead} meanwhile")
            return
        if result is not None:
            self._keep(result, step, time.perf_counter() - began)

    def _take_late_rules(self, step: int) -> None:
        """What a language model has found meanwhile comes into force here, between two rollouts."""
        inducing = self.session.inducing
        if inducing is None:
            return
        result = self.session.late_induction()
        while inducing.warnings:
            self.observer.say(f"step {step:,}: {inducing.warnings.pop(0)}")
        if result is not None:
            self._keep(result, step, 0.0)

    def _keep(self, result: Induction, step: int, seconds: float) -> None:
        if result.ruleset is self.session.ruleset:
            self.run.save_rules(result.ruleset)
        self._tell_label(result.label, step)
        self.log.write("rules", step, **_induction(result), cost_seconds=round(seconds, 3))

    def _tell_label(self, label: str, step: int) -> None:
        """Say when novelty begins to judge rules in the label's place, and when it ends."""
        if label == self._label:
            return
        self._label = label
        if label == self.session.settings.label:
            self.observer.say(f"step {step:,}: enough good episodes; rules are judged by {label} from here on")
        else:
            self.observer.say(
                f"step {step:,}: fewer than {self.session.induction.min_firings} good episodes yet, so rules are "
                f"judged by {label}: what an action brings about for the first time in its episode"
            )

    def _log(self, step: int) -> None:
        agent = self.session.agent
        infos = agent.ep_info_buffer or ()
        index = self.session.buffer.index
        stats = index.stats() if len(index) else None
        shares = rule_shares(self.session)
        self.log.write(
            "train",
            step,
            seconds=round(self.seconds, 3),
            episodes=agent._episode_num,
            mean_return=_mean([info["r"] for info in infos]),
            mean_length=_mean([info["l"] for info in infos]),
            success=_mean(agent.ep_success_buffer or ()),
            epsilon=round(agent.exploration_rate, 6),
            loss=self._loss(),
            rules=len(self.session.ruleset.rules) if self.session.ruleset else 0,
            rule_share=stats.rule_share if stats else 0.0,
            effective_size=stats.effective_size if stats else 0.0,
            batch_episodes=self._batch_episodes(),
            owed=shares.owed,
            firing=shares.firing,
            cost=self._cost(),
            **self._clips(),
            **self._exploration(),
        )

    def _batch_episodes(self) -> int | None:
        """How many different episodes the newest batch showed, which may lie before a checkpoint."""
        buffer = self.session.buffer
        draw = buffer.last_draw
        if draw is None:
            return self._episodes_before
        return len(np.unique(buffer.episodes.reshape(-1)[draw.slots]))

    def _cost(self) -> dict[str, float]:
        """Seconds of each part so far, and of models that worked beside the learner."""
        inducing, watching = self.session.inducing, self.session.watching
        beside = self._beside_before + (inducing.model_seconds() if inducing else 0.0)
        beside += watching.scorer.background.figures().total_seconds if watching else 0.0
        parts = {part: round(seconds, 3) for part, seconds in self.session.clock.seconds().items()}
        return {**parts, BESIDE: round(beside, 3)}

    def _loss(self) -> float | None:
        """Of the newest gradient step, which may lie before a checkpoint."""
        found: float | None = self.session.agent.logger.name_to_value.get("train/loss", self._loss_before)
        return found

    def _clips(self) -> dict[str, Any]:
        watching = self.session.watching
        return {} if watching is None else {"clips": asdict(watching.scorer.figures())}

    def _exploration(self) -> dict[str, float]:
        state = self.session.explorer.state()
        return {name: state[name] for name in ("asked", "guided") if name in state}

    def _evaluate(self, step: int) -> None:
        result = self._run_evaluation(self.session.settings.eval_episodes)
        self.log.write("eval", step, **_evaluation(result))

    def _run_evaluation(self, episodes: int) -> Evaluation:
        settings = self.session.settings
        with self.session.clock.during("evaluation"):
            return evaluate(
                self.session.agent.policy,
                lambda: evaluation_env(settings.env),
                episodes,
                self.session.streams.evaluation,
            )

    def _tell_progress(self, step: int) -> None:
        agent = self.session.agent
        self.observer.progress(
            step,
            _mean(agent.ep_success_buffer or ()),
            _mean([info["r"] for info in agent.ep_info_buffer or ()]),
            len(self.session.ruleset.rules) if self.session.ruleset else 0,
        )


def _mean(values: Any) -> float | None:
    return round(float(np.mean(values)), 6) if len(values) else None


def _evaluation(result: Evaluation | None) -> dict[str, Any]:
    if result is None:
        return {}
    return {
        "episodes": result.episodes,
        "mean_return": round(result.mean_return, 6),
        "mean_length": round(result.mean_length, 3),
        "success": result.success,
    }


def _induction(result: Induction) -> dict[str, Any]:
    return {
        "version": result.ruleset.version,
        "kept": [rule.name for rule in result.ruleset.rules],
        "label": result.label,
        "refused": {v.rule: v.code for v in result.verdicts if not v.kept},
    }
