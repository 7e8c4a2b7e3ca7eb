"""OpenRLHF's `Experience` and rollouts: one to the other.

Tried with the real `openrlhf.trainer.ppo_utils.experience.Experience` of OpenRLHF 0.11.2. Prompt and response of row
b stand together in `sequences` [B, T], padded on the right. All that is said of actions is [B, T − 1] and **shifted
by one**: place t is about the token at t + 1, which the policy chose when it had read up to t::

    sequences         p0 p1 p2 r0 r1 r2
    action_mask        0  0  1  1  1         and action_log_probs, rollout_log_probs, advantages

The response of a rollout begins at the first token that was an action; later tokens that were none are those of
tools and environments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from nser.rollouts import Rollout, RolloutError, Sampling
from nser.trainers.rows import Flat, joined, jsonable, loss_weights, split, widen

BESIDE = "openrlhf"  # metadata key of what is no tensor
STEP = ("action_mask", "action_log_probs", "rollout_log_probs", "advantages", "returns")
NEVER = ("values", "base_action_log_probs", "kl")
"""Fields [B, T − 1] that take another forward pass: left out of what ``to_experience`` gives."""


def from_experience(experience: Any, version: int, sampling: Sampling | None = None) -> list[Rollout]:
    """The rows of an `Experience` after `compute_advantages_and_returns`, padding cut off.

    The behaviour policy's log-probs are `rollout_log_probs` (the inference engine's) or, without them,
    `action_log_probs`. Rows of one prompt share a group and a task when they share their prompt's text. ``version``:
    of the policy that generated. Raises ``RolloutError``, also for images.
    """
    if experience.advantages is None:
        raise RolloutError("advantages", None, "advantages", "Convert after compute_advantages_and_returns.")
    if any(experience.mm_train_inputs):
        raise RolloutError("mm_train_inputs", "images", "text", "Train without images, or without replay.")
    engine = experience.rollout_log_probs is not None
    sampling = sampling or Sampling()
    how = Sampling(sampling.temperature, sampling.top_p, sampling.top_k, "sampler" if engine else "trainer")
    logps = experience.rollout_log_probs if engine else experience.action_log_probs
    ids, real = (tensor.cpu().numpy() for tensor in (experience.sequences, experience.attention_mask.bool()))
    columns = (
        experience.action_mask.bool().cpu().numpy(),
        *(tensor.detach().float().cpu().numpy() for tensor in (logps, experience.advantages)),
    )
    if (real != (np.arange(real.shape[1]) < real.sum(1)[:, None])).any():
        raise RolloutError("attention_mask", "padding on the left", "padding on the right", "Use OpenRLHF 0.11.")
    rollouts = []
    for row, stop in enumerate(real.sum(1).tolist()):
        # About the next token → about this one: nobody chose the first.
        aligned = (np.append(np.zeros(1, values.dtype), values[row, : stop - 1]) for values in columns)
        prompt = str(experience.prompts[row]) if row < len(experience.prompts) else ""
        rollouts.append(
            split(
                Flat(ids[row, :stop].astype(np.int32), *aligned),
                reward=0.0 if experience.rewards is None else float(experience.rewards[row]),
                policy_version=(version, version),
                group=prompt,
                sampling=how,
                metadata={BESIDE: _beside(experience, row)},
            )
        )
    return rollouts


def to_experience(rollouts: Sequence[Rollout], like: Any, pad_id: int) -> Any:
    """Rollouts as one `Experience` with the fields and types of ``like``; inverse of ``from_experience``.

    `action_log_probs` become the behaviour policy's, and what takes another forward pass (``NEVER``) stays None.
    Raises ``RolloutError``.
    """
    if not rollouts:
        raise RolloutError("rollouts", "none", "at least one rollout", "Skip the step's replay when nothing is drawn.")
    width = max(len(rollout.prompt_ids) + len(rollout.response_ids) for rollout in rollouts)
    sequences = np.full((len(rollouts), width), pad_id, np.int64)
    attention = np.zeros((len(rollouts), width), np.int64)
    steps = {name: np.zeros((len(rollouts), width - 1), np.float32) for name in ("mask", "logps", "advantages")}
    for row, rollout in enumerate(rollouts):
        if not len(rollout.prompt_ids):
            raise RolloutError("prompt_ids", "none", "at least one token", "The first token can't be an action.")
        flat = joined(rollout)
        stop = len(flat.ids)
        sequences[row, :stop] = flat.ids
        attention[row, :stop] = 1
        for name, values in (("mask", flat.acted), ("logps", flat.logps), ("advantages", flat.advantages)):
            steps[name][row, : stop - 1] = values[1:]
    own: dict[str, NDArray] = {
        "sequences": sequences,
        "attention_mask": attention,
        "action_mask": steps["mask"],
        "rewards": np.array([rollout.reward for rollout in rollouts], np.float32),
    }
    own |= dict.fromkeys(("action_log_probs", "rollout_log_probs"), steps["logps"])
    own |= dict.fromkeys(("advantages", "returns"), steps["advantages"])
    return _filled(rollouts, like, own)


def concat(experiences: Sequence[Any], pad_id: int) -> Any:
    """Several `Experience`s as one, padded to the longest, by OpenRLHF's own `concat_experiences`.

    Raises ``RolloutError`` where a field is None in some of them only: OpenRLHF would look at the first alone.
    """
    if not experiences:
        raise RolloutError("experiences", "none", "at least one", "Pass the fresh one first.")
    for name in vars(experiences[0]):
        empty = {getattr(experience, name) is None for experience in experiences}
        if len(empty) > 1:
            raise RolloutError(
                name, "None in some", "a tensor in all, or None in all", "Compute it, or set it to None."
            )
    # OpenRLHF pads each field to its own longest; widened here so that all step fields agree.
    longest = max(experience.sequences.shape[1] for experience in experiences)
    return type(experiences[0]).concat_experiences([_widened(one, longest, pad_id) for one in experiences], pad_id)


def apply_weights(experience: Any, weights: ArrayLike) -> Any:
    """The experience with advantages times ``weights`` [B] > 0, an exact weight of each row's policy loss.

    KL and entropy terms stay as they are. Raises ``RolloutError``.
    """
    scale = torch.from_numpy(loss_weights(weights, len(experience.sequences))).to(experience.advantages.device)
    weighted = experience.advantages * scale.unsqueeze(1)  # [B, T − 1] · [B, 1]
    return type(experience)(**(vars(experience) | {"advantages": weighted}))


def _beside(experience: Any, row: int) -> dict[str, Any]:
    """What of a row is neither a step nor kept elsewhere: label, score, whether it was cut, figures for the log."""
    found: dict[str, Any] = {"info": {}}
    for name in ("scores", "truncated"):
        values = getattr(experience, name)
        found[name] = None if values is None else values[row].item()
    found["label"] = jsonable(experience.labels[row]) if row < len(experience.labels) else None
    for name, values in experience.info.items():
        value = values[row]
        found["info"][name] = value.item() if isinstance(value, Tensor) else jsonable(value)
    return found


def _filled(rollouts: Sequence[Rollout], like: Any, own: dict[str, NDArray]) -> Any:
    """An `Experience` of ``own`` columns and of what rode along in metadata."""
    beside = [rollout.metadata.get(BESIDE, {}) for rollout in rollouts]
    fields: dict[str, Any] = {
        name: None if present is None else torch.from_numpy(own[name]).to(present.dtype)
        for name in own
        if (present := getattr(like, name)) is not None or name not in ("sequences", "attention_mask")
    }
    for name in ("scores", "truncated"):
        present = getattr(like, name)
        values = [row.get(name) or 0 for row in beside]
        fields[name] = None if present is None else torch.tensor(values, dtype=present.dtype)
    lengths = [
        int(np.ptp(np.flatnonzero(rollout.response_mask)) + 1) if rollout.response_mask.any() else 0
        for rollout in rollouts
    ]
    fields["response_length"] = _numbers(lengths, like.response_length)
    fields["total_length"] = _numbers(own["attention_mask"].sum(1), like.total_length)
    info = {}
    for name, present in like.info.items():
        values = [row.get("info", {}).get(name) or 0 for row in beside]
        info[name] = torch.tensor(values, dtype=present.dtype) if isinstance(present, Tensor) else values
    return type(like)(
        **fields,
        index=[-1] * len(rollouts),
        prompts=[rollout.group for rollout in rollouts],
        labels=[row.get("label") for row in beside],
        images=[None] * len(rollouts),
        mm_train_inputs=[None] * len(rollouts),
        info=info,
    )


def _span(mask: NDArray[np.bool_]) -> int:
    """From the first to the last token that was an action, as OpenRLHF counts the length of a response."""
    acted = np.flatnonzero(mask)
    return int(np.ptp(acted)) + 1 if acted.size else 0


def _numbers(values: ArrayLike, present: Tensor | None) -> Tensor | None:
    return None if present is None else torch.as_tensor(np.asarray(values)).to(present.dtype)


def _widened(experience: Any, width: int, pad_id: int) -> Any:
    fields = dict(vars(experience))
    fields["sequences"] = widen(experience.sequences, width, "right", pad_id)
    fields["attention_mask"] = widen(experience.attention_mask, width, "right", 0)
    for name in (*STEP, *NEVER):
        if fields[name] is not None:
            fields[name] = widen(fields[name], width - 1, "right", 0)
    return type(experience)(**fields)
