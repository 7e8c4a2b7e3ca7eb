"""AReaL's trajectories and rollouts. Written after AReaL 1.0.4; untested against the running framework.

`PPOActor.compute_advantages` gives, and `PPOActor.ppo_update` takes, a list of dictionaries of tensors [B, L], padded
on the right. `input_ids`, `attention_mask` and `versions` (−1 for tokens that nobody generated) are aligned with
tokens; `loss_mask`, `logprobs`, `prox_logp` and `advantages` were rolled by one: place t is about token t + 1, and the
last place about nothing.

Wrap `ppo_update`: convert what it gets, draw, and append ``to_trajectories``. With `use_decoupled_loss` AReaL corrects
by itself: `logprobs` are the behaviour policy's, and `prox_logp` the present one's, which `PPOActor.compute_logp`
gives for the replayed dictionaries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from nser.rollouts import Rollout, RolloutError, Sampling
from nser.trainers.rows import Flat, joined, loss_weights, split

REQUIRED = ("input_ids", "attention_mask", "loss_mask", "logprobs", "versions", "advantages", "rewards")
COMPUTED = ("prox_logp", "ref_logp", "values")
"""What takes another forward pass, and is left out of ``to_trajectories``."""


def from_trajectories(trajectories: Sequence[Mapping[str, Any]]) -> list[Rollout]:
    """The rows of all dictionaries after `compute_advantages`; rows of one dictionary are a group.

    Raises ``RolloutError``.
    """
    rollouts = []
    for number, trajectory in enumerate(trajectories):
        for key in REQUIRED:
            if key not in trajectory:
                raise RolloutError(key, "no such key", f"{', '.join(REQUIRED)}", "Convert what ppo_update gets.")
        columns = {key: trajectory[key].cpu().numpy() for key in REQUIRED}
        for row, stop in enumerate(columns["attention_mask"].astype(np.bool_).sum(1).tolist()):
            acted = _token(columns["loss_mask"][row, :stop]).astype(np.bool_)
            seen = columns["versions"][row, :stop][acted]
            first, last = (int(seen[0]), int(seen[-1])) if seen.size else (0, 0)
            rollouts.append(
                split(
                    Flat(
                        columns["input_ids"][row, :stop],
                        acted,
                        _token(columns["logprobs"][row, :stop]),
                        _token(columns["advantages"][row, :stop]),
                    ),
                    reward=float(columns["rewards"][row]),
                    policy_version=(first, max(first, last)),
                    group=f"{first}.{number}",
                    sampling=Sampling(source="sampler"),
                )
            )
    return rollouts


def to_trajectories(
    rollouts: Sequence[Rollout], like: Mapping[str, Any], weights: ArrayLike | None = None
) -> list[dict[str, Any]]:
    """One dictionary [1, L] for each rollout, with the keys and types of ``like`` but those of ``COMPUTED``.

    ``weights`` [n] > 0 multiply the advantages. A rollout remembers the versions of its first and last token only:
    those between are given the first. Raises ``RolloutError`` for keys that a rollout does not hold.
    """
    scale = np.ones(len(rollouts)) if weights is None else loss_weights(weights, len(rollouts))
    found = []
    for rollout, weight in zip(rollouts, scale.tolist(), strict=True):
        flat = joined(rollout)
        versions = np.where(flat.acted, rollout.policy_version[0], -1)
        versions[np.flatnonzero(flat.acted)[-1:]] = rollout.policy_version[1]
        rewards = np.zeros(len(flat.ids), np.float32)
        rewards[-2:-1] = rollout.reward
        own = {
            "input_ids": flat.ids,
            "attention_mask": np.ones(len(flat.ids), np.bool_),
            "loss_mask": _place(flat.acted),
            "logprobs": _place(flat.logps),
            "versions": versions,
            "advantages": _place(flat.advantages) * weight,
            "returns": _place(flat.advantages) * weight,
            "rewards": np.float32(rollout.reward),
            "tot_rewards": rewards,
            "kl_rewards": np.zeros(len(flat.ids), np.float32),
        }
        row = {}
        for key, present in like.items():
            if key in COMPUTED:
                continue
            if key not in own:
                raise RolloutError(key, "a key of the batch", "tokens only", "Take it out, or train without replay.")
            row[key] = torch.as_tensor(own[key]).to(present.dtype).unsqueeze(0)
        found.append(row)
    return found


def _token(places: NDArray) -> NDArray:
    """[n] about the next token → about this one."""
    return np.concatenate((np.zeros_like(places[:1]), places[:-1]))


def _place(tokens: NDArray) -> NDArray:
    """[n] about this token → about the next one."""
    return np.concatenate((tokens[1:], np.zeros_like(tokens[:1])))
