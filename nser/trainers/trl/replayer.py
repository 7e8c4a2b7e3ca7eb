"""What happens between TRL's generation and its loss: remember the fresh rollouts, add or substitute old ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nser.replay.errors import ArgumentError
from nser.rollouts import Replayed, Rollout, RolloutStore, Sampling, agreed_count, replay_count
from nser.trainers.offpolicy import Correction, Drift, Level, correct, drift, weigh
from nser.trainers.trl.batches import Note, Tensors, join, loss_mask, rollouts_of, tensors_of
from nser.trainers.trl.checks import check_model
from nser.trainers.trl.forward import policy_logps, reference_logps
from nser.trainers.trl.scoring import Scorer, messages_of, scores_of
from nser.trainers.trl.settings import RolloutReplay


class Replayer:
    """The memory of one rank of a trainer.

    One definition of time: a policy's version is `state.global_step`. Fresh rollouts wait in ``pending`` until the
    policy that made them is gone, so that nothing is replayed at age 0 and what was generated twice within one
    optimiser step never replays itself (the composition "pool" wants just that, and does not wait).
    """

    def __init__(self, trainer: Any, replay: RolloutReplay, level: Level) -> None:
        self.trainer = trainer
        self.replay = replay
        self.settings = replay.settings
        self.correction = Correction(self.settings.correction, self.settings.cap, level)
        self.store = RolloutStore(self.settings, replay.seed + trainer.accelerator.process_index, replay.directory)
        self.sampling = Sampling(trainer.args.temperature, trainer.args.top_p, trainer.args.top_k or 0)
        self.pending: list[Rollout] = []
        self.notes: list[Note] = []
        self.generations = 0
        """Generations since the version last moved."""
        self.checked = False

    def settle(self) -> None:
        """If the policy has moved on, store what its last version generated, and let the clock follow."""
        version = self.trainer.state.global_step
        if version != self.store.version:
            self._admit()
            self.store.advance(version)
            self.generations = 0

    def note(self, gathered: Tensor, inputs: Sequence[dict[str, Any]], prompts: list, completions: list) -> None:
        """Keep what TRL knows of this rank's rows, from the rewards [B · ranks, functions] of all ranks."""
        trainer, first = self.trainer, self.trainer.accelerator.process_index * len(prompts)
        weighted = gathered * trainer.reward_weights.to(gathered.device)
        rewards = weighted.nansum(1).masked_fill(gathered.isnan().all(1), float("nan")).tolist()
        self.notes = [
            Note(
                reward=rewards[first + row],
                task=str(example.get(self.replay.task, "")) if self.replay.task else "",
                group=f"{self.store.version}.{self.generations}.{(first + row) // trainer.num_generations}",
                metadata={"messages": messages_of(prompt, completion)} if self.replay.keep_text else {},
            )
            for row, (example, prompt, completion) in enumerate(zip(inputs, prompts, completions, strict=True))
        ]

    def instead(self, rows: int) -> Tensors | None:
        """A batch of ``rows`` replayed rollouts if it is the turn of one, to train on instead of generating; or None.

        With the composition "separate" K of K + 1 generations are replayed ones, once every rank has enough stored.
        """
        if self.settings.composition != "separate" or not self._stores:
            return None
        args = self.trainer.args
        updates = max(1, args.steps_per_generation * args.num_iterations // args.gradient_accumulation_steps)
        if self.store.version // updates % (self.settings.updates + 1) == 0:
            return None
        return self._alone(rows)

    def extend(self, fresh: Tensors) -> Tensors:
        """Remember a fresh batch, and join replayed rows to it (or put them in its place, with "pool")."""
        if self._idle:
            return fresh
        if not self.checked:
            check_model(self.trainer, fresh)
            self.checked = True
        proximal = fresh["old_per_token_logps"] if "old_per_token_logps" in fresh else policy_logps(self.trainer, fresh)
        rows = len(fresh["completion_ids"])
        # Drawn before this batch is stored.
        wanted = replay_count(self.store, rows) if self.settings.composition == "anchored" else 0
        replayed = self._draw(wanted)
        self._remember(fresh, proximal)
        if self.settings.composition == "pool":
            self._admit()
            pool = self._alone(rows)
            if pool is not None:
                return pool
        if not len(replayed):
            return fresh
        if self.correction.kind == "clip":
            fresh.setdefault("old_per_token_logps", proximal)
        if self.trainer.off_policy_mask_threshold is not None:
            fresh.setdefault("sampling_per_token_logps", proximal)
        # Where TRL leaves these out it takes the policy of the update itself, which is the proximal one.
        needless = {"old_per_token_logps", "sampling_per_token_logps"} - fresh.keys()
        extra = {key: value for key, value in self._tensors(replayed).items() if key not in needless}
        return self._counted(join(fresh, extra, self._pad_id))

    def rescore(self, scorer: Scorer | None, version: int) -> None:
        """Put other rules in force: all that is stored, or waits for it, is scored anew."""
        self.replay = replace(self.replay, scorer=scorer)
        slots = self.store.live_slots()
        self.store.relate(slots, self._scores(self.store.rollouts(slots)), version)
        self.pending = self._scored(self.pending)

    def save(self, folder: Path) -> None:
        """Write this rank's store into a checkpoint's folder."""
        self.settle()
        self.store.save(folder / self.file_name)

    def load(self, path: Path) -> None:
        """Take over a saved store. Raises ``StoreStateError``, and ``ArgumentError`` for one of other settings."""
        store = RolloutStore.load(path, self.replay.directory)
        saved, own = store.settings.to_dict(), self.settings.to_dict()
        for field, value in own.items():
            if value != saved[field]:
                raise ArgumentError(field, value, f"{saved[field]}, as saved", "Resume with the settings of the run.")
        self.store = store

    @property
    def file_name(self) -> str:
        """Name of this rank's store within a checkpoint."""
        return f"rollouts_{self.trainer.accelerator.process_index}.npz"

    # Steps of the above.

    def _draw(self, count: int) -> Replayed:
        """As many of ``count`` as every rank can replay, a multiple of what TRL splits a batch into."""
        drawn = self.store.draw(count)
        here = torch.tensor([len(drawn)], device=self._device)
        # Ranks with unequal numbers of rows would wait for each other for ever.
        everywhere = self.trainer.accelerator.gather(here).tolist()
        return self.store.give_back(drawn, agreed_count(everywhere, self.trainer.args.steps_per_generation))

    def _alone(self, rows: int) -> Tensors | None:
        """A batch of ``rows`` replayed rollouts; None while warming up, and where any rank has too few."""
        replayed = self._draw(0 if self.store.warming_up else rows)
        if len(replayed) == rows:
            return self._counted(self._tensors(replayed))
        self.store.give_back(replayed, 0)
        return None

    def _remember(self, fresh: Tensors, proximal: Tensor) -> None:
        """Turn the fresh rows into rollouts that wait; multiply their advantages by the rules' loss weights."""
        sampled = fresh.get("sampling_per_token_logps")
        behavior = proximal if sampled is None else sampled
        sampling = replace(self.sampling, source="trainer" if sampled is None else "sampler")
        found = rollouts_of(fresh, behavior, self.notes, self.store.version, sampling)
        self.generations += 1
        rollouts = self._scored([rollout for _, rollout in found])
        if self.replay.use == "weight" and rollouts:
            weights = torch.ones(len(self.notes), device=self._device)
            weights[[row for row, _ in found]] = self._loss_weights(rollouts).to(weights)
            fresh["advantages"] = weigh(fresh["advantages"], weights)
        self.pending.extend(rollouts)

    def _admit(self) -> None:
        if self._stores:
            self.store.admit(self.pending)
        self.pending = []

    def _tensors(self, replayed: Replayed) -> Tensors:
        """Everything that TRL's losses read of replayed rows, corrected and weighted."""
        trainer, settings = self.trainer, self.settings
        batch, behavior = tensors_of(replayed.rollouts, self._pad_id, self._device)
        mask, proximal = loss_mask(batch), policy_logps(trainer, batch)
        advantages = batch["advantages"]
        if settings.advantage_clip is not None:
            advantages = advantages.clamp(-settings.advantage_clip, settings.advantage_clip)
        weights = torch.from_numpy(replayed.weights) * self._loss_weights(replayed.rollouts)
        advantages = weigh(advantages, weights.to(advantages))
        self._log(replayed, drift(advantages, proximal, behavior, mask, settings.cap, trainer.epsilon_high))
        fixed = correct(self.correction, advantages, proximal, behavior, mask)
        batch["advantages"] = fixed.advantages
        batch["old_per_token_logps"] = fixed.old_logps
        batch["sampling_per_token_logps"] = behavior
        if trainer.beta != 0.0:
            batch["ref_per_token_logps"] = reference_logps(trainer, batch)
        if trainer.use_vllm and trainer.vllm_importance_sampling_correction:
            batch["importance_sampling_ratio"] = torch.ones_like(behavior)
        return batch

    def _counted(self, batch: Tensors) -> Tensors:
        """With `num_items_in_batch` counted anew: the tokens trained on, of all ranks."""
        batch["num_items_in_batch"] = self.trainer.accelerator.gather(loss_mask(batch).sum()).sum()
        return batch

    def _scores(self, rollouts: Sequence[Rollout]) -> NDArray[np.float64]:
        return np.zeros(len(rollouts)) if self.replay.scorer is None else scores_of(self.replay.scorer, rollouts)

    def _scored(self, rollouts: list[Rollout]) -> list[Rollout]:
        if self.replay.scorer is None:
            return rollouts
        scores = self._scores(rollouts).tolist()
        return [replace(rollout, rule_score=score) for rollout, score in zip(rollouts, scores, strict=True)]

    def _loss_weights(self, rollouts: Sequence[Rollout]) -> Tensor:
        strength = self.replay.strength if self.replay.use == "weight" else 0.0
        return torch.tensor([1.0 + strength * rollout.rule_score for rollout in rollouts], dtype=torch.float64)

    def _log(self, replayed: Replayed, moved: Drift) -> None:
        figures = {
            "rows": len(replayed),
            "age": replayed.draw.ages.mean(),
            "gap": moved.gap,
            "truncated": moved.truncated,
            "silenced": moved.silenced,
            "stored": len(self.store),
        }
        for name, value in figures.items():
            self.trainer._metrics["train"][f"replay/{name}"].append(float(value))

    @property
    def _stores(self) -> bool:
        return self.settings.ratio > 0 or self.settings.composition == "pool"

    @property
    def _idle(self) -> bool:
        return not self._stores and self.replay.scorer is None

    @property
    def _pad_id(self) -> int:
        return int(self.trainer._tokenizer.pad_token_id)

    @property
    def _device(self) -> torch.device:
        device: torch.device = self.trainer.accelerator.device
        return device
