"""GMPO with rollout replay; apart, since importing anything experimental of TRL warns."""

from typing import ClassVar

from trl.experimental.gmpo import GMPOTrainer

from nser.trainers.offpolicy import Level
from nser.trainers.trl.mixin import RolloutReplayMixin


class ReplayGMPOTrainer(RolloutReplayMixin, GMPOTrainer):
    """TRL's `GMPOTrainer` and ``replay=``. Its advantages are one a rollout, and so are the importance weights."""

    correction_level: ClassVar[Level | None] = "sequence"
