"""Comparing a numeric feature with a threshold, softly or crisply."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from nser.grounding.steps import Steps
from nser.grounding.vocabulary import Vocabulary
from nser.rules.signature import PredicateSignature
from nser.rules.syntax import Atom, ComparisonOperator

Ranges = Mapping[Atom, tuple[float, float]]
"""(lowest, highest) value of a numeric feature, in its unit."""


def margin(
    values: Tensor,
    operator: ComparisonOperator,
    threshold: Tensor | float,
    sharpness: float | None,
    width: float,
) -> Tensor:
    """[T] signed distance from the threshold: positive where the comparison holds.

    The soft degree is the sigmoid of it, with k = `sharpness` over the feature's `width`; a crisp comparison
    (`sharpness=None`) holds where it is above 0.
    """
    sign = 1.0 if operator.startswith(">") else -1.0
    distance = sign * (values - threshold)
    if sharpness is not None:
        return distance * (sharpness / max(width, 1e-12))
    # At equality the closed comparisons hold; the nudge is below any difference that float32 can show.
    return distance + torch.finfo(values.dtype).tiny if operator.endswith("=") else distance


def hold(distance: Tensor, sharpness: float | None) -> Tensor:
    """[T] degree to which a comparison with this margin holds."""
    return torch.sigmoid(distance) if sharpness is not None else (distance > 0).to(distance.dtype)


def bounds(feature: Atom, signature: PredicateSignature, ranges: Ranges) -> tuple[float, float] | None:
    """The feature's range: observed, else declared, else unknown."""
    if feature in ranges:
        return ranges[feature]
    if signature.low is None or signature.high is None:
        return None
    return signature.low, signature.high


def observed_ranges(vocabulary: Vocabulary, steps: Steps) -> dict[Atom, tuple[float, float]]:
    """Lowest and highest value in the data of every numeric feature of the state."""
    atoms = vocabulary.ground_atoms(("number",), ("state", "action"))
    values = {atom: vocabulary.numbers(atom, steps) for atom in atoms} if len(steps) else {}
    return {atom: (float(v.min()), float(v.max())) for atom, v in values.items()}
