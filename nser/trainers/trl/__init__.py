"""Rollout replay inside TRL's trainers. Needs the extra: `pip install nser[trl]`.

from nser.trainers.trl import ReplayGRPOTrainer            # was: from trl import GRPOTrainer
trainer = ReplayGRPOTrainer(model, reward, args=args, train_dataset=data, replay="nser")
"""

from nser.trainers.trl.mixin import RolloutReplayMixin
from nser.trainers.trl.rewards import rule_reward
from nser.trainers.trl.settings import RolloutReplay
from nser.trainers.trl.trainers import ReplayGRPOTrainer

__all__ = ["ReplayGRPOTrainer", "RolloutReplay", "RolloutReplayMixin", "rule_reward"]
