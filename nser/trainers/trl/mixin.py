"""The mixin that gives a TRL trainer of the GRPO family a memory of rollouts.

It overrides three places and copies no method: after TRL has generated and scored a batch, rows of the store join
its tensors; raw rewards are read where they are computed; the store travels with the trainer's checkpoints.

Rows join *after* advantages are computed. Recomputing group advantages over a mixed batch would give a lone replayed
row its raw reward, and change those of the fresh rows.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from nser.rollouts import RolloutStore, StoreSettings
from nser.trainers.offpolicy import Level
from nser.trainers.trl.batches import Tensors, check_keys
from nser.trainers.trl.replayer import Replayer
from nser.trainers.trl.scoring import Scorer
from nser.trainers.trl.settings import RolloutReplay


class RolloutReplayMixin:
    """Put before a trainer of the GRPO family: ``class Mine(RolloutReplayMixin, GRPOTrainer)``.

    replay: keyword, a `RolloutReplay`, a `StoreSettings`, or a preset's name; the other arguments are the trainer's

    Clipping is by TRL's own `epsilon` and `epsilon_high`. `num_items_in_batch`, and so every loss that divides by
    tokens, counts replayed rows as well. Fresh rows of advantage 0 stay in the batch. Evaluation is left alone.

    Checkpoints hold the store, and a run that was resumed goes on as if it had not stopped, as far as TRL's own does:
    where one generation serves several optimiser steps, save at a multiple of them.

    Raises ``ArgumentError`` at the first batch for what can't work: images, another trainer's tensors, active
    dropout, a model whose log-probabilities change with padding.
    """

    correction_level: ClassVar[Level | None] = None
    """Level of the importance weights; None follows TRL's `importance_sampling_level`."""

    # Of the trainer that this is mixed into.
    args: Any
    model: Any
    state: Any

    def __init__(self, *args: Any, replay: RolloutReplay | StoreSettings | str = "nser", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # RLOO has no level; its first batch is refused in words.
        level: Level = getattr(self, "importance_sampling_level", "token")
        self._replayer = Replayer(self, RolloutReplay.of(replay), self.correction_level or level)

    @property
    def rollout_store(self) -> RolloutStore:
        """The store of this rank."""
        return self._replayer.store

    def rescore(self, scorer: Scorer | None, version: int) -> None:
        """Put other rules in force, of ``version``; all that is stored is scored anew."""
        self._replayer.rescore(scorer, version)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> Tensors:
        parent: Any = super()
        if not self.model.training:
            return dict(parent._generate_and_score_completions(inputs))
        self._replayer.settle()
        replayed = self._replayer.instead(len(inputs))
        if replayed is not None:
            return replayed
        fresh = parent._generate_and_score_completions(inputs)
        check_keys(fresh)
        return self._replayer.extend(fresh)

    def _calculate_rewards(self, inputs: list[dict[str, Any]], prompts: list, completions: list, *rest: Any) -> Tensor:
        parent: Any = super()
        gathered: Tensor = parent._calculate_rewards(inputs, prompts, completions, *rest)
        if self.model.training:
            self._replayer.note(gathered, inputs, prompts, completions)
        return gathered

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        parent: Any = super()
        parent._save_checkpoint(model, trial)
        if not self.args.save_only_model:
            run: str = parent._get_output_dir(trial=trial)
            self._replayer.save(Path(run) / f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}")

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        parent: Any = super()
        parent._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is None:
            return
        path = Path(checkpoint) / self._replayer.file_name
        if path.is_file():
            self._replayer.load(path)
        else:
            warnings.warn(f"{path} does not exist: replay starts with an empty store.", stacklevel=2)
