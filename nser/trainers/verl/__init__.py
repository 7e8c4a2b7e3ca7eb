"""Rollout replay inside verl: converters of its `DataProto`, a mixin for its trainer V0, a sampler for its V1.

Trainer V0 (`verl.trainer.ppo.ray_trainer.RayPPOTrainer`), in the script that builds it:

    from nser.rollouts import RolloutStore
    from nser.trainers.verl import with_replay
    RayPPOTrainer = with_replay(RayPPOTrainer, RolloutStore("nser"))       # then as before

Trainer V1 (TransferQueue) by its configuration alone; see `nser.trainers.verl.sampling`.
"""

from nser.trainers.verl.batches import apply_weights, concat, from_batch, to_batch
from nser.trainers.verl.replay import ReplayMixin, mix, with_replay

__all__ = ["ReplayMixin", "apply_weights", "concat", "from_batch", "mix", "to_batch", "with_replay"]
