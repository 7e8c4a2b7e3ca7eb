"""Rules as a reward function of TRL's trainers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nser.rollouts import Rollout
from nser.trainers.trl.scoring import Scorer, messages_of, scores_of


def rule_reward(scorer: Scorer, name: str = "rules", task: str = "") -> Callable[..., list[float]]:
    """A `reward_func` that gives every completion its score in [0, 1]; `reward_weights` says how much it counts.

    scorer: sees rollouts with the completion's ids, prompt and completion as ``metadata["messages"]``, the other
            columns of the data set as ``metadata["columns"]``, and neither prompt ids, log-probs nor a reward yet
    name:   under which TRL logs it
    task:   column of the data set that names the task, "" for none
    """

    def reward(prompts: list, completions: list, completion_ids: list, **columns: Any) -> list[float]:
        known = {
            key: values for key, values in columns.items() if isinstance(values, list) and len(values) == len(prompts)
        }
        rollouts = [
            Rollout(
                prompt_ids=np.zeros(0, np.int32),
                response_ids=np.asarray(ids, np.int32),
                response_mask=np.ones(len(ids), np.bool_),
                behavior_logps=np.zeros(len(ids), np.float32),
                task=str(known[task][row]) if task else "",
                metadata={
                    "messages": messages_of(prompts[row], completions[row]),
                    "columns": {key: values[row] for key, values in known.items()},
                },
            )
            for row, ids in enumerate(completion_ids)
        ]
        return [float(score) for score in scores_of(scorer, rollouts)]

    reward.__name__ = name
    return reward
