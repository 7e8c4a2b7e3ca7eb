"""Replay in verl's trainer V0: old rows join the batch after advantages are computed, right before the actor's update.

Injected any earlier, they would change the advantages of the fresh rows, and a lone replayed row would get its raw
reward for an advantage.

With the correction "decoupled" `old_log_probs` of replayed rows are those of the present policy, and the truncated
ratio to the policy that generated them is their `rollout_is_weights`, which verl's policy losses multiply with. With
"clip" `old_log_probs` are those of the policy that generated them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from nser.rollouts import Replayed, RolloutError
from nser.trainers.offpolicy import Correction, importance_weights
from nser.trainers.replayer import Replayer, Score, Store
from nser.trainers.verl.batches import apply_weights, concat, from_batch, to_batch

NEEDLESS = ("values", "reward_baselines", "sum_pi_squared")
"""What the actor's update does not read, and a stored rollout does not hold."""


class Forward(Protocol):
    """The two methods of `RayPPOTrainer` that compute log-probs of a batch."""

    def _compute_old_log_prob(self, batch: Any) -> tuple[Any, float]: ...

    def _compute_ref_log_prob(self, batch: Any) -> Any: ...


def mix(batch: Any, replays: Sequence[Replayed], trainer: Forward, correction: Correction) -> Any:
    """A fresh `DataProto` whose advantages are computed, with ``replays`` behind its rows.

    ``trainer`` computes the present (and, if the batch has it, the reference) policy's log-probs of the replayed
    rows. The fresh rows come out as they went in. Raises ``RolloutError`` for a batch with keys that replayed rows
    can't have, such as `routed_experts`.
    """
    fresh = batch.select(batch_keys=[key for key in list(batch.batch.keys()) if key not in NEEDLESS])
    rows = [_rows(replayed, fresh, trainer, correction) for replayed in replays]
    if (
        rows
        and "rollout_is_weights" not in list(fresh.batch.keys())
        and "rollout_is_weights" in list(rows[0].batch.keys())
    ):
        # A weight of one for every fresh row: verl multiplies its loss with nothing else.
        fresh = apply_weights(fresh, np.ones(len(fresh)), native=True)
    return concat([fresh, *rows])


def _rows(replayed: Replayed, like: Any, trainer: Forward, correction: Correction) -> Any:
    """Replayed rows with everything that the actor's update reads."""
    rows = to_batch(replayed.rollouts, like)
    if "ref_log_prob" in list(like.batch.keys()):
        rows.batch["ref_log_prob"] = trainer._compute_ref_log_prob(rows).batch["ref_log_prob"]
    if correction.kind == "decoupled":
        behavior, mask = rows.batch["old_log_probs"], rows.batch["response_mask"]
        proximal = trainer._compute_old_log_prob(rows)[0].batch["old_log_probs"]
        weights = importance_weights(proximal, behavior, mask, correction)  # [n, T]
        rows.batch["old_log_probs"] = proximal
        rows.batch["rollout_is_weights"] = weights * mask
    return apply_weights(rows, replayed.weights)


class ReplayMixin:
    """Put before verl's `RayPPOTrainer` in a class, or use ``with_replay``; ``replayer`` is set on the class.

    The version of the policy is `global_steps` − 1, the weight updates so far. The store is saved into the
    trainer's checkpoints and comes back from them.
    """

    replayer: Replayer
    global_steps: int
    config: Any

    def _update_actor(self, batch: Any) -> Any:
        """Update on the fresh rows and what is replayed with them, then on what is replayed alone."""
        settings, correction = self.replayer.store.settings, self.replayer.correction
        version = self.global_steps - 1
        replays = self.replayer.step(from_batch(batch, version), version)
        beside, after = (replays, []) if settings.composition == "anchored" else ([], replays)
        output = self._update(mix(batch, beside, self, correction) if beside else batch)  # type: ignore[arg-type]
        for replayed in after:
            self._update(_rows(replayed, batch, self, correction))  # type: ignore[arg-type]
        output.meta_info["metrics"].update(self.replayer.figures(replays))
        return output

    def _update(self, batch: Any) -> Any:
        return super()._update_actor(batch)  # type: ignore[misc]

    def _save_checkpoint(self) -> None:
        super()._save_checkpoint()  # type: ignore[misc]
        self.replayer.save(self._store_path())

    def _load_checkpoint(self) -> Any:
        loaded = super()._load_checkpoint()  # type: ignore[misc]
        path = self._store_path()
        if self.global_steps and path.exists():
            self.replayer.restore(path)
        return loaded

    def _store_path(self) -> Path:
        folder = Path(self.config.trainer.default_local_dir) / f"global_step_{self.global_steps}"
        return folder / "rollouts.npz"


def with_replay(trainer_class: type, store: Store, score: Score | None = None, multiple_of: int = 1) -> type:
    """``trainer_class`` (verl's `RayPPOTrainer`) with replay out of ``store``.

    ``score``: rules over rollouts, (n) → (n,) in [0, 1], for example the method of that name of
    ``RolloutScorer(rules, decode=tokenizer.decode)``.

    ``multiple_of``: verl splits a batch into mini-batches of `ppo_mini_batch_size` · `rollout.n` rows, and what does
    not divide evenly is an error there: pass that product. Make it small enough: half as many replayed rows as fresh
    ones are none at all if one mini-batch is the whole batch. `actor_rollout_ref.actor.shuffle=True` spreads replayed
    rows over the mini-batches; without it they are in the last ones.
    """
    if multiple_of < 1:
        raise RolloutError("multiple_of", multiple_of, "a number ≥ 1", "Pass ppo_mini_batch_size * rollout.n.")
    name = f"Replay{trainer_class.__name__}"
    return type(name, (ReplayMixin, trainer_class), {"replayer": Replayer(store, score, multiple_of)})
