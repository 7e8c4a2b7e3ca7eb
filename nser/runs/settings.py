"""Everything that decides a run, as one frozen value: what `config.json` holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nser.errors import NserError
from nser.induce.labels import Label
from nser.runs.faults import first_fault

Replay = Literal["nser", "per", "uniform", "freshper", "placebo", "vlm-rb"]
Explore = Literal["epsilon", "rules"]


class RunSettings(BaseModel):
    """Settings of `nser train`; the defaults are what the README's figures were made with.

    The agent's own (learning rate to target interval) are those of SB3's DQN, with values that suit small worlds.
    Steps are environment steps, summed over environments.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    env: str
    agent: Literal["dqn"] = "dqn"
    replay: Replay = "nser"
    explore: Explore = "epsilon"
    llm: str = "symbolic"
    redact: tuple[str, ...] = ()
    vlm: str = ""
    vlm_task: str = ""
    clip_length: int = Field(32, ge=1)
    clip_stride: int = Field(32, ge=1)
    steps: int = Field(100_000, ge=1)
    seed: int = Field(0, ge=0)
    n_envs: int = Field(1, ge=1)

    learning_rate: float = Field(5e-4, gt=0)
    gamma: float = Field(0.95, gt=0, le=1)
    batch_size: int = Field(64, ge=1)
    buffer_size: int = Field(100_000, ge=1)
    learning_starts: int = Field(1_000, ge=0)
    train_freq: int = Field(2, ge=1)
    gradient_steps: int = Field(1, ge=1)
    target_update_interval: int = Field(200, ge=1)
    exploration_fraction: float = Field(0.4, ge=0, le=1)
    exploration_final_eps: float = Field(0.1, ge=0, le=1)
    net_arch: tuple[int, ...] = (64, 64)
    double_q: bool = True

    eta: float = Field(4.0, ge=0)
    explore_share: float = Field(0.5, ge=0, le=1)
    induce_every: int = Field(2_000, ge=1)
    label: Label = "progress"
    curious: bool = True
    label_gamma: float = Field(0.99, gt=0, le=1)
    max_rules: int = Field(12, ge=1)

    log_every: int = Field(1_000, ge=1)
    eval_every: int = Field(10_000, ge=1)
    eval_episodes: int = Field(20, ge=1)
    final_episodes: int = Field(100, ge=0)
    checkpoint_every: int = Field(10_000, ge=1)

    @property
    def uses_rules(self) -> bool:
        """Whether rules are induced: for replay, for exploration, or both."""
        return self.replay == "nser" or self.explore == "rules"

    @property
    def renders(self) -> bool:
        """Whether a vision model is shown frames."""
        return self.replay == "vlm-rb" and not self.vlm.startswith("events:")


class SettingsError(NserError, ValueError):
    """A setting that is unknown or out of its range."""


def parse_settings(values: Mapping[str, Any]) -> RunSettings:
    """Settings from plain values or text. Raises `SettingsError` naming the first wrong one."""
    try:
        return RunSettings.model_validate(
            {key: _listed(value) if key in ("net_arch", "redact") else value for key, value in values.items()}
        )
    except ValidationError as error:
        raise SettingsError(first_fault(error, RunSettings.model_fields)) from error


def _listed(value: Any) -> Any:
    return value.split(",") if isinstance(value, str) else value
