"""A torchrl `Sampler` whose draws a `ReplayIndex` decides. Needs the extra: `pip install nser[torchrl]`.

It is no `PrioritizedSampler`: that one keeps trees of its own in compiled code, which does not load beside every
torch. So `TensorDictReplayBuffer.update_tensordict_priority` does nothing here; call `update_priority`:

    buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(n), sampler=IndexSampler(n, law="per"), batch_size=256)
    batch = buffer.sample()                      # batch["priority_weight"] are the importance weights
    buffer.update_priority(batch["index"], td_error.abs())
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torchrl.data import Storage
from torchrl.data.replay_buffers.samplers import Sampler

from nser.arrays import read_arrays
from nser.files import atomic_path, writing
from nser.replay.errors import ArgumentError, CheckpointError
from nser.replay.index import ReplayIndex
from nser.replay.law import Law
from nser.replay.presets import preset
from nser.trainers.ledger import Ledger


class IndexSampler(Sampler):
    """Draws by the law of `sampler.index`; a slot is a place in the storage.

    capacity: the storage's `max_size`; it must have one dimension and be written in ring order, as torchrl does by
              default
    law:      a `Law` or a preset's name
    seed:     of the index's own generator; torch's is never used
    scorer:   rule relevance: stored elements [n] → [n] numbers in [0, 1]. New elements, and those that `mark_update`
              names, are scored together before the next draw
    version:  of the scorer's rules; `rescore` puts others in force

    One `sample` is one step of the index's clock.
    """

    def __init__(
        self,
        capacity: int,
        law: Law | str = "nser",
        seed: int = 0,
        scorer: Callable[[Any], Any] | None = None,
        version: int = 0,
    ) -> None:
        self.capacity = capacity
        self.law = preset(law) if isinstance(law, str) else law
        self.scorer, self.version = scorer, version
        self._seeds = np.random.SeedSequence(seed)
        self._next = 0
        self._empty()

    def sample(self, storage: Storage, batch_size: int) -> tuple[torch.Tensor, dict[str, Any]]:
        """[B] places, and `priority_weight` [B] float32."""
        self._score(storage)
        draw = self.index.draw(batch_size)
        self.index.tick()
        self._ledger.note(draw.slots, draw)
        return torch.from_numpy(draw.slots), {"priority_weight": torch.from_numpy(draw.weights.astype(np.float32))}

    def add(self, index: Any) -> None:
        """One element was stored there."""
        self.extend(index)

    def extend(self, index: Any) -> None:
        """Elements were stored in these places, in ring order. Raises `ArgumentError` for any other order."""
        slots = _slots(index)
        expected = (self._next + np.arange(len(slots))) % self.capacity
        if not np.array_equal(slots, expected):
            raise ArgumentError(
                "index",
                slots.tolist()[:8],
                f"places in ring order from {self._next}",
                "Use the default writer, and the storage's max_size as capacity.",
            )
        for start in range(0, len(slots), self.capacity):  # torchrl takes more than fits, and keeps the last
            self.index.insert(min(self.capacity, len(slots) - start))
        self._next = (self._next + len(slots)) % self.capacity
        self._unscored[slots] = True

    def update_priority(self, index: Any, priority: Any, *, storage: Storage | None = None) -> None:
        """Raw |TD errors| [n] of places [n]; of what was overwritten since its last draw they are ignored."""
        slots = _slots(index)
        values = torch.as_tensor(priority, dtype=torch.float64).detach().cpu().flatten().numpy()
        self._ledger.update(slots, slots, np.broadcast_to(values, slots.shape) if len(values) == 1 else values)

    def mark_update(self, index: Any, *, storage: Storage | None = None) -> None:
        """What is stored there was changed: its relevance is to be found anew."""
        self._unscored[_slots(index)] = True

    def relate(self, index: Any, relevance: Any, version: int) -> None:
        """Rule relevance [n] in [0, 1] of places [n], from whoever computed it."""
        slots = _slots(index)
        self.index.relate(slots, np.asarray(relevance, np.float64), version)
        self._unscored[slots] = False

    def rescore(self, scorer: Callable[[Any], Any] | None, version: int) -> None:
        """Put another scorer in force; every element is scored anew before the next draw."""
        self.scorer, self.version = scorer, version
        self._unscored[:] = True

    def can_sample(self, storage: Storage, batch_size: int) -> bool:
        """Whether anything is eligible."""
        return len(self.index) > 0

    def state_dict(self) -> dict[str, Any]:
        """The index and the draws that feedback may still come for."""
        return {
            "index": self.index.state_dict(),
            "drawn": np.stack([self._ledger.slots, self._ledger.generations]),
            "unscored": self._unscored.copy(),
            "next": self._next,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state. Raises `CheckpointError`, nothing changed, where it does not fit."""
        self.index.load_state_dict(state_dict["index"])
        self._ledger.slots[:], self._ledger.generations[:] = state_dict["drawn"]
        self._unscored[:] = state_dict["unscored"]
        self._next = int(state_dict["next"])

    def dumps(self, path: Any) -> None:
        """Write the index and the rest into a folder."""
        folder = Path(path)
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self.index.save(folder / "index.npz")
        state = self.state_dict()
        with atomic_path(folder / "sampler.npz") as beside, beside.open("wb") as stream:
            np.savez(stream, drawn=state["drawn"], unscored=state["unscored"], next=state["next"])

    def loads(self, path: Any) -> None:
        """Take over what `dumps` wrote. Raises `CheckpointError`, nothing changed, for anything else."""
        folder = Path(path)
        shapes = {"drawn": (2, self.capacity), "unscored": (self.capacity,), "next": ()}
        try:
            own = read_arrays(folder / "sampler.npz", shapes)
        except ValueError as error:
            raise CheckpointError("file", "sampler.npz", f"what IndexSampler.dumps wrote ({error})") from error
        for name, shape in shapes.items():
            if own[name].shape != shape or own[name].dtype.kind not in "bi":
                raise CheckpointError(name, f"{own[name].dtype} {own[name].shape}", f"whole numbers {shape}")
        self.load_state_dict({"index": ReplayIndex.load(folder / "index.npz").state_dict(), **own})

    def _score(self, storage: Storage) -> None:
        if self.scorer is None or not self._unscored.any():
            return
        live = self.index.live_slots()
        slots = live[self._unscored[live]]
        self._unscored[:] = False
        if len(slots):
            relevance = self.scorer(storage.get(torch.from_numpy(slots)))
            self.index.relate(slots, np.asarray(relevance, np.float64), self.version)

    def _empty(self) -> None:
        self.index = ReplayIndex(self.capacity, self.law, self._seeds.spawn(1)[0])
        self._ledger = Ledger(self.index)
        self._unscored = np.zeros(self.capacity, np.bool_)
        self._next = 0

    def __repr__(self) -> str:
        return f"IndexSampler(capacity={self.capacity}, law={self.law})"


def _slots(index: Any) -> NDArray[np.int64]:
    """[n] places as torchrl names them: an int, a tensor [n] or [n, 1]."""
    places = torch.as_tensor(index, dtype=torch.int64).cpu()
    if places.ndim > 1 and places.shape[-1] != 1:
        raise ArgumentError("index", tuple(places.shape), "a storage of one dimension", "Leave out `ndim`.")
    return places.reshape(-1).numpy()
