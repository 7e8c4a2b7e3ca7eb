"""The kernel for batches of replay size: one logarithm for each column, one product of matrices for all rules.

With log p and log (1 − p) of C columns below each other, [2C, T], and a mask [R, 2C] that counts which rule holds
which literal, the log of every conjunction is mask @ logs. Autograd does the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from nser.grounding.reading import Reader
from nser.grounding.steps import Steps

DEGREE_FLOOR = 1e-35  # stands for a degree of 0 under the logarithm; far below what float32 tells from 0
LOG_FLOOR = -1e4  # of a margin that overflowed: the mask's 0 times −∞ would be no number

Conjunctions = Sequence[Sequence[tuple[int, bool]]]
"""For each rule the (column, positive?) it is the product of."""


def logarithms(reader: Reader, steps: Steps, thresholds: Tensor) -> Tensor:
    """[2C, T] log p of every column, then log (1 − p) of every column."""
    margins = reader.margins(steps, thresholds)  # [M, T]
    blocks = [reader.atoms(steps)]
    soft = reader.sharpness is not None
    if len(margins) and not soft:
        blocks.append(reader.hold(margins, steps.device))
    if reader.others:
        blocks.append(torch.stack(reader.other_rows(steps, thresholds)))
    degrees = torch.cat(blocks) if len(blocks) > 1 else blocks[0]
    logs = torch.stack([degrees, 1 - degrees]).clamp_min(DEGREE_FLOOR).log()  # [2, A + O, T]
    if len(margins) and soft:
        # Through the margin, so that a degree next to 0 or 1 keeps its digits and its gradient.
        own = logsigmoid(torch.stack([margins, -margins])).clamp_min(LOG_FLOOR)  # [2, M, T]
        atoms = reader.columns.atoms
        logs = torch.cat([logs[:, :atoms], own, logs[:, atoms:]], 1) if logs.shape[1] else own
    return logs.flatten(0, 1)


def mask(conjunctions: Conjunctions, columns: int) -> Tensor:
    """[R, 2C]: how often each conjunction holds each column plain, then negated."""
    counts = np.zeros((len(conjunctions), 2 * columns), np.float32)
    for rule, parts in enumerate(conjunctions):
        for column, positive in parts:
            counts[rule, column if positive else columns + column] += 1
    return torch.from_numpy(counts)


def conjoin(logs: Tensor, held: Tensor) -> Tensor:
    """[R, T] degrees of the conjunctions that the mask [R, 2C] names."""
    return torch.exp(held @ logs)
