"""What a proposer sees, and what it must not see: the episodes, split before anything is learnt from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nser.experience.trajectories import Trajectories
from nser.grounding.vocabulary import Vocabulary
from nser.induce.labels import OUTCOMES, Label
from nser.induce.settings import InductionSettings
from nser.induce.splits import split_return

LEAST_EPISODES = 4  # of which one or two are held out


@dataclass(frozen=True)
class Evidence:
    """Labelled episodes; proposers read `shown`, judges read `held`.

    trajectories: complete episodes, [N] rows
    outcomes:     [N] what each transition was worth (the label)
    held:         [N] rows of held-out episodes
    curious:      whether novelty judged in the label's place: good enough to find rules by, not to refute a person's
    """

    trajectories: Trajectories
    outcomes: NDArray[np.float64]
    held: NDArray[np.bool_]
    vocabulary: Vocabulary
    settings: InductionSettings
    curious: bool = False

    @property
    def label(self) -> Label:
        """What the outcomes are."""
        return "novelty" if self.curious else self.settings.label

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
        label = label_for(complete, settings) or settings.label
        outcomes = OUTCOMES[label](complete, vocabulary, settings.gamma)
        return cls(complete, outcomes, held, vocabulary, settings, curious=label != settings.label)


def label_for(trajectories: Trajectories, settings: InductionSettings) -> Label | None:
    """What complete episodes can be judged by; None where they can't.

    All labels but novelty need good and bad episodes, two of each at the least (see `split_return`).
    """
    returns = trajectories.returns[trajectories.complete]
    split = split_return(returns)
    good = 0 if split is None else int((returns > split).sum())
    curious = settings.curious and good < settings.min_firings
    if settings.label == "novelty" or curious:
        return "novelty" if len(returns) >= LEAST_EPISODES else None
    return None if split is None else settings.label


def has_contrast(trajectories: Trajectories) -> bool:
    """Whether there are good and bad episodes, two of each at the least, that a language model could be shown."""
    return split_return(trajectories.returns[trajectories.complete]) is not None


def _held_out(trajectories: Trajectories, share: float) -> NDArray[np.bool_]:
    """[N] every k-th episode in the order of returns, so that both parts hold good and bad ones."""
    every = max(2, round(1 / share))
    order = np.argsort(trajectories.returns, kind="stable")
    held = np.zeros(len(trajectories.starts), np.bool_)
    held[order[every // 2 :: every]] = True
    return held[trajectories.numbers]
