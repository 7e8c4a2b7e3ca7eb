"""What a transition was worth: the outcome that rules are judged by.

The default is *progress*: r + γ V(s′) − V(s), with V(s) the shrunken mean return of all states that look alike to
the vocabulary. It asks whether an action led from a worse kind of state to a better one. Offered beside it:
*advantage*, the return that really followed less V(s), which sees past the next state and is noisier for it;
*novelty*, which needs no reward at all (`nser.induce.novelty`); return-to-go and success, which mistake a good place
for a good action: beside the goal all is followed by success.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from nser.experience.trajectories import Trajectories
from nser.grounding.vocabulary import Vocabulary
from nser.induce.kinds import Valuation, numbered
from nser.induce.novelty import novelty
from nser.induce.splits import split_return

Label = Literal["progress", "return", "success", "advantage", "novelty"]
LABELS: tuple[Label, ...] = get_args(Label)

SHRINKAGE = 10.0  # pseudo-visits of the prior: a kind of state that was seen twice is hardly believed
MAX_SWEEPS = 2_000  # at γ = 0.99 a sweep leaves 99 % of the error
TOLERANCE = 1e-4  # of the largest value: far below what tells one rule from another


def progress(trajectories: Trajectories, vocabulary: Vocabulary, gamma: float) -> NDArray[np.float64]:
    """[N] r + γ V(s′) − V(s), with V(s′) = 0 after a termination.

    V is the value of a kind of state under the recorded behaviour, see `_values`. A time limit ends no state's worth:
    the step that it cut counts as any other.
    """
    before, after = _values_around(trajectories, vocabulary, gamma)
    ahead = np.where(trajectories.terminated, 0.0, after)
    return np.asarray(trajectories.rewards + gamma * ahead - before, np.float64)


def advantage(trajectories: Trajectories, vocabulary: Vocabulary, gamma: float) -> NDArray[np.float64]:
    """[N] G − V(s): the discounted return that followed, less the value of the kind of state it began in."""
    before, _ = _values_around(trajectories, vocabulary, gamma)
    return np.asarray(trajectories.returns_to_go(gamma) - before, np.float64)


def _values_around(
    trajectories: Trajectories, vocabulary: Vocabulary, gamma: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values [N] of the kinds of state before and after each step."""
    steps, after = trajectories.steps(), trajectories.next_steps()
    valuation = Valuation.over(vocabulary, steps)
    both = torch.cat([valuation.codes(steps), valuation.codes(after)]).numpy()
    now, then = np.split(numbered(both), 2)
    values = _values(trajectories, now, then, gamma)
    return values[now], values[then]


def _values(
    trajectories: Trajectories, now: NDArray[np.int64], then: NDArray[np.int64], gamma: float
) -> NDArray[np.float64]:
    """[kinds] value of each kind of state under the behaviour that was recorded.

    Policy evaluation on the small Markov chain of kinds, by sweeps of V(z) = mean of r + γ V(z′) over the
    transitions out of z. It learns from every step between two kinds, not only from the few episodes that ended well,
    so that it ranks the kinds after two successes already. A kind that was left seldom is taken to be worth what
    the kinds are worth from which it was reached: without evidence, no progress.
    """
    kinds = int(max(now.max(initial=-1), then.max(initial=-1))) + 1
    ended = trajectories.terminated
    # Equal moves are counted once: a sweep costs as much as there are pairs of kinds, not steps.
    pairs, moves = np.unique(now * kinds + then + kinds * kinds * ended, return_counts=True)
    ended_pairs, rest = np.divmod(pairs, kinds * kinds)
    source, target = np.divmod(rest, kinds)
    weight = gamma * moves * (1 - ended_pairs)
    rewards = np.bincount(now, weights=trajectories.rewards, minlength=kinds)
    visits = np.bincount(now, minlength=kinds)
    arrives = (source != target) & (ended_pairs == 0)
    arrivals = np.bincount(target[arrives], weights=moves[arrives], minlength=kinds)
    values = np.zeros(kinds)
    for _ in range(MAX_SWEEPS):
        ahead = np.bincount(source, weights=weight * values[target], minlength=kinds)
        origins = np.bincount(target[arrives], weights=(moves * values[source])[arrives], minlength=kinds)
        prior = np.where(arrivals > 0, origins / np.maximum(arrivals, 1), values)
        swept = (rewards + ahead + SHRINKAGE * prior) / (visits + SHRINKAGE)
        change = np.abs(swept - values).max(initial=0.0)
        values = swept
        if change < TOLERANCE * max(1e-12, np.abs(values).max(initial=0.0)):
            break
    return values


def return_to_go(trajectories: Trajectories, vocabulary: Vocabulary, gamma: float) -> NDArray[np.float64]:
    """[N] discounted return from here, less its mean."""
    del vocabulary
    outcome = trajectories.returns_to_go(gamma)
    return np.asarray(outcome - outcome.mean() if len(outcome) else outcome, np.float64)


def success(trajectories: Trajectories, vocabulary: Vocabulary, gamma: float) -> NDArray[np.float64]:
    """[N] whether the episode is a good one (see `split_return`), less the mean; all 0 where none stands out."""
    del vocabulary, gamma
    returns = trajectories.returns
    if not len(returns):
        return np.zeros(0)
    split = split_return(returns)
    if split is None:
        return np.zeros(len(trajectories))
    won = (returns > split).astype(np.float64)[trajectories.numbers]
    return np.asarray(won - won.mean(), np.float64)


OUTCOMES: dict[Label, Callable[[Trajectories, Vocabulary, float], NDArray[np.float64]]] = {
    "progress": progress,
    "return": return_to_go,
    "success": success,
    "advantage": advantage,
    "novelty": novelty,
}
