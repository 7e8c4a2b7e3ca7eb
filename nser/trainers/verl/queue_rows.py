"""Rows of verl's TransferQueue and rollouts: one to the other, and the advantages that verl will give them.

A row is a dictionary of tensors without padding, prompts [P], responses and all that is said of them [T], input_ids
and position_ids [P + T], and of whatever the data set and the agent loop put beside them; as
`verl.trainer.ppo.v1.agent_loop_tq` of verl 0.9.1 writes it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nser.rollouts import Rollout, RolloutError, Sampling
from nser.trainers.rows import jsonable
from nser.trainers.verl.batches import BESIDE, SPAN

REQUIRED = ("prompts", "responses", "response_mask", "rollout_log_probs", "rm_scores")
WAYS_OUT = {
    "rollout_log_probs": "Set actor_rollout_ref.rollout.calculate_log_probs=True.",
    "rm_scores": "Use a reward function, or a reward model with enable_resource_pool=True: others come too late.",
}
REFUSED = ("routed_experts", "teacher_ids", "teacher_logprobs")
EPSILON = 1e-6  # that verl's GRPO estimator adds to a standard deviation


def check_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise ``RolloutError`` for rows that can't be stored or rebuilt."""
    for key in REQUIRED:
        if key not in rows[0]:
            raise RolloutError(key, "no such field", "a field of every row", WAYS_OUT.get(key, "Check verl's version."))
    for key in REFUSED:
        if key in rows[0]:
            raise RolloutError(key, "a field of the rows", "tokens only", "Train without it, or without replay.")
    if any(row.get("multi_modal_inputs") for row in rows):
        raise RolloutError("multi_modal_inputs", "images", "text", "Train without images, or without replay.")


def group_advantages(keys: Sequence[str], rewards: Sequence[float], norm_by_std: bool) -> NDArray[np.float64]:
    """[B] advantages as verl's V1 computes them for GRPO, from keys `{uid}_{session}_{index}` and rewards.

    The last output of a session stands for it: (r − mean)/(std + 1e-6) with the sample's standard deviation. A
    group of one has its reward.
    """
    sessions = [tuple(key.rsplit("_", 2)[:2]) for key in keys]
    final: dict[tuple[str, ...], tuple[int, float]] = {}
    for key, session, reward in zip(keys, sessions, rewards, strict=True):
        final[session] = max(final.get(session, (-1, 0.0)), (int(key.rsplit("_", 1)[1]), reward))
    groups: dict[str, list[float]] = {}
    for session, (_, reward) in final.items():
        groups.setdefault(session[0], []).append(reward)
    advantages = np.zeros(len(keys))
    for row, session in enumerate(sessions):
        group = np.array(groups[session[0]], np.float64)
        mean, std = (group.mean(), group.std(ddof=1)) if len(group) > 1 else (0.0, 1.0)
        centred = final[session][1] - mean
        advantages[row] = centred / (std + EPSILON) if norm_by_std else centred
    return advantages


def rollout_of(row: Mapping[str, Any], tag: Mapping[str, Any], advantage: float, version: int) -> Rollout:
    """A row of the queue with its ``advantage``; ``version`` where verl wrote none into the tag."""
    first, last = (version if tag.get(name) is None else int(tag[name]) for name in SPAN)
    beside = {}
    for key, value in row.items():
        if not isinstance(value, torch.Tensor) and key not in ("uid", "data_source", "multi_modal_inputs"):
            try:
                beside[key] = jsonable(value)
            except TypeError:
                continue  # filled from the row that serves as template
    return Rollout(
        prompt_ids=row["prompts"].numpy().astype(np.int32),
        response_ids=row["responses"].numpy().astype(np.int32),
        response_mask=row["response_mask"].numpy().astype(np.bool_),
        behavior_logps=row["rollout_log_probs"].float().numpy(),
        advantage=advantage,
        reward=float(row["rm_scores"].sum()),
        policy_version=(first, last),
        group=str(row["uid"]),
        task=str(row.get("data_source", "")),
        sampling=Sampling(source="sampler"),
        metadata={BESIDE: beside},
    )


def row_of(rollout: Rollout, template: Mapping[str, Any], uid: str, weight: float, norm_by_std: bool) -> dict[str, Any]:
    """A row like ``template`` for a replayed rollout, rewarded so that verl gives it advantage · ``weight``."""
    prompt, response = (torch.from_numpy(ids.astype(np.int64)) for ids in (rollout.prompt_ids, rollout.response_ids))
    ids = torch.cat((prompt, response))
    mask = torch.from_numpy(rollout.response_mask.astype(np.int64))
    rewards = torch.zeros(len(response))
    if not isinstance(rollout.advantage, float):
        raise RolloutError("advantage", "per token", "one number", "Replay it with trainer V0.", rollout.group)
    rewards[-1] = rollout.advantage * weight * (1 + EPSILON if norm_by_std else 1.0)
    own: dict[str, Any] = {
        "prompts": prompt,
        "responses": response,
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "position_ids": torch.arange(len(ids)),
        "response_mask": mask,
        "loss_mask": mask,
        "rollout_log_probs": torch.from_numpy(rollout.behavior_logps.copy()),
        "rm_scores": rewards,
        "uid": uid,
        "session_id": 0,
        "data_source": rollout.task,
        "multi_modal_inputs": {},
    }
    beside = rollout.metadata.get(BESIDE, {})
    row = {}
    for key, value in template.items():
        found = own[key] if key in own else copy.deepcopy(beside.get(key, value))
        row[key] = found.to(value.dtype) if isinstance(found, torch.Tensor) else found
    return row


def tag_of(rollout: Rollout, template: Mapping[str, Any]) -> dict[str, Any]:
    """The tag of a replayed row."""
    first, last = rollout.policy_version
    prompt, response = len(rollout.prompt_ids), len(rollout.response_ids)
    return dict(template) | {
        "status": "success",
        "prompt_len": prompt,
        "response_len": response,
        "seq_len": prompt + response,
        "min_global_steps": first,
        "max_global_steps": last,
        "is_padding": True,
        "replayed": True,
    }


def unstacked(rows: Any) -> list[dict[str, Any]]:
    """The rows of a `TensorDict` of (nested) tensors and of anything else, as dictionaries."""
    columns = {}
    for key in list(rows.keys()):
        # `get` gives the column itself; indexing unwraps what is no tensor, differently in each tensordict.
        value = rows.get(key)
        columns[key] = list(value.unbind()) if isinstance(value, torch.Tensor) else value.tolist()
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
