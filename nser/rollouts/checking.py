"""Checks of a rollout's fields, in one place; each returns the value in the record's own type."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nser.rollouts.errors import RolloutError

LOGP_TOLERANCE = 1e-2  # above 0: what half precision may round a log-prob to
MAX_ID = np.iinfo(np.int32).max


def as_ids(name: str, values: Any) -> NDArray[np.int32]:
    """Token ids [n] as read-only int32; raises ``RolloutError``."""
    array = _flat(name, values)
    if array.dtype.kind not in "iu" and array.size:
        raise RolloutError(name, f"an array of {array.dtype}", "whole numbers", "Pass token ids.")
    if array.dtype != np.int32 and array.size and (array.min() < 0 or array.max() > MAX_ID):
        raise RolloutError(name, int(array.min()), f"ids from 0 to {MAX_ID}", "Pass ids of one vocabulary.")
    if array.dtype == np.int32 and array.size and array.min() < 0:
        raise RolloutError(name, int(array.min()), "ids ≥ 0", "Cut padding off; the record holds none.")
    return _frozen(array.astype(np.int32, copy=False))


def as_mask(name: str, values: Any, length: int) -> NDArray[np.bool_]:
    """A mask [T] as read-only bool, from booleans or zeros and ones; raises ``RolloutError``."""
    array = _flat(name, values, length)
    if array.dtype != np.bool_ and not np.isin(array, (0, 1)).all():
        raise RolloutError(name, f"an array of {array.dtype}", "True and False, or 1 and 0", "Pass a mask.")
    return _frozen(array.astype(np.bool_, copy=False))


def as_logps(name: str, values: Any, mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Log-probs [T] as read-only float32: finite, and ≤ 0 where ``mask`` [T] is True; raises ``RolloutError``."""
    array = _finite(name, _flat(name, values, len(mask)))
    trained = array[mask]
    if trained.size and trained.max() > LOGP_TOLERANCE:
        at = int(np.argmax(np.where(mask, array, -np.inf)))
        raise RolloutError(
            name, f"{array[at]:g} at token {at}", "log-probs ≤ 0", "Pass logarithms of probabilities, not ratios."
        )
    return _frozen(array)


def as_advantage(name: str, value: Any, length: int) -> float | NDArray[np.float32]:
    """One finite number as float, or read-only float32 [T]; raises ``RolloutError``."""
    if np.ndim(value) == 0:
        return check_number(name, value)
    return _frozen(_finite(name, _flat(name, value, length)))


def check_number(name: str, value: Any) -> float:
    """A finite number as float; raises ``RolloutError``."""
    if isinstance(value, str):
        raise RolloutError(name, value, "a number, no text", "Convert it with float().")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise RolloutError(name, value, "a number", "Convert it with float().") from None
    if not math.isfinite(number):
        raise RolloutError(name, number, "a finite number", "Look for what made it before it is stored.")
    return number


def check_count(name: str, value: Any) -> int:
    """A whole number ≥ 0 as int; raises ``RolloutError``."""
    try:
        count = operator.index(value)
    except TypeError:
        raise RolloutError(name, value, "a whole number ≥ 0", "Convert it with int().") from None
    if count < 0:
        raise RolloutError(name, count, "a whole number ≥ 0", "Count from 0.")
    return count


def check_versions(versions: Any) -> tuple[int, int]:
    """Two whole numbers, 0 ≤ first ≤ last; raises ``RolloutError``."""
    if not isinstance(versions, tuple) or len(versions) != 2:
        raise RolloutError("policy_version", versions, "a pair (first, last)", "Pass (version, version) if one.")
    first, last = (check_count("policy_version", version) for version in versions)
    if first > last:
        raise RolloutError("policy_version", versions, "first ≤ last", "The version of the first token comes first.")
    return first, last


def check_scores(scores: Any, together: float) -> dict[str, float]:
    """``scores`` as floats, all in [0, 1], as ``together`` is unless it is NaN for none; raises ``RolloutError``."""
    if not isinstance(scores, Mapping):
        raise RolloutError("rule_scores", scores, "a mapping of rule names to numbers", "Pass a dictionary.")
    for name, score in scores.items():
        if not isinstance(name, str) or not 0.0 <= check_number(f"rule_scores[{name!r}]", score) <= 1.0:
            raise RolloutError(f"rule_scores[{name!r}]", score, "a number in [0, 1]", "Rescale the scores.")
    if not math.isnan(together) and not 0.0 <= together <= 1.0:
        raise RolloutError("rule_score", together, "a number in [0, 1]", "Rescale the score.")
    return {name: float(score) for name, score in scores.items()}


def check_sampling(temperature: float, top_p: float, top_k: int, source: str) -> tuple[float, float, int]:
    """Temperature, top-p and top-k that could have been used to sample; raises ``RolloutError``."""
    heat, mass = check_number("temperature", temperature), check_number("top_p", top_p)
    if heat < 0:
        raise RolloutError("temperature", heat, "a number ≥ 0", "Use 1 for the model's own distribution.")
    if not 0 < mass <= 1:
        raise RolloutError("top_p", mass, "a number in (0, 1]", "Use 1 for no limit.")
    if source not in ("trainer", "sampler"):
        raise RolloutError("source", source, "'trainer' or 'sampler'", "Say who computed the log-probs.")
    return heat, mass, check_count("top_k", top_k)


def _flat(name: str, values: Any, length: int | None = None) -> NDArray:
    array = np.asarray(values)
    if array.ndim != 1 or length not in (None, len(array)):
        shape = "[n]" if length is None else f"[{length}], one for each response token"
        raise RolloutError(name, f"the shape {list(array.shape)}", f"the shape {shape}", "Cut padding off first.")
    return array


def _finite(name: str, array: NDArray) -> NDArray[np.float32]:
    if array.dtype.kind not in "iuf":
        raise RolloutError(name, f"an array of {array.dtype}", "numbers", "Convert it to float32.")
    with np.errstate(over="ignore"):
        numbers = array.astype(np.float32, copy=False)
    if not np.isfinite(numbers).all():
        at = int(np.argmin(np.isfinite(numbers)))
        raise RolloutError(name, f"{array[at]} at token {at}", "finite numbers", "Look for what made it first.")
    return numbers


def _frozen(array: NDArray) -> NDArray:
    view = array.view()
    view.flags.writeable = False
    return view
