"""What a run replays, as its last checkpoint holds it: the index as a whole, and the items that are drawn most."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nser.agents.replay_buffer import IndexedReplayBuffer
from nser.grounding.vocabulary import Vocabulary
from nser.replay.explain import IndexStats
from nser.runs.directory import RunDirectory
from nser.runs.explain import action_of, stored_buffer
from nser.scorers.rules import RuleScorer

EDGES = (0, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000)  # ages in gradient steps


@dataclass(frozen=True)
class Item:
    """One stored transition: what was done, and the factors of its probability as `nser.replay.explain` names them.

    times:  probability of a draw, over that of a uniform draw
    rule:   the one of the newest rules that gives most of the score, "" for none
    """

    slot: int
    action: str
    reward: float
    times: float
    signal: float
    age: int
    decay: float
    relevance: float
    rule_share: float
    weight: float
    rule: str


@dataclass(frozen=True)
class Ages:
    """Items and draws whose age lies from `low` to below `high` gradient steps, as shares in [0, 1]."""

    low: int
    high: int
    stored: float
    drawn: float


@dataclass(frozen=True)
class Inspection:
    """What a run replays.

    owed, firing:    rule → share of draws owed to it, and of items on which it fires most, when last logged
    ages:            of what is stored and of what is drawn
    episodes, half:  episodes in the buffer, and the fewest of them that make up half of the draws
    batch_episodes:  different episodes that the newest batch showed when last logged, None before the first
    likeliest:       the items drawn most often
    """

    stats: IndexStats
    owed: dict[str, float]
    firing: dict[str, float]
    ages: tuple[Ages, ...]
    episodes: int
    half: int
    batch_episodes: int | None
    likeliest: tuple[Item, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "stats": self.stats.to_dict()}


def inspect(run: RunDirectory, items: int = 5) -> Inspection:
    """Look into the buffer of a run's last checkpoint; so many `items` are told.

    Raises `CheckpointError` where there is no checkpoint that can be read.
    """
    buffer, vocabulary = stored_buffer(run)
    ruleset = run.newest_rules()
    scorer = RuleScorer(ruleset, vocabulary) if ruleset is not None and vocabulary is not None else None
    slots = buffer.index.live_slots()
    explained = buffer.index.explain(slots)
    likeliest = slots[np.argsort(-explained.probability, kind="stable")[:items]]
    logged: dict[str, Any] = next((line for line in reversed(run.read_metrics()) if line["kind"] == "train"), {})
    episodes = buffer.episodes.reshape(-1)[slots]

    return Inspection(
        stats=buffer.index.stats(),
        owed=logged.get("owed") or {},
        firing=logged.get("firing") or {},
        ages=_ages(explained.age, explained.probability),
        episodes=len(np.unique(episodes)),
        half=half_of_draws(episodes, explained.probability),
        batch_episodes=logged.get("batch_episodes"),
        likeliest=tuple(_item(buffer, vocabulary, scorer, int(slot)) for slot in likeliest),
    )


def _item(buffer: IndexedReplayBuffer, vocabulary: Vocabulary | None, scorer: RuleScorer | None, slot: int) -> Item:
    found = buffer.index.explain([slot]).rows()[0]
    row, env = divmod(slot, buffer.n_envs)
    return Item(
        slot=slot,
        action=action_of(buffer, vocabulary, row, env),
        reward=float(buffer.rewards[row, env]),
        times=found["probability"] * len(buffer.index),
        **{name: found[name] for name in ("signal", "age", "decay", "relevance", "rule_share", "weight")},
        rule=strongest_rule(buffer, scorer, slot) if found["relevance"] > 0 else "",
    )


def strongest_rule(buffer: IndexedReplayBuffer, scorer: RuleScorer | None, slot: int) -> str:
    """Name of the rule that gives the transition in `slot` most of its score, "" where none gives any."""
    if scorer is None:
        return ""
    steps, place = buffer.steps_at(slot, scorer.past, scorer.future)
    found = int(scorer.strongest(steps)[place])
    return scorer.ruleset.rules[found].name if found >= 0 else ""


def _ages(ages: NDArray[np.int64], probability: NDArray[np.float64]) -> tuple[Ages, ...]:
    """Bins up to the oldest item."""
    edges = [*EDGES, max(int(ages.max(initial=0)) + 1, EDGES[-1] + 1)]
    stored, drawn = np.histogram(ages, edges)[0], np.histogram(ages, edges, weights=probability)[0]
    found = zip(edges[:-1], edges[1:], stored / max(len(ages), 1), drawn, strict=True)
    return tuple(Ages(low, high, float(had), float(drew)) for low, high, had, drew in found if had > 0)


def half_of_draws(episodes: NDArray[np.int64], probability: NDArray[np.float64]) -> int:
    """The fewest episodes that make up half of the draws; `episodes` [N] of the items, and their `probability` [N]."""
    if not len(episodes):
        return 0
    _, members = np.unique(episodes, return_inverse=True)
    shares = np.sort(np.bincount(members, weights=probability))[::-1]
    return int(np.searchsorted(np.cumsum(shares), shares.sum() / 2)) + 1
