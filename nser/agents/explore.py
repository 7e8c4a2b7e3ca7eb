"""What an ε-greedy agent does with its random actions."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from nser.grounding.evaluator import Evaluator
from nser.grounding.lower import reach
from nser.grounding.steps import single_steps
from nser.grounding.vocabulary import Vocabulary
from nser.rules.syntax import Rule, praises
from nser.rules.walk import scope_of

REMEMBERED = 100_000  # states whose action scores are kept; small worlds come back to the same ones


class Explorer(Protocol):
    """Chooses the actions of the steps on which ε-greedy does not ask the network. Has its own generator."""

    def explores(self, count: int, rate: float) -> NDArray[np.bool_]:
        """[count] which environments explore now, each with probability `rate`."""

    def actions(self, observations: NDArray) -> NDArray[np.int64]:
        """[n] actions for observations [n, …]."""

    def state(self) -> dict[str, Any]:
        """Plain values for a checkpoint."""

    def load_state(self, state: dict[str, Any]) -> None:
        """Take over what `state` gave."""


class UniformExplorer:
    """Every action alike."""

    def __init__(self, actions: int, seed: int) -> None:
        self.count = actions
        self.generator = np.random.default_rng(seed)

    def explores(self, count: int, rate: float) -> NDArray[np.bool_]:
        """[count] independent coins."""
        return self.generator.random(count) < rate

    def actions(self, observations: NDArray) -> NDArray[np.int64]:
        """[n] actions, uniform."""
        return self.generator.integers(self.count, size=len(observations))

    def state(self) -> dict[str, Any]:
        """The generator's state."""
        return {"generator": self.generator.bit_generator.state}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a saved state of the generator."""
        self.generator.bit_generator.state = state["generator"]


class RuleExplorer(UniformExplorer):
    """A share of the random actions is drawn from those that the rules call good in the present state.

    Only rules that praise and whose bodies read the present state and the action take part; an action's
    probability is its score over the sum of scores, and where no action scores the choice is uniform.

    share: of the random actions, in [0, 1]
    """

    def __init__(self, vocabulary: Vocabulary, share: float, seed: int) -> None:
        if not 0 <= share <= 1:
            raise ValueError(f"found share {share}, expected a number in [0, 1]")
        if not vocabulary.actions:
            raise ValueError(
                f"vocabulary {vocabulary.name} names no discrete actions, which exploration by rules chooses among; "
                "explore without rules"
            )
        super().__init__(len(vocabulary.actions), seed)
        self.vocabulary = vocabulary
        self.share = share
        self.asked, self.guided = 0, 0
        self._evaluator: Evaluator | None = None
        self._known: dict[bytes, NDArray[np.float64] | None] = {}

    def set_rules(self, rules: tuple[Rule, ...]) -> None:
        """Put a rule set in force."""
        signature = self.vocabulary.signature
        usable = [
            rule
            for rule in rules
            if praises(rule) and reach(rule.body) == (0, 0) and scope_of(rule.body, signature) in ("state", "action")
        ]
        self._evaluator = Evaluator(usable, self.vocabulary) if usable else None
        self._known.clear()

    def actions(self, observations: NDArray) -> NDArray[np.int64]:
        """[n] actions, by the rules for a share of them."""
        chosen = super().actions(observations)
        self.asked += len(chosen)
        if self._evaluator is None:
            return chosen
        for row in np.flatnonzero(self.generator.random(len(chosen)) < self.share):
            chances = self._chances(observations[row])
            if chances is not None:
                chosen[row] = self.generator.choice(self.count, p=chances)
                self.guided += 1
        return chosen

    def _chances(self, observation: NDArray) -> NDArray[np.float64] | None:
        key = observation.tobytes()
        if key not in self._known:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[key] = self._score(observation)
        return self._known[key]

    @torch.no_grad()
    def _score(self, observation: NDArray) -> NDArray[np.float64] | None:
        assert self._evaluator is not None
        flat = torch.as_tensor(observation, dtype=torch.float32).reshape(1, -1).expand(self.count, -1)
        scores = self._evaluator(single_steps(flat, torch.arange(self.count))).numpy().astype(np.float64)
        total = scores.sum()
        # Soft comparisons give every action a trace of score; what is no more than a trace guides nobody.
        return scores / total if scores.max() > 0.05 else None

    def state(self) -> dict[str, Any]:
        """The generator's state and the counts; rules are put in force by whoever loads the run."""
        return {**super().state(), "asked": self.asked, "guided": self.guided}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        super().load_state(state)
        self.asked, self.guided = int(state["asked"]), int(state["guided"])
