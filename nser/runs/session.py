"""Everything that a run is made of, put together from its settings, and taken apart again into a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from nser.agents.dqn import DQN
from nser.agents.explore import Explorer, RuleExplorer, UniformExplorer
from nser.agents.replay_buffer import IndexedReplayBuffer
from nser.envs.make import vocabulary_of
from nser.errors import NserError
from nser.grounding.vocabulary import Vocabulary
from nser.induce.evidence import LEAST_EPISODES, label_for
from nser.induce.loop import Induction
from nser.induce.settings import InductionSettings
from nser.induce.standing import in_force
from nser.replay.law import Law
from nser.replay.presets import preset
from nser.rules.store import RuleSet
from nser.runs.clock import Clock, TimedEnvs, TimedReplayBuffer
from nser.runs.environment import training_env
from nser.runs.errors import UnsuitedEnvironmentError
from nser.runs.inducing import Inducing
from nser.runs.settings import RunSettings
from nser.runs.watching import FrameTap, Watching, judge_of
from nser.runs.weights import as_arrays, as_tensors, optimizer_state
from nser.scorers.clips import ClipSettings
from nser.scorers.events import EventScorer
from nser.scorers.placebo import PlaceboScorer
from nser.scorers.rules import RuleScorer


class NoContrastError(NserError):
    """Episodes from which nothing can be told apart yet."""


@dataclass(frozen=True)
class Streams:
    """One seed for each source of chance, so that a change in one leaves the others as they were."""

    environment: int
    network: int
    exploration: int
    replay: int
    placebo: int
    evaluation: int

    @classmethod
    def of(cls, seed: int) -> Streams:
        """Independent seeds from one."""
        return cls(*(int(s) for s in np.random.SeedSequence(seed).generate_state(6)))


class Session:
    """A run in memory: environments, vocabulary, agent, and the rules in force."""

    def __init__(self, settings: RunSettings, replies: Path | None = None) -> None:
        """`replies` is where calls of language models are recorded."""
        self.settings = settings
        self.streams = Streams.of(settings.seed)
        self.clock = Clock()
        seeds = [self.streams.environment + i for i in range(settings.n_envs)]
        self.envs = [training_env(settings.env, seed, renders=settings.renders) for seed in seeds]
        self.taps = [FrameTap(env) for env in self.envs] if settings.renders else []
        self.vocabulary = _vocabulary(self.envs[0], settings)
        self.ruleset: RuleSet | None = None
        self.explorer = _explorer(self.vocabulary, self.envs[0].action_space, settings, self.streams.exploration)
        self.agent = self._agent()
        self.buffer: IndexedReplayBuffer = self.agent.replay_buffer
        self.placebo = PlaceboScorer(seed=self.streams.placebo) if settings.replay == "placebo" else None
        if self.placebo is not None:
            self.buffer.set_scorer(self.placebo)
        self.watching = self._watching() if settings.replay == "vlm-rb" else None
        self.induction = InductionSettings(
            label=settings.label,
            gamma=settings.label_gamma,
            max_rules=settings.max_rules,
            curious=settings.curious,
        )
        self.inducing = (
            Inducing(self.vocabulary, self.induction, settings.llm, replies, settings.redact)
            if self.vocabulary is not None
            else None
        )

    def induce(self, step: int) -> Induction | None:
        """Rules from what the buffer holds, put in force; None while a language model thinks about them.

        A set that came out empty does not replace one that holds rules, but for those that data refuted; the answer's
        `ruleset` is what came into force, if anything did. Raises `NoContrastError` while nothing tells good from bad.
        """
        assert self.inducing is not None
        trajectories = self.buffer.trajectories(newest=self.induction.window)
        if label_for(trajectories, self.induction) is None:
            complete = int(trajectories.complete.sum())
            few = f"{complete} complete episodes are too few"
            raise NoContrastError(few if complete < LEAST_EPISODES else "no episodes are better than others")
        return self._take(self.inducing.induce(trajectories, step, self.ruleset))

    def late_induction(self) -> Induction | None:
        """What a language model has found since the last time, put in force."""
        return self._take(self.inducing.finished(self.ruleset)) if self.inducing else None

    def _take(self, result: Induction | None) -> Induction | None:
        if result is None:
            return None
        ruleset = in_force(result.ruleset, self.ruleset)
        if ruleset is None:
            return result
        self.put_in_force(ruleset)
        return replace(result, ruleset=ruleset)

    def put_in_force(self, ruleset: RuleSet) -> None:
        """Score every stored transition by these rules, and explore by them, as the settings ask."""
        assert self.vocabulary is not None
        self.ruleset = ruleset
        if self.settings.replay == "nser":
            self.buffer.set_scorer(RuleScorer(ruleset, self.vocabulary))
        if isinstance(self.explorer, RuleExplorer):
            self.explorer.set_rules(ruleset.rules)

    def close(self) -> None:
        """End what runs in the background."""
        if self.inducing is not None:
            self.inducing.close()
        if self.watching is not None:
            self.watching.close()

    def state(self) -> dict[str, Any]:
        """The whole run as nested arrays and plain values; a run that loads it goes on bit for bit."""
        agent = self.agent
        return {
            "policy": as_arrays(agent.policy.state_dict()),
            "optimizer": as_arrays(agent.policy.optimizer.state_dict()),
            "counters": {
                "num_timesteps": agent.num_timesteps,
                "episodes": agent._episode_num,
                "calls": agent._n_calls,
                "updates": agent._n_updates,
                "exploration_rate": agent.exploration_rate,
                "progress_remaining": agent._current_progress_remaining,
                "episode_infos": [
                    {key: float(value) for key, value in info.items()} for info in agent.ep_info_buffer or ()
                ],
                "successes": [bool(success) for success in agent.ep_success_buffer or ()],
            },
            "buffer": self.buffer.state(),
            "explorer": self.explorer.state(),
            "placebo": self.placebo.state() if self.placebo else {},
            "environments": [env.position() for env in self.envs],
            "torch": torch.get_rng_state().numpy(),
            "rules_version": self.ruleset.version if self.ruleset else 0,
        }

    def load_state(self, state: dict[str, Any], ruleset: RuleSet | None) -> None:
        """Go on from a checkpoint; `ruleset` is the one that was in force."""
        agent = self.agent
        agent.policy.load_state_dict(as_tensors(state["policy"]))
        agent.policy.optimizer.load_state_dict(optimizer_state(state["optimizer"]))
        counters = state["counters"]
        agent.num_timesteps = counters["num_timesteps"]
        agent._episode_num = counters["episodes"]
        agent._n_calls, agent._n_updates = counters["calls"], counters["updates"]
        agent.exploration_rate = counters["exploration_rate"]
        agent._current_progress_remaining = counters["progress_remaining"]
        agent.resume_statistics(counters["episode_infos"], counters["successes"])
        if ruleset is not None:
            self.put_in_force(ruleset)
        self.buffer.load_state(state["buffer"])
        self.explorer.load_state(state["explorer"])
        if self.placebo is not None:
            self.placebo.load_state(state["placebo"])
        observations = [env.restore(at) for env, at in zip(self.envs, state["environments"], strict=True)]
        agent.resume_observations(np.stack(observations))
        torch.set_rng_state(torch.from_numpy(state["torch"]))

    def _watching(self) -> Watching | None:
        """Relevance from clips instead of rules; scripted events need no frames and no thread."""
        settings = self.settings
        self.buffer.feedback = False  # the paper's form for discrete actions: P ∝ p, the TD error has no part
        judge = judge_of(settings, vocabulary_of(self.envs[0]) if not settings.renders else None)
        if isinstance(judge, EventScorer):
            self.buffer.set_scorer(judge)
            return None
        shown = min(8, settings.clip_length)
        clips = ClipSettings(settings.clip_length, settings.clip_stride, shown)
        return Watching(judge, self.buffer, self.taps, clips)

    def _agent(self) -> DQN:
        settings = self.settings
        environments = TimedEnvs([lambda env=env: env for env in self.taps or self.envs], self.clock)  # type: ignore[misc]
        agent = DQN(
            "MlpPolicy",
            environments,
            law=law_of(settings),
            double_q=settings.double_q,
            explorer=self.explorer,
            learning_rate=settings.learning_rate,
            gamma=settings.gamma,
            batch_size=settings.batch_size,
            buffer_size=settings.buffer_size,
            learning_starts=settings.learning_starts,
            train_freq=settings.train_freq,
            gradient_steps=settings.gradient_steps,
            target_update_interval=settings.target_update_interval,
            exploration_fraction=settings.exploration_fraction,
            exploration_final_eps=settings.exploration_final_eps,
            policy_kwargs={"net_arch": list(settings.net_arch)},
            replay_buffer_class=TimedReplayBuffer,
            replay_buffer_kwargs={"seed": self.streams.replay, "clock": self.clock},
            seed=self.streams.network,
            device="cpu",
        )
        # SB3 seeds the environments from the network's seed; each has a stream of its own here.
        environments.seed(self.streams.environment)
        return agent


def law_of(settings: RunSettings) -> Law:
    """The replay law of a run."""
    if settings.replay in ("nser", "placebo"):
        return preset(settings.replay, eta=settings.eta)
    return preset(settings.replay)


def _vocabulary(env: Any, settings: RunSettings) -> Vocabulary | None:
    return vocabulary_of(env) if settings.uses_rules else None


def _explorer(vocabulary: Vocabulary | None, action_space: spaces.Space, settings: RunSettings, seed: int) -> Explorer:
    if not isinstance(action_space, spaces.Discrete):
        raise UnsuitedEnvironmentError(
            f"{settings.env} has the action space {action_space}, expected Discrete: DQN chooses among a few actions; "
            "take an environment with discrete actions"
        )
    if settings.explore == "rules" and vocabulary is not None:
        return RuleExplorer(vocabulary, settings.explore_share, seed)
    return UniformExplorer(int(action_space.n), seed)
