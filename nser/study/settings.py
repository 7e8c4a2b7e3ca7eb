"""Everything that decides a study, as one frozen value: what `study.json` holds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from nser.runs.faults import first_fault
from nser.study.conditions import condition_of
from nser.study.errors import StudyError

EXTENDABLE = ("conditions", "ratios", "seeds", "workers", "stack_size")
"""Settings that may change between two calls on one directory: none of them changes a cell that is there."""


class StudySettings(BaseModel):
    """Settings of a study. The agent's own are those of `nser train`, with the same defaults.

    env:           id of an environment with discrete actions, as `nser.envs.make.make_env` takes it
    conditions:    names as `nser.study.conditions.condition_of` reads them
    ratios:        updates per environment step, each > 0
    steps:         environment steps of each cell
    seeds:         how many; cell seeds are `first_seed` … `first_seed + seeds − 1`, the same in every condition
    eval_every:    environment steps between two greedy evaluations; the last step is always evaluated
    eval_episodes: episodes of an evaluation
    agent:         `stacked`, all seeds of a stack as one batched network, or `sb3`, one agent after the other
    stack_size:    seeds of a stack at the most
    workers:       processes
    llm:           word of the model that `induced-llm` asks, see `nser.induce.proposers`
    target_every:  updates between two copies of the network into the target network
    unseen:        features of the observation that the network does not see while rules do, as names or patterns
                   (`facing_*`); for `stacked` agents
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    env: str
    conditions: tuple[str, ...] = Field(("uniform", "per", "placebo", "induced"), min_length=1)
    ratios: tuple[float, ...] = Field((0.25,), min_length=1)
    steps: int = Field(60_000, ge=1)
    seeds: int = Field(12, ge=1)
    first_seed: int = Field(0, ge=0)
    eval_every: int = Field(3_000, ge=1)
    eval_episodes: int = Field(20, ge=1)
    agent: Literal["stacked", "sb3"] = "stacked"
    stack_size: int = Field(12, ge=1)
    workers: int = Field(default_factory=lambda: os.cpu_count() or 1, ge=1)
    llm: str = ""
    unseen: tuple[str, ...] = ()

    learning_rate: float = Field(5e-4, gt=0)
    gamma: float = Field(0.95, gt=0, le=1)
    batch_size: int = Field(64, ge=1)
    buffer_size: int = Field(100_000, ge=1)
    learning_starts: int = Field(1_000, ge=0)
    target_every: int = Field(200, ge=1)
    exploration_fraction: float = Field(0.4, ge=0, le=1)
    exploration_final_eps: float = Field(0.1, ge=0, le=1)
    net_arch: tuple[int, ...] = (64, 64)
    double_q: bool = True

    @field_validator("conditions")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        """Canonical names, each once, in the order given."""
        return tuple(dict.fromkeys(condition_of(name).name for name in names))

    @field_validator("ratios")
    @classmethod
    def _positive(cls, ratios: tuple[float, ...]) -> tuple[float, ...]:
        for ratio in ratios:
            if not 0 < ratio <= 16:
                raise ValueError(f"found ratio {ratio}, expected updates per environment step in (0, 16]")
        return tuple(dict.fromkeys(ratios))

    @model_validator(mode="after")
    def _model_named(self) -> StudySettings:
        if not self.llm and any(condition_of(name).rules == "induced-llm" for name in self.conditions):
            raise ValueError("found condition induced-llm and no model for it, expected one such as --llm hf:FOLDER")
        return self

    @model_validator(mode="after")
    def _seen_by_stacks(self) -> StudySettings:
        if self.unseen and self.agent != "stacked":
            raise ValueError(f"found unseen={','.join(self.unseen)} with agent {self.agent}, expected --agent stacked")
        return self

    @property
    def seed_numbers(self) -> tuple[int, ...]:
        """The seeds, in order."""
        return tuple(range(self.first_seed, self.first_seed + self.seeds))

    @property
    def eval_steps(self) -> tuple[int, ...]:
        """Environment steps after which there is an evaluation, the last step among them."""
        steps = range(self.eval_every, self.steps + 1, self.eval_every)
        return tuple(steps) if self.steps % self.eval_every == 0 else (*steps, self.steps)


def study_settings(values: Mapping[str, Any]) -> StudySettings:
    """Settings from plain values. Raises `StudyError` with one sentence about the first wrong one."""
    try:
        return StudySettings.model_validate(dict(values))
    except ValidationError as error:
        raise StudyError(first_fault(error, StudySettings.model_fields)) from error
