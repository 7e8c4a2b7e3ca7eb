"""Evidence from rollouts: what a proposer may see of them, what each was worth, and which are kept for judging.

**Outcome.** The advantage that the trainer has told, where every rollout has one; else its reward less the mean of its
group, or of its task where it is alone in its group. Rewards of different prompts are never compared: an easy
prompt makes no good rollout. A turn is worth what its rollout is.

**Held out** are whole groups, lest a rule be judged by rollouts of the very prompts it was learnt from; with fewer than
four groups, single rollouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nser.errors import NserError
from nser.experience.trajectories import Trajectories
from nser.grounding.steps import Steps
from nser.grounding.text_steps import TextSteps, text_steps
from nser.grounding.transcripts import Transcript, Turn
from nser.grounding.vocabulary import Vocabulary
from nser.induce.evidence import Evidence
from nser.induce.phrases import phrases, tools
from nser.induce.settings import InductionSettings

Sort = Literal["rollout", "turn"]
FEWEST_GROUPS = 4
LEAST = 2  # rollouts on either side: one alone may be an accident


class RolloutEvidenceError(NserError, ValueError):
    """Rollouts from which nothing can be learnt; the message says what was found and what is needed."""


@dataclass(frozen=True)
class TextTrajectories(Trajectories):
    """Rollouts in the form of trajectories, a row for each rollout or each turn; observations and actions are blank.

    items: [N] the rollouts or turns
    """

    items: tuple[Transcript | Turn, ...] = ()

    @classmethod
    def of(cls, rollouts: Sequence[Transcript], sort: Sort) -> TextTrajectories:
        """Rows of a sort; the reward stands in a rollout's last one.

        Turns after the agent's last one are left out: they tell the outcome, and explain nothing.
        """
        rows = text_steps(rollouts, sort)
        tell = [isinstance(item, Turn) and item.place > max(_last_own(item.rollout), 0) for item in rows.items]
        kept = np.flatnonzero(~np.array(tell, np.bool_))
        numbers = rows.episodes.numpy()[kept]
        last = np.append(numbers[1:] != numbers[:-1], True)
        rewards = np.where(last, np.array([rollout.reward for rollout in rollouts])[numbers], 0.0)
        blank = rows.observations.numpy()[kept]
        items = tuple(rows.items[place] for place in kept.tolist())
        return cls(blank, rows.actions.numpy()[kept], rewards, blank, last, last, numbers, items)

    def __getitem__(self, rows: slice | NDArray) -> TextTrajectories:
        columns = {item.name: getattr(self, item.name)[rows] for item in fields(Trajectories)}
        return TextTrajectories(**columns, items=tuple(self.items[i] for i in np.arange(len(self))[rows].tolist()))

    @cached_property
    def rollouts(self) -> tuple[Transcript, ...]:
        """[E] the rollouts, in order."""
        items = [self.items[int(start)] for start in self.starts]
        return tuple(item.rollout if isinstance(item, Turn) else item for item in items)

    def steps(self) -> Steps:
        """The rows for the evaluator."""
        blank = super().steps()
        return TextSteps(blank.observations, blank.actions, blank.episodes, self.items)


def outcomes_of(rollouts: Sequence[Transcript]) -> NDArray[np.float64]:
    """[n] what each rollout was worth beside its like, in units of reward (or of the advantages told)."""
    told = [rollout.advantage for rollout in rollouts if rollout.advantage is not None]
    if told and len(told) == len(rollouts):
        return np.array(told, np.float64)
    rewards = np.array([rollout.reward for rollout in rollouts], np.float64)
    groups = _groups(rollouts)
    alone = np.bincount(groups)[groups] < 2
    tasks = np.unique([rollout.task for rollout in rollouts], return_inverse=True)[1].reshape(-1)
    means, task_means = _means(rewards, groups), _means(rewards, tasks)
    return np.asarray(rewards - np.where(alone, task_means[tasks], means[groups]), np.float64)


def rollout_evidence(
    rollouts: Sequence[Transcript], vocabulary: Vocabulary, settings: InductionSettings, sort: Sort = "rollout"
) -> Evidence:
    """Label the rollouts, hold some out, and let the vocabulary know the tools and phrases of those that are shown.

    `vocabulary` may be over both sorts; rules will be over `sort`. Raises `RolloutEvidenceError` where not two rollouts
    did better than their like and two worse.
    """
    outcomes = outcomes_of(rollouts)
    better, worse = int((outcomes > 0).sum()), int((outcomes < 0).sum())
    if min(better, worse) < LEAST:
        raise RolloutEvidenceError(
            f"found {better} rollouts better than the others of their group or task and {worse} worse, expected "
            f"{LEAST} of each at least; record more, or give rewards that tell them apart"
        )
    held = _held_out(rollouts, outcomes, settings.held_out)
    shown = [rollout for rollout, out in zip(rollouts, held, strict=True) if not out]
    known = {name: tuple(texts) for name, texts in vocabulary.texts.items()}
    if "tool" in known:
        known["tool"] = known["tool"] or tools(shown)
    if "text" in known:
        known["text"] = known["text"] or phrases(shown, outcomes[~held])
    trajectories = TextTrajectories.of(rollouts, sort)
    numbers = trajectories.numbers
    words = replace(vocabulary.about(sort), texts=known)
    return Evidence(trajectories, outcomes[numbers], held[numbers], words, settings)


def _held_out(rollouts: Sequence[Transcript], outcomes: NDArray[np.float64], share: float) -> NDArray[np.bool_]:
    """[n] every k-th group in the order of mean rewards, or every k-th rollout in the order of outcomes."""
    every = max(2, round(1 / share))
    groups = _groups(rollouts)
    worth = _means(np.array([rollout.reward for rollout in rollouts]), groups)
    if len(worth) < FEWEST_GROUPS:
        groups, worth = np.arange(len(rollouts)), outcomes
    held = np.zeros(len(worth), np.bool_)
    held[np.argsort(worth, kind="stable")[every // 2 :: every]] = True
    return np.asarray(held[groups], np.bool_)


def _last_own(rollout: Transcript) -> int:
    """The place of the agent's last turn; −1 where it took none."""
    return rollout.own[-1].place if rollout.own else -1


def _groups(rollouts: Sequence[Transcript]) -> NDArray[np.int64]:
    """[n] a number for each group; a rollout without one is a group of its own."""
    numbers: dict[object, int] = {}
    keys = [rollout.group or place for place, rollout in enumerate(rollouts)]
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


def _means(values: NDArray[np.float64], groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """[groups] mean of the values of each."""
    return np.asarray(np.bincount(groups, values) / np.bincount(groups), np.float64)
