"""A world of pictures, for which there is no vocabulary."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

PIXELS = "tests/Pixels-v0"
Picture = NDArray[np.uint8]


class Pixels(gymnasium.Env[Picture, np.int64]):
    """Noise; action 1 is rewarded, and an episode ends at one step of ten."""

    observation_space = gymnasium.spaces.Box(0, 255, (4, 4, 3), np.uint8)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Picture, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        return self._picture(), {}

    def step(self, action: np.int64) -> tuple[Picture, float, bool, bool, dict[str, Any]]:
        return self._picture(), float(action == 1), bool(self.np_random.random() < 0.1), False, {}

    def _picture(self) -> Picture:
        return self.np_random.integers(0, 256, (4, 4, 3), np.uint8)


gymnasium.register(PIXELS, "tests.pixels:Pixels")
