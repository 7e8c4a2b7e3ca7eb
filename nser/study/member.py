"""What each seed of a stack has to itself beside its network: the replay index, the rules in force, the explorer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nser.agents.explore import RuleExplorer
from nser.agents.replay_buffer import Scorer
from nser.induce.proposing import Proposer
from nser.replay.draw import Draw
from nser.replay.index import ReplayIndex
from nser.rules.ruleset import RuleSet
from nser.runs.session import Streams
from nser.scorers.events import EventScorer
from nser.scorers.placebo import PlaceboScorer
from nser.scorers.rules import RuleScorer
from nser.study.beforehand import events_beforehand, rules_beforehand
from nser.study.conditions import Condition
from nser.study.dealt import DealtScorer
from nser.study.explorers import explorer_of
from nser.study.judging import renewed
from nser.study.ring import Ints, Ring
from nser.study.world import World


@dataclass(frozen=True)
class Place:
    """Where a member's transitions lie: row `number` of the stack's ring."""

    ring: Ring
    number: int


class Member:
    """One seed of a stack, under its condition; every source of chance has its own stream.

    proposer: who proposes rules, for conditions that induce them
    """

    def __init__(self, condition: Condition, world: World, streams: Streams, place: Place, proposer: Proposer) -> None:
        self.condition, self.world, self.place, self.proposer = condition, world, place, proposer
        self.index = ReplayIndex(place.ring.capacity, condition.law(), streams.replay)
        self.explorer = explorer_of(condition, world.vocabulary, world.actions, streams.exploration)
        self.ruleset: RuleSet | None = None
        self.scorer: Scorer | None = None
        self._lots = np.random.default_rng(streams.placebo).random(place.ring.capacity)
        self._unscored = 0
        if condition.rules in ("hand", "wrong"):
            self.put_in_force(rules_beforehand(world.vocabulary, condition.rules, audited=condition.audit))
        elif condition.replay == "vlm-rb":
            self.scorer = EventScorer(events_beforehand(world.vocabulary), world.vocabulary)
        if condition.boosted is not None:
            self.scorer = PlaceboScorer(condition.boosted, streams.placebo)

    def stored(self, count: int) -> None:
        """The ring has taken `count` further transitions: they become items of the index."""
        self.index.insert(count)
        self._unscored += count

    def score_new(self) -> None:
        """Score what was stored since the last time, and the few before it whose future is only known now."""
        if self.scorer is not None and self._unscored:
            self._score(self._unscored + self.scorer.future)
        self._unscored = 0

    def induce(self, step: int) -> None:
        """Rules from what is stored, put in force where anything changes."""
        settings = self.condition.induction()
        trajectories = self.place.ring.trajectories(self.place.number, settings.window)
        ruleset = renewed(trajectories, self.world.vocabulary, self.proposer, settings, step=step, current=self.ruleset)
        if ruleset is not None:
            self.put_in_force(ruleset)

    def put_in_force(self, ruleset: RuleSet) -> None:
        """Replay and explore by these rules, as the condition asks, and score every stored transition anew."""
        self.ruleset = ruleset
        if isinstance(self.explorer, RuleExplorer):
            self.explorer.set_rules(ruleset.rules)
        if self.condition.replay in ("nser", "placebo") and self.condition.boosted is None:
            rules = RuleScorer(ruleset, self.world.vocabulary)
            placebo = self.condition.replay == "placebo"
            self.scorer = DealtScorer(rules, self._lots, self.place.ring.slots) if placebo else rules
            self._unscored = 0
            if len(self.index):
                self._score(len(self.index))

    def rule_share(self) -> float:
        """Share of expected draws owed to relevance, in [0, 1]."""
        return float(self.index.stats().rule_share) if len(self.index) else 0.0

    def _score(self, newest: int) -> None:
        assert self.scorer is not None
        ring, number = self.place.ring, self.place.number
        slots = ring.slots(newest)
        scores = self.scorer.relevance(ring.steps(number, ring.slots(newest + self.scorer.past)))[-len(slots) :]
        self.index.relate(slots, scores, self.scorer.version)


def drawn(members: list[Member], batch: int) -> tuple[list[Draw], Ints, NDArray[np.float64]]:
    """A draw of each member; slots [S, batch] and importance weights [S, batch]. A step of every index's clock."""
    draws = [member.index.draw(batch) for member in members]
    for member in members:
        member.index.tick()
    return draws, np.stack([draw.slots for draw in draws]), np.stack([draw.weights for draw in draws])
