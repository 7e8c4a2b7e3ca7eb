"""The control of rules: the same boost, given to transitions at random."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nser.grounding.steps import Steps


class PlaceboScorer:
    """Relevance 1 for a random share of the transitions, 0 for the rest; has its own generator."""

    version = 0
    past = future = 0

    def __init__(self, share: float = 0.02, seed: int = 0) -> None:
        if not 0 <= share <= 1:
            raise ValueError(f"found share {share}, expected a number in [0, 1]")
        self.share = share
        self.generator = np.random.default_rng(seed)

    def relevance(self, steps: Steps) -> NDArray[np.float64]:
        """[T] zeros and ones."""
        return (self.generator.random(len(steps)) < self.share).astype(np.float64)

    def state(self) -> dict[str, Any]:
        """The generator's state, for a checkpoint."""
        return {"generator": self.generator.bit_generator.state}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.generator.bit_generator.state = state["generator"]
