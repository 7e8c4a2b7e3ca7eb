"""Rollout replay inside OpenRLHF: converters of its `Experience`, and a mixin for its experience maker.

import openrlhf.trainer.ppo_trainer as ppo
from nser.rollouts import RolloutStore
from nser.trainers.openrlhf import with_replay
ppo.RemoteExperienceMaker = with_replay(ppo.RemoteExperienceMaker, RolloutStore("nser"))     # then as before
"""

from nser.trainers.openrlhf.experiences import apply_weights, concat, from_experience, to_experience
from nser.trainers.openrlhf.maker import ReplayExperiences, with_replay

__all__ = ["ReplayExperiences", "apply_weights", "concat", "from_experience", "to_experience", "with_replay"]
