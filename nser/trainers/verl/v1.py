"""The samplers that verl's configuration names: `nser.trainers.verl.sampling` on verl's own buffers.

Importing this needs a whole verl with TransferQueue.
"""

from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer, ReplayBufferAsync

from nser.trainers.verl.sampling import ReplaySampling


class ReplaySampler(ReplaySampling, ReplayBuffer):
    """For `trainer.v1.trainer_mode=sync`."""


class ReplaySamplerAsync(ReplaySampling, ReplayBufferAsync):
    """For the trainers that generate while they train."""
