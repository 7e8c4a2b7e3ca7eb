"""What a trainer is told about its replay: one frozen object."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from nser.replay.errors import ArgumentError
from nser.rollouts import StoreSettings, store_preset
from nser.trainers.trl.scoring import Scorer

Use = Literal["relevance", "weight"]


@dataclass(frozen=True, kw_only=True)
class RolloutReplay:
    """How a trainer replays rollouts, and what it does with the scores of rules.

    store:     settings of the rollout store, or the name of a preset: "nser", "rollout-grpo", "freshper", …
    scorer:    scores every fresh rollout once; None for no rules
    use:       what a score s is for: "relevance" is the law's, so that rules decide what is *drawn*; "weight" is a
               loss weight 1 + ``strength``·s of fresh and replayed rollouts. As a reward: see `rule_reward`
    strength:  ≥ 0, of "weight"
    task:      column of the data set that names the task of a prompt, for admission figures; "" for none
    keep_text: keep prompt and completion as messages, for rules over text and for `nser rollouts inspect`
    seed:      of the store's own generators; every rank adds its number
    directory: where the store keeps its tokens in memory-mapped files; None for memory

    Raises ``ArgumentError``.
    """

    store: StoreSettings | str = "nser"
    scorer: Scorer | None = None
    use: Use = "relevance"
    strength: float = 1.0
    task: str = ""
    keep_text: bool = True
    seed: int = 0
    directory: Path | None = None

    def __post_init__(self) -> None:
        if self.use not in get_args(Use):
            raise ArgumentError("use", self.use, f"one of {', '.join(get_args(Use))}", "Choose one of them.")
        if not 0.0 <= self.strength < float("inf"):
            raise ArgumentError("strength", self.strength, "a finite number ≥ 0", "1 doubles what rules are sure of.")

    @property
    def settings(self) -> StoreSettings:
        """The store's settings, its law blind to rules where these weigh the loss. Raises ``RolloutError``."""
        settings = store_preset(self.store) if isinstance(self.store, str) else self.store
        return settings if self.use == "relevance" else replace(settings, law=replace(settings.law, eta=0.0))

    @classmethod
    def of(cls, replay: RolloutReplay | StoreSettings | str) -> RolloutReplay:
        """What a trainer's argument means."""
        return replay if isinstance(replay, RolloutReplay) else cls(store=replay)
