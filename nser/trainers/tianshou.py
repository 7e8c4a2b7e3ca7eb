"""A tianshou buffer whose draws a `ReplayIndex` decides. Needs the extra: `pip install nser[tianshou]`.

    buffer = IndexedVectorReplayBuffer(100_000, buffer_num=8, law="per")     # buffer_num: environments

in place of `PrioritizedVectorReplayBuffer`: tianshou's algorithms weigh their loss by `batch.weight` and hand their
errors to `update_weight` by themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tianshou.data import VectorReplayBuffer

from nser.replay.draw import Draw
from nser.replay.index import ReplayIndex
from nser.replay.law import Law
from nser.replay.presets import preset
from nser.trainers.ledger import Ledger

Ints = NDArray[np.int64]


class IndexedVectorReplayBuffer(VectorReplayBuffer):
    """tianshou's ring of rings, one for each environment, drawn by the law of one `buffer.index`.

    total_size, buffer_num: tianshou's; `buffer_num=1` for a single environment
    law:    a `Law` or a preset's name
    seed:   of the index's own generator

    Environments may be of different speed, so a place in the buffer is not a slot of the index, which fills in the
    order of time: `slots_of` and `places_of` translate. A place that was overwritten while its old slot lived on is
    never drawn: such draws are made anew. One `sample` is one step of the index's clock.
    """

    def __init__(self, total_size: int, buffer_num: int, law: Law | str = "nser", seed: int = 0, **kwargs: Any) -> None:
        super().__init__(total_size, buffer_num, **kwargs)
        self.law = preset(law) if isinstance(law, str) else law
        self._seeds = np.random.SeedSequence(seed)
        self._renew()

    def add(self, batch: Any, buffer_ids: Any = None) -> Any:
        """tianshou's; the new transitions are drawn as eagerly as the best live one."""
        added = super().add(batch, buffer_ids)
        places = np.asarray(added[0], np.int64).reshape(-1)
        slots = self.index.insert(len(places))
        self._place[slots] = places
        self._slot[places] = slots
        return added

    def sample(self, batch_size: int | None) -> Any:
        """A batch with `weight` [B] by the index's law, and its places [B].

        `batch_size` None or 0 gives everything, as in tianshou, without weights.
        """
        if not batch_size or batch_size < 0:
            return super().sample(batch_size)
        draw = self._draw(batch_size)
        self.index.tick()
        places = self._place[draw.slots]
        self._ledger.note(places, draw)
        batch = self[places]
        batch.weight = draw.weights
        return batch, places

    def update_weight(self, index: ArrayLike, new_weight: Any) -> None:
        """Errors [n], of any sign, of places [n]; of what was overwritten since its last draw they are ignored."""
        values = new_weight.detach().cpu().numpy() if hasattr(new_weight, "detach") else np.asarray(new_weight)
        places = np.asarray(index, np.int64).reshape(-1)
        self._ledger.update(places, self.slots_of(places), np.abs(values.astype(np.float64)).reshape(-1))

    def relate(self, places: ArrayLike, relevance: ArrayLike, version: int) -> int:
        """Rule relevance [n] in [0, 1] of places [n]; returns how many were ignored."""
        return self.index.relate(self.slots_of(places), relevance, version)

    def slots_of(self, places: ArrayLike) -> Ints:
        """[n] slots of the index for places [n] in the buffer that hold something."""
        return self._slot[np.asarray(places, np.int64).reshape(-1)]

    def places_of(self, slots: ArrayLike) -> Ints:
        """[n] places in the buffer for slots [n] of the index."""
        return self._place[np.asarray(slots, np.int64).reshape(-1)]

    def reset(self, keep_statistics: bool = False) -> None:
        """Forget everything stored, the index included."""
        super().reset(keep_statistics)
        self._renew()

    def _draw(self, batch_size: int) -> Draw:
        draw = self.index.draw(batch_size)
        valid = self._slot[self._place[draw.slots]] == draw.slots
        if valid.all():
            return draw
        parts, missing = [_chosen(draw, valid)], batch_size - int(valid.sum())
        while missing:
            more = self.index.draw(batch_size)
            good = np.flatnonzero(self._slot[self._place[more.slots]] == more.slots)
            # Stratified draws come in the order of slots: without the shuffle the first ones would be the oldest.
            good = self._shuffler.permutation(good)[:missing]
            parts.append(_chosen(more, good))
            missing -= len(good)
        columns = ("slots", "generations", "weights", "probabilities", "ages")
        joined = Draw(*(np.concatenate([getattr(part, name) for part in parts]) for name in columns))
        if self.law.normalise == "batch" and self.law.correct != "none":
            return Draw(joined.slots, joined.generations, self._weights(joined), joined.probabilities, joined.ages)
        return joined

    def _weights(self, draw: Draw) -> NDArray[np.float64]:
        # Every part was divided by its own largest; `explain` gives them all undivided.
        weights: NDArray[np.float64] = self.index.explain(draw.slots).weight
        return np.asarray(weights / weights.max())

    def _renew(self) -> None:
        seeds = self._seeds.spawn(2)
        self.index = ReplayIndex(self.maxsize, self.law, seeds[0])
        self._shuffler = np.random.default_rng(seeds[1])
        self._ledger = Ledger(self.index)
        self._slot = np.full(self.maxsize, -1, np.int64)
        self._place = np.zeros(self.maxsize, np.int64)


def _chosen(draw: Draw, rows: NDArray) -> Draw:
    return Draw(draw.slots[rows], draw.generations[rows], draw.weights[rows], draw.probabilities[rows], draw.ages[rows])
