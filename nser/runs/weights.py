"""Networks and optimizers as arrays and plain values: files of torch are pickles, which a checkpoint never holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch


def as_arrays(state: Any) -> Any:
    """The state of a module or optimizer with arrays in place of tensors, copied, and texts as keys.

    >>> as_arrays({"weight": torch.ones(2), "groups": [{"betas": (0.9, 0.999)}]})
    {'weight': array([1., 1.], dtype=float32), 'groups': [{'betas': [0.9, 0.999]}]}
    """
    if isinstance(state, torch.Tensor):
        return state.detach().cpu().numpy().copy()
    if isinstance(state, Mapping):
        return {str(key): as_arrays(value) for key, value in state.items()}
    if isinstance(state, list | tuple):
        return [as_arrays(value) for value in state]
    return state


def as_tensors(state: Any) -> Any:
    """The same with tensors in place of arrays; keys stay texts, and tuples lists."""
    if isinstance(state, np.ndarray):
        return torch.from_numpy(state)
    if isinstance(state, Mapping):
        return {key: as_tensors(value) for key, value in state.items()}
    return state


def optimizer_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """What an optimizer loads, from its state as arrays: parameters have numbers there."""
    numbered = {int(key): as_tensors(value) for key, value in state["state"].items()}
    return {"state": numbered, "param_groups": state["param_groups"]}
