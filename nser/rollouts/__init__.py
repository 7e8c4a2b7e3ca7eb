"""Rollouts of language models, stored without padding and replayed by one law. Knows no torch and no trainer."""

from nser.rollouts.admission import Admission, Replayed
from nser.rollouts.advantages import GroupAdvantages, efficiency_score, group_advantages
from nser.rollouts.batching import Batch, apply_weights, concat, pad_batch
from nser.rollouts.composing import Step, Update, agreed_count, plan, replay_count
from nser.rollouts.errors import RolloutError, StoreStateError
from nser.rollouts.files import (
    read_lines,
    read_rollouts,
    rollout_from_dict,
    rollout_to_dict,
    transcript,
    write_rollouts,
)
from nser.rollouts.metrics import StoreMetrics, TaskFigures
from nser.rollouts.presets import STORE_PRESETS, store_preset
from nser.rollouts.record import Rollout, Sampling
from nser.rollouts.settings import StoreSettings
from nser.rollouts.store import RolloutStore
from nser.rollouts.turns import turn_spans

__all__ = [
    "STORE_PRESETS",
    "Admission",
    "Batch",
    "GroupAdvantages",
    "Replayed",
    "Rollout",
    "RolloutError",
    "RolloutStore",
    "Sampling",
    "Step",
    "StoreMetrics",
    "StoreSettings",
    "StoreStateError",
    "TaskFigures",
    "Update",
    "agreed_count",
    "apply_weights",
    "concat",
    "efficiency_score",
    "group_advantages",
    "pad_batch",
    "plan",
    "read_lines",
    "read_rollouts",
    "replay_count",
    "rollout_from_dict",
    "rollout_to_dict",
    "store_preset",
    "transcript",
    "turn_spans",
    "write_rollouts",
]
