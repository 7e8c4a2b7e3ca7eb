"""A world whose observations are of several parts."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

PARTS = "tests/Parts-v0"
Observation = dict[str, Any]


class Parts(gymnasium.Env[Observation, np.int64]):
    """Push while the light is on; episodes of twelve steps."""

    observation_space = spaces.Dict(
        {
            "light": spaces.Discrete(2),
            "room": spaces.Dict({"mode": spaces.Discrete(3, start=4)}),
            "heat": spaces.Box(-1, 1, (2,)),
        }
    )
    action_space = spaces.Discrete(2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.step_number = 0
        return self._seen(), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        reward = float(self.light == action)
        self.step_number += 1
        return self._seen(), reward, self.step_number == 12, False, {}

    def _seen(self) -> Observation:
        self.light = int(self.np_random.integers(2))
        return {
            "light": np.int64(self.light),
            "room": {"mode": np.int64(self.np_random.integers(4, 7))},
            "heat": self.np_random.uniform(-1, 1, 2).astype(np.float32),
        }


gymnasium.register(PARTS, "tests.parts:Parts")
