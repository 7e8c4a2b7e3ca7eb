"""The controls of exploration by rules: as often something else than a uniform random action."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nser.agents.explore import Explorer, RuleExplorer, UniformExplorer
from nser.experience.trajectories import as_steps
from nser.grounding.vocabulary import Vocabulary
from nser.induce.kinds import Valuation
from nser.study.conditions import Condition
from nser.study.errors import StudyError


class TableExplorer(UniformExplorer):
    """A share of the random actions comes from a table with one action, once chosen at random, for each kind of state.

    Kinds are told apart by the truth predicates over the state, as rules tell them apart. What rules do for
    exploration beyond being persistent in each kind of state is the difference between them and this.
    """

    def __init__(self, vocabulary: Vocabulary, share: float, seed: int) -> None:
        if not vocabulary.ground_atoms(("truth",), ("state",)):
            raise StudyError(
                f"found vocabulary {vocabulary.name} without truth predicates over the state, by which a random table "
                "tells states apart; leave out per+random-table"
            )
        super().__init__(len(vocabulary.actions), seed)
        self.share = share
        self._valuation = Valuation(vocabulary, None)
        self._table: dict[bytes, int] = {}

    def actions(self, observations: NDArray) -> NDArray[np.int64]:
        """[n] actions, by the table for a share of them."""
        chosen = super().actions(observations)
        for row in np.flatnonzero(self.generator.random(len(chosen)) < self.share):
            one = observations[row : row + 1]
            codes = self._valuation.codes(as_steps(one, np.zeros(1, np.int64), np.zeros(1, np.int64)))
            key = codes.numpy().tobytes()
            if key not in self._table:
                self._table[key] = int(self.generator.integers(self.count))
            chosen[row] = self._table[key]
        return chosen


class LessExplorer(UniformExplorer):
    """Explores with a rate that is lessened by a share: what rules would have chosen, the network chooses."""

    def __init__(self, actions: int, share: float, seed: int) -> None:
        super().__init__(actions, seed)
        self.share = share

    def explores(self, count: int, rate: float) -> NDArray[np.bool_]:
        """[count] independent coins; a rate of 1 (the warm-up) is lessened too."""
        return super().explores(count, rate * (1 - self.share))


def explorer_of(condition: Condition, vocabulary: Vocabulary, actions: int, seed: int) -> Explorer:
    """Where the random actions of a condition come from. Raises `StudyError` where the vocabulary doesn't allow it."""
    match condition.explore:
        case "rules":
            return RuleExplorer(vocabulary, condition.share, seed)
        case "table":
            return TableExplorer(vocabulary, condition.share, seed)
        case "less":
            return LessExplorer(actions, condition.share, seed)
        case "epsilon":
            return UniformExplorer(actions, seed)
