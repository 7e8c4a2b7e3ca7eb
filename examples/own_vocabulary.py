"""An environment and a vocabulary of one's own: a greenhouse with two plants, and what rules may say about it.

    python examples/own_vocabulary.py

plays at random and prints the rules that it finds; see vocabulary.md."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from torch import Tensor

from nser.experience.record import record
from nser.grounding.steps import Steps
from nser.grounding.vocabulary import Vocabulary, number, predicate
from nser.induce.loop import induce
from nser.induce.settings import InductionSettings
from nser.induce.symbolic import SymbolicProposer
from nser.rules.printer import print_rule

PLANTS = {"fern": 0, "cactus": 1}
ACTIONS = "wait", "water_fern", "water_cactus"
THIRST, POUR, TANK, HOURS = (5.0, 2.0), 20.0, 6.0, 16  # % an hour, % a watering, waterings, length of a day


@number("plant", unit="%", low=0, high=100, example="moisture(t, fern) < ?30")
def moisture(steps: Steps, plant: str) -> Tensor:
    "Water in the soil of this plant."
    return steps.observations[:, PLANTS[plant]]


@predicate(example="~tank_empty(t) & moisture(t, cactus) < 20")
def tank_empty(steps: Steps) -> Tensor:
    "There is no water left in the tank."
    return steps.observations[:, 2] < 1


VOCABULARY = Vocabulary(
    "greenhouse",
    (moisture, tank_empty),
    sorts={"plant": tuple(PLANTS)},
    actions=ACTIONS,
    description="Two plants in a greenhouse. The reward comes when both have lived through the day.",
)


class Greenhouse(gymnasium.Env[Any, Any]):
    """Keep both plants between 10 % and 90 % for a day: reward 1 at its end. Observation: fern, cactus, tank."""

    vocabulary = VOCABULARY  # where nser looks for it
    observation_space = gymnasium.spaces.Box(0.0, 100.0, (3,))
    action_space = gymnasium.spaces.Discrete(len(ACTIONS))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.soil, self.tank, self.hour = self.np_random.uniform(35, 80, 2), TANK, 0
        return self._seen(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if action and self.tank >= 1:
            self.soil[action - 1] += POUR
            self.tank -= 1
        self.soil, self.hour = self.soil - THIRST, self.hour + 1
        died = bool(self.soil.min() < 10 or self.soil.max() > 90)
        lived = not died and self.hour == HOURS
        return self._seen(), float(lived), died or lived, False, {}

    def _seen(self) -> Any:
        return np.array([*self.soil.clip(0, 100), self.tank], np.float32)


gymnasium.register("Greenhouse-v0", Greenhouse)

if __name__ == "__main__":
    played = record(gymnasium.make("Greenhouse-v0"), episodes=1500, seed=1)
    found = induce(played, VOCABULARY, SymbolicProposer(), InductionSettings())
    print(*(print_rule(rule) for rule in found.ruleset.rules), sep="\n")
