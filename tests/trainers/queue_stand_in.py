"""A stand-in for TransferQueue, in memory: the one package that verl's V1 buffers need and that is not installed here,
because it wants a folder named `tests` at the top of the environment. The sampler's tests pass over the real one too.

Its functions do what those of `transfer_queue` 0.1.11 of the same names do, as far as verl's buffers and ours call
them. `verl.trainer.ppo.v1.replay_buffer` itself is verl's real file; only its package's `__init__`, which imports the
trainers with all that a cluster needs, is passed by.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

LOADED = ("transfer_queue", "verl.trainer.ppo.v1", "verl.trainer.ppo.v1.replay_buffer", "nser.trainers.verl.v1")


@dataclass
class Names:
    """Names and tags of a batch: `KVBatchMeta` of TransferQueue."""

    keys: list[str] = field(default_factory=list)
    tags: list[dict[str, Any]] = field(default_factory=list)
    partition_id: str | None = None
    fields: list[str] | None = None
    extra_info: dict[str, Any] | None = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert len(self.keys) == len(self.tags) == len(set(self.keys))
        self.tags = copy.deepcopy(self.tags)

    def __len__(self) -> int:
        return len(self.keys)


class Queue(ModuleType):
    """partition → key → (tag, row)."""

    KVBatchMeta = Names

    def __init__(self) -> None:
        super().__init__("transfer_queue")
        self.held: dict[str, dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {}

    def kv_batch_put(
        self, keys: Sequence[str], partition_id: str, fields: Any = None, tags: Sequence[dict[str, Any]] | None = None
    ) -> Names:
        """Add to what the keys hold."""
        from nser.trainers.verl.queue_rows import unstacked

        rows = unstacked(fields) if fields is not None else [{} for _ in keys]
        partition = self.held.setdefault(partition_id, {})
        for key, row, tag in zip(keys, rows, tags or [{}] * len(keys), strict=True):
            old_tag, old_row = partition.get(key, ({}, {}))
            partition[key] = (old_tag | tag, old_row | row)
        return Names(list(keys), [partition[key][0] for key in keys], partition_id)

    def kv_batch_get(self, keys: Sequence[str], partition_id: str, select_fields: Any = None) -> Any:
        """The rows of keys as a `TensorDict`, ragged columns nested."""
        from verl.utils.tensordict_utils import list_of_dict_to_tensordict

        rows = [self.held[partition_id][key][1] for key in keys]
        wanted = [name for name in rows[0] if select_fields is None or name in select_fields]
        return list_of_dict_to_tensordict([{name: row[name] for name in wanted} for row in rows])

    def kv_list(self, partition_id: str | None = None) -> dict[str, dict[str, dict[str, Any]]]:
        """The tags of all keys."""
        return {
            name: {key: copy.deepcopy(tag) for key, (tag, _) in partition.items()}
            for name, partition in self.held.items()
            if partition_id in (None, name)
        }

    def kv_clear(self, keys: Sequence[str], partition_id: str) -> None:
        """Forget keys."""
        for key in keys:
            self.held.get(partition_id, {}).pop(key, None)


@contextmanager
def installed() -> Iterator[Queue]:
    """The stand-in under the real name, and verl's V1 package without its `__init__`; undone at the end."""
    import verl.trainer.ppo

    queue, package = Queue(), ModuleType("verl.trainer.ppo.v1")
    package.__path__ = [str(Path(verl.trainer.ppo.__file__).parent / "v1")]
    before = {name: sys.modules.pop(name, None) for name in LOADED}
    sys.modules["transfer_queue"], sys.modules["verl.trainer.ppo.v1"] = queue, package
    try:
        yield queue
    finally:
        for name, module in before.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module
