"""Space for records of variable length, without padding: shards in memory or in mapped files, freed as wholes.

Records are appended and never moved or overwritten, so what was read stays right as long as somebody looks at it. A
store lets the oldest records go first, and records stand in the order of their birth, so that shards empty from the
oldest on; at most the oldest and the newest hold space that no record needs.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nser.files import writing
from nser.replay.types import Ints

WORD = 4  # bytes; tokens, log-probs and advantages take one word each
Words = NDArray[np.int32]


class Shard:
    """One stretch of words [size]; ``used`` of them are written; ``holders`` items need some of them.

    ``read_*`` are views as several types that can't be written to.
    """

    def __init__(self, words: Words, used: int = 0) -> None:
        self.words = words
        self.bytes: NDArray[np.uint8] = words.view(np.uint8)
        read = words.view()
        read.flags.writeable = False
        self.read_words: Words = read
        self.read_floats: NDArray[np.float32] = read.view(np.float32)
        self.read_bytes: NDArray[np.uint8] = read.view(np.uint8)
        self.used = used
        self.holders = 0


class Shards:
    """Shards of at least ``shard_bytes`` by number, in memory or, with ``directory``, in files without a name there."""

    def __init__(self, shard_bytes: int, directory: Path | None) -> None:
        self.shard_words = max(shard_bytes // WORD, 1)
        self.directory = directory
        self.by_number: dict[int, Shard] = {}
        self.last = -1  # number of the shard that is written to; −1 before any

    @property
    def written(self) -> int:
        """Bytes written to the shards that are held."""
        return WORD * sum(shard.used for shard in self.by_number.values())

    @property
    def allocated(self) -> int:
        """Bytes of the shards that are held."""
        return sum(shard.words.nbytes for shard in self.by_number.values())

    def place(self, sizes: list[int], holders: list[int]) -> list[tuple[int, int]]:
        """Room for records of ``sizes`` bytes, whole words, as (shard, offset in words); each has ``holders`` items.

        Raises ``WriteError`` or ``MemoryError`` where there is none, nothing changed.
        """
        last, before = self.last, {number: (shard.used, shard.holders) for number, shard in self.by_number.items()}
        try:
            return [self._place_one(size // WORD, items) for size, items in zip(sizes, holders, strict=True)]
        except BaseException:
            self.by_number = {number: self.by_number[number] for number in before}
            for number, (used, held) in before.items():
                self.by_number[number].used, self.by_number[number].holders = used, held
            self.last = last
            raise

    def write(self, place: tuple[int, int], content: bytes) -> None:
        """Write the record that was given this ``place``."""
        number, offset = place
        start = WORD * offset
        self.by_number[number].bytes[start : start + len(content)] = np.frombuffer(content, np.uint8)

    def release(self, numbers: Ints) -> None:
        """Items in the shards ``numbers`` (n,), one entry each, are gone; shards without any are freed."""
        for number, count in zip(*(part.tolist() for part in np.unique(numbers, return_counts=True)), strict=True):
            shard = self.by_number[number]
            shard.holders -= count
            if shard.holders == 0:
                # Its memory goes once nobody looks at a record of it any more.
                del self.by_number[number]

    def adopt(self, number: int, words: Words, holders: int) -> None:
        """Take the words of a saved shard, which ``holders`` items need; with ``last`` set, writing goes on there."""
        shard = Shard(words, used=len(words))
        if self.directory is not None or number == self.last:
            shard = Shard(self._new(max(len(words), self.shard_words)), used=len(words))
            shard.words[: len(words)] = words
        shard.holders = holders
        self.by_number[number] = shard

    def _place_one(self, size: int, holders: int) -> tuple[int, int]:
        shard = self.by_number.get(self.last)
        if shard is None or shard.used + size > len(shard.words):
            shard = Shard(self._new(max(size, self.shard_words)))
            self.last += 1
            self.by_number[self.last] = shard
        offset = shard.used
        shard.used += size
        shard.holders += holders
        return self.last, offset

    def _new(self, size: int) -> Words:
        if self.directory is None:
            return np.empty(size, np.int32)
        with writing(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
        with writing(self.directory), tempfile.TemporaryFile(dir=self.directory) as file:
            # Mapped space that the disk does not have would kill the process when it is written to.
            os.posix_fallocate(file.fileno(), 0, size * WORD)
            return np.memmap(file, np.int32, "r+", shape=(size,))
