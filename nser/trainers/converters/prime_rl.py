"""prime-rl's `TrainingSample` and rollouts. Written after prime-rl 0.8.0; untested against the running framework.

`prime_rl.transports.rollouts.types.TrainingSample` holds one sequence of tokens without prompt and response; `mask`,
`logprobs`, `temperatures`, `advantages` and `rl_weights` are aligned with `token_ids`, not shifted. `rl_weights`
scale a token's loss without entering its normaliser, so they carry loss weights exactly. Where to hook in:
`prime_rl.orchestrator.train_sink.TrainSink.process_batch`, whose `TrainBatch.samples` is a list of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nser.rollouts import Rollout, RolloutError, Sampling
from nser.trainers.rows import Flat, joined, loss_weights, split


def from_samples(samples: Sequence[Any], versions: Sequence[int], rewards: Sequence[float]) -> list[Rollout]:
    """Samples with advantages as rollouts; ``versions`` of the policy and ``rewards`` [n] stand in their traces.

    Raises ``RolloutError`` for images and for samples without advantages.
    """
    rollouts = []
    for row, (sample, version, reward) in enumerate(zip(samples, versions, rewards, strict=True)):
        if sample.advantages is None:
            raise RolloutError("advantages", None, "one for each token", "Leave distillation out.", f"sample {row}")
        if sample.mm_kwargs is not None or sample.routed_experts is not None:
            raise RolloutError("mm_kwargs", "images or experts", "tokens only", "Leave it out.", f"sample {row}")
        mask = np.asarray(sample.mask, np.bool_)
        columns = (np.asarray(values, np.float32) for values in (sample.logprobs, sample.advantages))
        hot = np.asarray(sample.temperatures, np.float64)[mask] if sample.temperatures else np.ones(1)
        rollouts.append(
            split(
                Flat(np.asarray(sample.token_ids, np.int32), mask, *columns),
                reward=float(reward),
                policy_version=(int(version), int(version)),
                task=sample.env_name,
                sampling=Sampling(temperature=float(hot[0]) if hot.size else 1.0, source="sampler"),
            )
        )
    return rollouts


def to_samples(rollouts: Sequence[Rollout], sample_class: type, weights: ArrayLike | None = None) -> list[Any]:
    """Rollouts as objects of ``sample_class``, prime-rl's `TrainingSample`.

    ``weights`` [n] > 0 go into `rl_weights`, on trained tokens. Raises ``RolloutError``.
    """
    scale = None if weights is None else loss_weights(weights, len(rollouts))
    samples = []
    for row, rollout in enumerate(rollouts):
        flat = joined(rollout)
        samples.append(
            sample_class(
                token_ids=flat.ids.tolist(),
                mask=flat.acted.tolist(),
                logprobs=flat.logps.tolist(),
                temperatures=[rollout.sampling.temperature] * len(flat.ids),
                env_name=rollout.task,
                rl_weights=None if scale is None else (flat.acted * scale[row]).tolist(),
                advantages=flat.advantages.tolist(),
            )
        )
    return samples
