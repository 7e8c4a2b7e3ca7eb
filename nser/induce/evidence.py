"""What a proposer sees, and what it must not see: the episodes, split before anything is learnt from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nser.experience.trajectories import Trajectories
from nser.grounding.vocabulary import Vocabulary
from nser.induce.labels import OUTCOMES
from nser.induce.settings import InductionSettings
from nser.induce.splits import split_return


@dataclass(frozen=True)
class Evidence:
    """Labelled episodes; proposers read `shown`, judges read `held`.

    trajectories: complete episodes, [N] rows
    outcomes:     [N] what each transition was worth (the label)
    held:         [N] rows of held-out episodes
    """

    trajectories: Trajectories
    outcomes: NDArray[np.float64]
    held: NDArray[np.bool_]
    vocabulary: Vocabulary
    settings: InductionSettings

    @classmethod
    def from_trajectories(
        cls, trajectories: Trajectories, vocabulary: Vocabulary, settings: InductionSettings
    ) -> Evidence:
        """Keep the newest complete episodes, split them by return, label every row."""
        complete = trajectories.only_complete()
        if len(complete) > settings.window:
            first = complete.starts[complete.starts >= len(complete) - settings.window]
            complete = complete[slice(int(first[0]) if len(first) else int(complete.starts[-1]), None)]
        held = _held_out(complete, settings.held_out)
        outcomes = OUTCOMES[settings.label](complete, vocabulary, settings.gamma)
        return cls(complete, outcomes, held, vocabulary, settings)


def has_contrast(trajectories: Trajectories) -> bool:
    """Whether complete episodes fall into good and bad ones, two of each at least; see `split_return`."""
    return split_return(trajectories.returns[trajectories.complete]) is not None


def _held_out(trajectories: Trajectories, share: float) -> NDArray[np.bool_]:
    """[N] every k-th episode in the order of returns, so that both parts hold good and bad ones."""
    every = max(2, round(1 / share))
    order = np.argsort(trajectories.returns, kind="stable")
    held = np.zeros(len(trajectories.starts), np.bool_)
    held[order[every // 2 :: every]] = True
    return held[trajectories.numbers]
