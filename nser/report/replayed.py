"""What a run replays and why: items of its last checkpoint with every factor of their probability."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nser.agents.replay_buffer import IndexedReplayBuffer
from nser.grounding.vocabulary import Vocabulary
from nser.pages.sheets import Cell, Column, Row, Sheet, number, share, word
from nser.percent import percent
from nser.replay.explain import Explanation
from nser.rules.store import RuleSet
from nser.runs.explain import action_of, facts_of
from nser.runs.inspect import half_of_draws, strongest_rule
from nser.scorers.rules import RuleScorer

MOST_LIKELY = 50  # items shown because they are drawn most often …
DRAWN = 100  # … and because a batch of this size, drawn evenly along the law, holds them
FACTS = 8  # numbers of an observation that are told
COLUMNS = (
    Column("times uniform", "probability of a draw, over that of a uniform draw"),
    Column("why it is drawn", number=False),
    Column("rule", "the one that gives most of the score", number=False, choose=True),
    Column("action", number=False, choose=True),
    Column("state", "what the observation says, numbers of zero left out", number=False),
    Column("reward"),
    Column("signal", "|TD error| when it was last replayed; a new item has the largest of all until it is"),
    Column("relevance", "score by the rules, or by whatever scores here, in [0, 1]"),
    Column("owed", "share of its probability that is owed to that score"),
    Column("age", "gradient steps since it was stored, and the factor that they leave of its priority"),
    Column("weight", "factor of its loss, which corrects for how often it is drawn"),
    Column("slot", "place in the replay buffer, for nser rules explain --slot, and the episode it is of"),
)


@dataclass(frozen=True)
class Stored:
    """A buffer as its checkpoint holds it; `explained` are its live items, oldest first, `episodes` theirs."""

    buffer: IndexedReplayBuffer
    vocabulary: Vocabulary | None
    ruleset: RuleSet | None
    explained: Explanation
    episodes: NDArray[np.int64]

    @classmethod
    def of(cls, buffer: IndexedReplayBuffer, vocabulary: Vocabulary | None, ruleset: RuleSet | None) -> Stored:
        """Ask the index about every live item."""
        slots = buffer.index.live_slots()
        return cls(buffer, vocabulary, ruleset, buffer.index.explain(slots), buffer.episodes.reshape(-1)[slots])

    def __len__(self) -> int:
        return len(self.episodes)


@dataclass(frozen=True)
class Spread:
    """Draws spread over `items` of `episodes` as over `effective` alike items; half of them over `half` episodes."""

    items: int
    effective: float
    episodes: int
    half: int


def spread_of(stored: Stored) -> Spread:
    """How varied the draws are by the law of this moment. The buffer holds at least one item."""
    probability = stored.explained.probability
    half = half_of_draws(stored.episodes, probability)
    return Spread(len(stored), float(1 / np.sum(probability**2)), len(np.unique(stored.episodes)), half)


def shown_items(probability: NDArray[np.float64]) -> NDArray[np.int64]:
    """Places [K] of the items worth showing, the likeliest first: the top ones, and an even batch along the law."""
    top = np.argsort(-probability, kind="stable")[:MOST_LIKELY]
    along = np.cumsum(probability)
    batch = np.searchsorted(along, (np.arange(DRAWN) + 0.5) / DRAWN * along[-1])
    chosen = np.union1d(top, np.minimum(batch, len(probability) - 1))
    return chosen[np.argsort(-probability[chosen], kind="stable")].astype(np.int64)


def items_sheet(stored: Stored) -> Sheet:
    """The items worth showing, with every factor and a sentence each."""
    ruleset, vocabulary = stored.ruleset, stored.vocabulary
    scorer = RuleScorer(ruleset, vocabulary) if ruleset and ruleset.rules and vocabulary else None
    signals = np.sort(stored.explained.signal)
    rows = []
    for place in shown_items(stored.explained.probability).tolist():
        rule = _strongest(stored, scorer, place)
        rank = float(np.searchsorted(signals, stored.explained.signal[place])) / len(signals)
        rows.append(_row(stored, place, rule, rank))
    return Sheet("items", "items", COLUMNS, tuple(rows))


def _strongest(stored: Stored, scorer: RuleScorer | None, place: int) -> str:
    if not stored.explained.relevance[place] > 0:
        return ""
    return strongest_rule(stored.buffer, scorer, int(stored.explained.slots[place]))


def _row(stored: Stored, place: int, rule: str, rank: float) -> Row:
    explained, buffer = stored.explained, stored.buffer
    slot = int(explained.slots[place])
    row, env = divmod(slot, buffer.n_envs)
    reward = float(buffer.rewards[row, env])
    probability = float(explained.probability[place])
    cells = (
        number(probability * len(stored), "{:.2f}"),
        Cell(_why(explained, place, rule, rank), probability),
        word(rule, link=f"rule-{rule}" if rule else ""),
        word(action_of(buffer, stored.vocabulary, row, env)),
        word(_facts(stored, slot)),
        number(reward, "{:.3g}", note="episode ends" if buffer.dones[row, env] else ""),
        number(explained.signal[place], "{:.4g}"),
        number(explained.relevance[place], "{:.3f}"),
        share(explained.rule_share[place]),
        number(int(explained.age[place]), "{:,d}", note=f"× {explained.decay[place]:.3f}"),
        number(explained.weight[place], "{:.3f}"),
        number(slot, "{:d}", note=f"episode {stored.episodes[place]:,d}"),
    )
    return Row(cells)


def _facts(stored: Stored, slot: int) -> str:
    """What the observation says, numbers of zero left out."""
    steps, at = stored.buffer.steps_at(slot, 0, 0)
    facts = {name: value for name, value in facts_of(steps, at, stored.vocabulary).items() if value}
    told = [name if value == 1 else f"{name} {value:.2g}" for name, value in list(facts.items())[:FACTS]]
    return ", ".join(told) + (" …" if len(facts) > FACTS else "")


def _why(explained: Explanation, place: int, rule: str, rank: float) -> str:
    """The factors in words: error, rules, age."""
    told = []
    if explained.probability.max() <= explained.probability.min() * (1 + 1e-9):
        return "every item is as likely as it is"
    if explained.signal.max() > explained.signal.min():
        largest = bool(explained.signal[place] == explained.signal.max())
        new = "its error counts as the largest, as every new item's does"
        told.append(new if largest else f"its error is larger than {min(99.0, math.floor(100 * rank)):.0f} % of all")
    owed = float(explained.rule_share[place])
    if owed >= 0.005:
        told.append(f"{'its rule' if rule else 'its score'} makes it {1 / max(1 - owed, 1e-9):.1f} times as likely")
    decay = float(explained.decay[place])
    if decay < 0.995:
        told.append(f"its age leaves {percent(decay, 0)} of its priority")
    return "; ".join(told) or "every item is as likely as it is"
