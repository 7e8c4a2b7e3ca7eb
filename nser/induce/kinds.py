"""States that look alike, taken together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nser.grounding.steps import Steps
from nser.grounding.vocabulary import Vocabulary

BINS = 4  # of each numeric feature, where a vocabulary has no truth predicate over states
DIGITS = 62  # bits of a number that holds a row's codes as its digits


@dataclass(frozen=True)
class Valuation:
    """Sorts states into kinds: equal kinds agree in every truth predicate over the state.

    A vocabulary of numbers alone (the automatic one of a Box) is cut into quantile bins instead; `edges` [F, B−1]
    are their borders.
    """

    vocabulary: Vocabulary
    edges: Tensor | None

    @classmethod
    def over(cls, vocabulary: Vocabulary, steps: Steps, bins: int = BINS) -> Valuation:
        """Learn the borders of the bins from data where they are needed."""
        if vocabulary.ground_atoms(("truth",), ("state",)):
            return cls(vocabulary, None)
        atoms = vocabulary.ground_atoms(("number",), ("state",))
        if not atoms:
            return cls(vocabulary, torch.zeros(0, 0))
        values = torch.stack([vocabulary.numbers(atom, steps) for atom in atoms])
        at = torch.linspace(0, 1, bins + 1)[1:-1].to(values.dtype)
        return cls(vocabulary, torch.quantile(values, at, dim=1).T.contiguous())

    def codes(self, steps: Steps) -> Tensor:
        """[T, K] small integers; equal rows are states of one kind."""
        if self.edges is None:
            atoms = self.vocabulary.ground_atoms(("truth",), ("state",))
            return torch.stack([self.vocabulary.degrees(atom, steps) > 0.5 for atom in atoms], 1).to(torch.int16)
        atoms = self.vocabulary.ground_atoms(("number",), ("state",))
        if not atoms:
            return torch.zeros(len(steps), 1, dtype=torch.int16)
        cut = [
            torch.bucketize(self.vocabulary.numbers(atom, steps).contiguous(), edges)
            for atom, edges in zip(atoms, self.edges, strict=True)
        ]
        return torch.stack(cut, 1).to(torch.int16)


def numbered(codes: NDArray[np.int16] | NDArray[np.bool_]) -> NDArray[np.int64]:
    """[M] a number for each different row of [M, K] codes ≥ 0: 0 … kinds − 1.

    As digits of one number, for sorting numbers is ten times faster than sorting rows; many columns are read in
    portions, each with what the ones before it told apart.
    """
    base = int(codes.max(initial=0)) + 1
    portion = max(1, int(DIGITS // np.log2(max(base, 2))))
    found = np.zeros(len(codes), np.int64)
    for first in range(0, codes.shape[1], portion):
        part = codes[:, first : first + portion].astype(np.int64)
        digits = np.unique(part @ base ** np.arange(part.shape[1], dtype=np.int64), return_inverse=True)[1]
        # Both are below M, so that their product with M stays a number of 62 bits for any M in memory.
        found = np.unique(found * len(codes) + digits, return_inverse=True)[1] if first else digits
    return found
