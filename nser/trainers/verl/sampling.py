"""Replay in verl's trainer V1 (TransferQueue) by its configuration alone: a custom sampler adds old rows to a batch.

    trainer.v1.sampler.custom_sampler.path=pkg://nser.trainers.verl.v1
    trainer.v1.sampler.custom_sampler.name=ReplaySampler                # ReplaySamplerAsync for the async trainers
    trainer.v1.sampler.sampler_kwargs='{preset: nser, ratio: 0.5}'      # see `SamplerOptions`
    actor_rollout_ref.rollout.calculate_log_probs=True                  # behaviour log-probs, stored with each row
    algorithm.rollout_correction.rollout_is=token                       # the decoupled correction is verl's own:
    algorithm.rollout_correction.rollout_is_threshold=2.0               # truncated at 2, and bypass_mode=False

V1 computes rewards, log-probs and advantages of a whole batch *after* it is sampled. A replayed row goes in as a
group of its own, for which verl's GRPO estimator takes the summed reward for the advantage: so its last token is
given the advantage that the row had in the group it was born in, and the fresh groups never see it. This holds for
`adv_estimator=grpo` without `use_kl_in_reward`. verl's own figures of rewards and lengths leave replayed rows out,
for they carry the tag `is_padding`.

verl looks for entry points `verl.plugins` too, but only imports them; a sampler is found by its path and name.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from nser.rollouts import Replayed, RolloutError, RolloutStore, store_preset
from nser.trainers.replayer import Replayer, Score, Store
from nser.trainers.verl.queue_rows import check_rows, group_advantages, rollout_of, row_of, tag_of, unstacked

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class SamplerOptions:
    """What `trainer.v1.sampler.sampler_kwargs` may say; anything else there is a field of the store's settings.

    - ``preset``: of the store, see `nser.rollouts.store_preset`; ``seed`` of its generators;
    - ``store``: name of a store behind a Ray actor that is running, in place of one in the trainer's process;
    - ``multiple_of`` ≥ 1: replayed rows are a multiple of it. verl fills a batch up with empty rows by itself;
    - ``norm_by_std``: as `algorithm.norm_adv_by_std_in_grpo`;
    - ``folder``: where the store is saved every ``save_every`` steps (give `trainer.save_freq`; 0: never), the last
      ``keep`` of them, and looked for when training resumes.

    Raises ``RolloutError``.
    """

    preset: str = "nser"
    seed: int = 0
    store: str = ""
    multiple_of: int = 1
    norm_by_std: bool = True
    folder: str = ""
    save_every: int = 0
    keep: int = 2
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> SamplerOptions:
        """The options of a mapping such as verl's `sampler_kwargs`."""
        own = {item.name for item in fields(cls)} - {"settings"}
        values = dict(given or {})
        options = {name: values.pop(name) for name in own & values.keys()}
        return cls(**options, settings=values)

    def open_store(self) -> Store:
        """The store that these options name."""
        if self.store:
            from nser.trainers.ray_store import connect_store

            return connect_store(self.store)
        return RolloutStore(store_preset(self.preset, **self.settings), self.seed)


class ReplaySampling:
    """Put before verl's `ReplayBuffer` or `ReplayBufferAsync`; `nser.trainers.verl.v1` has both.

    For rules over rollouts subclass that and set ``score``, (n) rollouts → (n,) in [0, 1]; texts are in their
    ``metadata["verl"]`` as far as the data set or the agent loop put them into the rows.
    """

    score: Score | None = None

    def __init__(self, *, sampler_kwargs: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(sampler_kwargs=sampler_kwargs, **kwargs)  # type: ignore[call-arg]
        self.options = SamplerOptions.of(sampler_kwargs)
        self.replayer = Replayer(self.options.open_store(), self.score, self.options.multiple_of)
        if self.replayer.store.settings.composition != "anchored":
            raise RolloutError(
                "composition",
                self.replayer.store.settings.composition,
                "anchored",
                "V1 makes one update of each sample; use with_replay on trainer V0 for separate updates.",
            )
        self.sampled = 0
        """Rows replayed so far, in the names of new ones."""
        self._resumed = False

    def sample(self, global_steps: int, partition_id: str, batch_size: int) -> tuple[Any, dict]:
        """verl's batch, and replayed rows behind it; validation goes by untouched."""
        batch, metrics = super().sample(  # type: ignore[misc]
            global_steps=global_steps, partition_id=partition_id, batch_size=batch_size
        )
        if partition_id == "val":
            return batch, metrics
        import transfer_queue

        self._resume(global_steps)
        rows = unstacked(transfer_queue.kv_batch_get(keys=batch.keys, partition_id=partition_id))
        check_rows(rows)
        rewards = [float(row["rm_scores"].sum()) for row in rows]
        advantages = group_advantages(batch.keys, rewards, self.options.norm_by_std)
        fresh = [
            rollout_of(row, tag, advantage, global_steps - 1)
            for row, tag, advantage in zip(rows, batch.tags, advantages.tolist(), strict=True)
            if not tag.get("is_padding", False)
        ]
        replays = self.replayer.step(fresh, global_steps - 1)
        for replayed in replays:
            batch = self._joined(batch, replayed, rows[0], global_steps)
        self._save(global_steps)
        return batch, metrics | self.replayer.figures(replays)

    def _joined(self, batch: Any, replayed: Replayed, template: Mapping[str, Any], step: int) -> Any:
        """Put replayed rows into the queue, as the template row has them, and append their names."""
        import transfer_queue
        from verl.utils.tensordict_utils import list_of_dict_to_tensordict

        keys, rows, tags = [], [], []
        for rollout, weight in zip(replayed.rollouts, replayed.weights.tolist(), strict=True):
            # No underscore in it: verl cuts the group's name off at the first one. The step is in it, since rows of
            # the step that a checkpoint was taken in are still in the queue when training resumes.
            uid = f"replay{step}x{self.sampled}"
            self.sampled += 1
            keys.append(f"{uid}_0_0")
            rows.append(row_of(rollout, template, uid, weight, self.options.norm_by_std))
            tags.append(tag_of(rollout, batch.tags[0]))
        transfer_queue.kv_batch_put(
            keys=keys, partition_id=batch.partition_id, fields=list_of_dict_to_tensordict(rows), tags=tags
        )
        return transfer_queue.KVBatchMeta(
            keys=[*batch.keys, *keys],
            tags=[*batch.tags, *tags],
            partition_id=batch.partition_id,
            fields=batch.fields,
            extra_info=batch.extra_info,
        )

    def _path(self, step: int) -> Path:
        return Path(self.options.folder) / f"rollouts_{step}.npz"

    def _save(self, step: int) -> None:
        """What the store is after this step's sample it still is when the trainer saves its own checkpoint."""
        if not self.options.folder or not self.options.save_every or step % self.options.save_every:
            return
        self.replayer.save(self._path(step))
        saved = sorted(Path(self.options.folder).glob("rollouts_*.npz"), key=lambda path: int(path.stem[9:]))
        for path in saved[: -self.options.keep]:
            path.unlink()

    def _resume(self, step: int) -> None:
        if self._resumed or not self.options.folder:
            return
        self._resumed = True
        path = self._path(step - 1)
        if path.exists():
            self.replayer.restore(path)
        elif step > 1:
            logger.warning("Step %d starts without replay: there is no %s.", step, path.name)
