"""The store written plainly, one item at a time: the slow twin that the fast one is held against."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nser.rollouts import Rollout, StoreSettings


@dataclass
class Entry:
    rollout: Rollout
    start: int
    stop: int
    signal: float
    score: float
    admitted: int
    uses: int
    last: bool  # of the items of its rollout
    identity: tuple[object, ...]


def spans(mask: list[bool]) -> list[tuple[int, int]]:
    """Each longest run of True, found token by token."""
    found: list[tuple[int, int]] = []
    start = None
    for place, trained in enumerate([*mask, False]):
        if trained and start is None:
            start = place
        if not trained and start is not None:
            found.append((start, place))
            start = None
    return found


class StoreTwin:
    """Same rules as ``RolloutStore``: slot → entry in a dict."""

    def __init__(self, settings: StoreSettings) -> None:
        self.settings = settings
        self.version = 0
        self.inserted = 0
        self.entries: dict[int, Entry] = {}
        self.gone: list[int] = []

    def items(self, rollout: Rollout) -> list[tuple[int, int, float]]:
        """(start, stop, signal) of every part that an item would be made of."""
        mask = rollout.response_mask.tolist()
        wanted = spans(mask) if self.settings.unit == "turn" else [(0, len(mask))]
        found = []
        for start, stop in wanted:
            places = [place for place in range(start, stop) if mask[place]]
            per_token = [
                abs(rollout.advantage if isinstance(rollout.advantage, float) else float(rollout.advantage[place]))
                for place in places
            ]
            limit = self.settings.zero_signal
            if places and (limit is None or max(per_token) > limit):
                mean = math.fsum(per_token) / len(per_token)
                found.append((start, stop, abs(rollout.reward) if self.settings.signal == "reward" else mean))
        return found

    def refusal(self, rollout: Rollout, identity: tuple[object, ...], room: int) -> str | None:
        if not rollout.response_mask.any():
            return "nothing to train on"
        items = self.items(rollout)
        if not items:
            return "zero signal"
        limit = self.settings.law.max_age
        if limit is not None and self.version - rollout.policy_version[0] > limit:
            return "too old"
        if any(entry.last and entry.identity == identity for entry in self.entries.values()):
            return "duplicate"
        return "no room" if len(items) > room else None

    @staticmethod
    def identity(rollout: Rollout) -> tuple[object, ...]:
        return (rollout.prompt_ids.tolist(), rollout.response_ids.tolist(), rollout.policy_version[0], rollout.group)

    def admit(self, rollouts: list[Rollout]) -> tuple[list[int], list[str]]:
        """Slots of the items, and the reasons of the refused."""
        slots: list[int] = []
        reasons: list[str] = []
        taken: list[tuple[Rollout, tuple[object, ...]]] = []
        room = self.settings.capacity
        offered: list[tuple[object, ...]] = []
        for rollout in rollouts:
            alike = self.identity(rollout)
            identity = (*alike, offered.count(alike))
            reason = self.refusal(rollout, identity, room)
            if reason in (None, "duplicate", "no room"):
                offered.append(alike)
            if reason is not None:
                reasons.append(reason)
                continue
            taken.append((rollout, identity))
            room -= len(self.items(rollout))
        for rollout, identity in taken:
            items = self.items(rollout)
            for number, (start, stop, signal) in enumerate(items):
                slot = self.inserted % self.settings.capacity
                if slot in self.entries:
                    self.gone.append(self.entries[slot].uses)
                self.entries[slot] = Entry(
                    rollout, start, stop, signal, rollout.rule_score, self.version, rollout.uses,
                    number == len(items) - 1, identity,
                )  # fmt: skip
                self.inserted += 1
                slots.append(slot)
        return slots, reasons

    def advance(self, version: int) -> None:
        self.version = version
        limit = self.settings.law.max_age
        for slot, entry in list(self.entries.items()):
            if limit is not None and version - entry.admitted > limit:
                self.gone.append(entry.uses)
                del self.entries[slot]

    def age(self, slot: int) -> int:
        return self.version - self.entries[slot].rollout.policy_version[0]

    @property
    def live(self) -> list[int]:
        limit = self.settings.law.max_age
        return sorted(slot for slot in self.entries if limit is None or self.age(slot) <= limit)

    def densities(self) -> dict[int, float]:
        """q of every live slot, for laws of fixed numbers and without a guard: that of all entries, given the live."""
        law, logs = self.settings.law, {}
        for slot, entry in self.entries.items():
            base = entry.signal + law.epsilon
            factor = base * math.exp(-self.age(slot) / law.tau) * (1 + float(law.eta) * entry.score)  # type: ignore[arg-type]
            logs[slot] = law.alpha * math.log(factor) if law.alpha else 0.0
        top = max(logs.values(), default=0.0)
        total = math.fsum(math.exp(log - top) for log in logs.values())
        mix = float(law.mix)  # type: ignore[arg-type]
        q = {slot: mix * math.exp(log - top) / total + (1 - mix) / len(logs) for slot, log in logs.items()}
        rest = math.fsum(q[slot] for slot in self.live)
        return {slot: q[slot] / rest for slot in self.live}

    def rollout(self, slot: int) -> Rollout:
        """The item as it should be handed out."""
        entry = self.entries[slot]
        own = entry.rollout
        mask = [bool(trained) and entry.start <= place for place, trained in enumerate(own.response_mask.tolist())]
        return Rollout(
            prompt_ids=own.prompt_ids,
            response_ids=own.response_ids[: entry.stop],
            response_mask=np.array(mask[: entry.stop]),
            behavior_logps=own.behavior_logps[: entry.stop],
            advantage=own.advantage if isinstance(own.advantage, float) else own.advantage[: entry.stop],
            reward=own.reward,
            rule_scores=own.rule_scores,
            rule_score=entry.score,
            policy_version=own.policy_version,
            group=own.group,
            task=own.task,
            uses=entry.uses,
            sampling=own.sampling,
            metadata=own.metadata,
        )
