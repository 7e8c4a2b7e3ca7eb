"""What the converters of all hosts share: advantages of one row, JSON of what rode along, and widening of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nser.rollouts import Rollout, RolloutError

if TYPE_CHECKING:
    from torch import Tensor


def folded(values: NDArray[np.float32], mask: NDArray[np.bool_]) -> float | NDArray[np.float32]:
    """Advantages [T] as one number where that says the same: equal under ``mask`` [T] and 0 outside.

    >>> folded(np.array([2.0, 2.0, 0.0], np.float32), np.array([True, True, False]))
    2.0
    """
    trained = values[mask]
    if not trained.size:
        return 0.0 if not values.any() else values
    same = bool((trained == trained[0]).all()) and not values[~mask].any()
    return float(trained[0]) if same else values


def spread(rollout: Rollout) -> NDArray[np.float32]:
    """The advantage of every token [T], 0 where the mask is False; the inverse of ``folded``."""
    if isinstance(rollout.advantage, float):
        return np.where(rollout.response_mask, np.float32(rollout.advantage), np.float32(0))
    return rollout.advantage


def jsonable(value: Any) -> Any:
    """``value`` with NumPy's numbers and arrays as Python's numbers and lists; what JSON can't say raises TypeError.

    >>> jsonable({"turns": np.int64(2), "spans": (np.array([1, 2]), None)})
    {'turns': 2, 'spans': [[1, 2], None]}
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray | list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, dict):
        return {str(name): jsonable(item) for name, item in value.items()}
    raise TypeError(f"{type(value).__name__} is no JSON")


def widen(tensor: Tensor, width: int, side: Literal["left", "right"], fill: float) -> Tensor:
    """``tensor`` [B, W] as [B, width] with width ≥ W, filled with ``fill`` at one side."""
    from torch.nn.functional import pad

    missing = width - tensor.shape[1]
    if missing == 0:
        return tensor
    return pad(tensor, (missing, 0) if side == "left" else (0, missing), value=fill)


class Flat(NamedTuple):
    """A rollout as hosts without prompt and response have it; all [n], place t about token t.

    ``ids`` int32; ``acted`` bool, True for tokens that the policy chose and is trained on; ``logps`` and
    ``advantages`` float32, 0 where ``acted`` is False.
    """

    ids: NDArray[np.int32]
    acted: NDArray[np.bool_]
    logps: NDArray[np.float32]
    advantages: NDArray[np.float32]


def split(flat: Flat, **fields: Any) -> Rollout:
    """The rollout of flat tokens: its response begins at the first token that was acted; ``fields`` are the others.

    Log-probs and advantages of tokens that are not trained on become 0.

    >>> tokens = Flat(np.array([7, 8, 9], np.int32), np.array([0, 1, 1], bool), -np.ones(3, "f4"), np.ones(3, "f4"))
    >>> split(tokens).response_ids.tolist()
    [8, 9]
    """
    first = int(np.argmax(flat.acted)) if flat.acted.any() else len(flat.ids)
    mask = flat.acted[first:]
    return Rollout(
        prompt_ids=np.asarray(flat.ids[:first], np.int32),
        response_ids=np.asarray(flat.ids[first:], np.int32),
        response_mask=mask,
        behavior_logps=np.where(mask, flat.logps[first:], 0.0).astype(np.float32),
        advantage=folded(np.where(mask, flat.advantages[first:], 0.0).astype(np.float32), mask),
        **fields,
    )


def joined(rollout: Rollout) -> Flat:
    """The inverse of ``split``."""
    prompt = len(rollout.prompt_ids)
    silence = np.zeros(prompt, np.float32)
    return Flat(
        np.concatenate((rollout.prompt_ids, rollout.response_ids)),
        np.concatenate((np.zeros(prompt, np.bool_), rollout.response_mask)),
        np.concatenate((silence, rollout.behavior_logps)),
        np.concatenate((silence, spread(rollout))),
    )


def loss_weights(weights: ArrayLike, rows: int) -> NDArray[np.float32]:
    """``weights`` as float32 [rows]; raises ``RolloutError`` unless they are finite numbers > 0, one for each row."""
    values = np.asarray(weights, np.float32)
    if values.shape != (rows,) or not (np.isfinite(values) & (values > 0)).all():
        raise RolloutError("weights", weights, f"{rows} finite numbers > 0", "Pass one for each row.")
    return values
