"""The trainer that most people use, with rollout replay."""

from trl import GRPOTrainer

from nser.trainers.trl.mixin import RolloutReplayMixin


class ReplayGRPOTrainer(RolloutReplayMixin, GRPOTrainer):
    """TRL's `GRPOTrainer`, all its losses, and ``replay=``; see `RolloutReplayMixin`."""
