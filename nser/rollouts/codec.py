"""A rollout as one record of 32-bit words, and the row of numbers that says where and what it is.

The words of a record, T tokens of response after P of prompt::

    prompt ids [P] · response ids [T] · log-probs [T] · advantages [T] if per token · mask, labels, metadata as bytes

Each part of bytes is filled up to a whole word. Labels and metadata are JSON, parsed when somebody asks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nser.jsons import parse_json
from nser.replay.types import Ints
from nser.rollouts.errors import RolloutError, StoreStateError
from nser.rollouts.intake import Taken
from nser.rollouts.record import Rollout, Sampling
from nser.rollouts.shards import WORD, Shard

ROW = np.dtype(
    [
        ("key", "V16"),  # of the rollout; zero for all but the last item of a rollout that is several
        ("shard", np.int64),
        ("offset", np.int64),
        ("first", np.int64),
        ("last", np.int64),
        ("uses", np.int64),
        ("advantage", np.float64),
        ("reward", np.float64),
        ("rule_score", np.float64),
        ("signal", np.float64),  # σ ≥ 0 as last given, without the law's floor
        ("lag", np.int32),  # versions between the first token and the admission
        ("prompt", np.int32),
        ("response", np.int32),
        ("labels", np.int32),  # bytes
        ("metadata", np.int32),  # bytes
        ("start", np.int32),  # the tokens trained on lie in [start, stop) of the response
        ("stop", np.int32),
        ("per_token", np.bool_),
    ]
)
NO_KEY = bytes(16)


class Record(NamedTuple):
    """The words of a rollout as bytes, and how many of them are labels and metadata."""

    content: bytes
    labels: int
    metadata: int


class LazyMapping(Mapping[str, Any]):
    """The mapping that a JSON text stands for, parsed at the first look into it."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self._parsed: dict[str, Any] | None = None

    def _found(self) -> dict[str, Any]:
        if self._parsed is None:
            self._parsed = _mapping(self.text)
        return self._parsed

    def __getitem__(self, name: str) -> Any:
        return self._found()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found())

    def __len__(self) -> int:
        return len(self._found())

    def __repr__(self) -> str:
        return repr(self._found())


def record_of(rollout: Rollout, position: int) -> Record:
    """The record of a rollout; raises ``RolloutError`` where metadata is no JSON. ``position`` names the rollout."""
    sampling = rollout.sampling
    how = (sampling.temperature, sampling.top_p, sampling.top_k, sampling.source)
    labels = json.dumps((rollout.group, rollout.task, dict(rollout.rule_scores), how)).encode()
    metadata = _metadata(rollout.metadata, position)
    advantage = b"" if isinstance(rollout.advantage, float) else rollout.advantage.tobytes()
    words = (rollout.prompt_ids.tobytes(), rollout.response_ids.tobytes(), rollout.behavior_logps.tobytes(), advantage)
    parts = (rollout.response_mask.tobytes(), labels, metadata)
    # One copy of one piece is several times quicker than a copy for each part.
    filled = b"".join(part + bytes(-len(part) % WORD) for part in parts)
    return Record(b"".join((*words, filled)), len(labels), len(metadata))


def sizes_of(rows: NDArray) -> Ints:
    """Words (n,) of the records of ``rows`` (n,)."""
    prompt, tokens, labels, metadata = (
        rows[name].astype(np.int64) for name in ("prompt", "response", "labels", "metadata")
    )
    size: Ints = prompt + tokens * (2 + rows["per_token"]) + _words(tokens) + _words(labels) + _words(metadata)
    return size


def rows_of(
    taken: Taken, rollout: Rollout, record: Record, place: tuple[int, int], rule_score: float, version: int
) -> list[tuple[Any, ...]]:
    """The rows of a rollout's items, stored at ``place`` (shard, offset) in the store's ``version``."""
    first, last = rollout.policy_version
    one = isinstance(rollout.advantage, float)
    before = (*place, first, last, rollout.uses, rollout.advantage if one else 0.0, rollout.reward, rule_score)
    lengths = (version - first, len(rollout.prompt_ids), len(rollout.response_ids), record.labels, record.metadata)
    rows = [(NO_KEY, *before, item.signal, *lengths, item.start, item.stop, not one) for item in taken.items]
    # Items of a rollout leave in their order: with the last one the rollout is gone.
    rows[-1] = (taken.key, *rows[-1][1:])
    return rows


def read_record(shard: Shard, row: tuple[Any, ...]) -> Rollout:
    """The rollout of a row as ``rows.tolist()`` gives it; its arrays are views of the shard."""
    (_, _, offset, first, last, uses, advantage, reward, rule_score, _, _, *rest) = row
    prompt, tokens, labels, metadata, start, stop, per_token = rest
    at = offset + prompt
    ids, logps = at, at + tokens
    mask = logps + tokens
    if per_token:
        advantage = shard.read_floats[mask : mask + stop]
        mask += tokens
    text = WORD * (mask + _words(tokens))
    group, task, scores, sampling = _labels(shard.read_bytes[text : text + labels].tobytes())
    text += WORD * _words(labels)
    rollout = Rollout.__new__(Rollout)  # checked when it came in
    rollout.__dict__.update(
        prompt_ids=shard.read_words[offset:at],
        response_ids=shard.read_words[ids : ids + stop],
        response_mask=_mask(shard, WORD * mask, start, stop),
        behavior_logps=shard.read_floats[logps : logps + stop],
        advantage=advantage,
        reward=reward,
        rule_scores=scores,
        rule_score=rule_score,
        policy_version=(first, last),
        group=group,
        task=task,
        uses=uses,
        sampling=sampling,
        metadata=LazyMapping(shard.read_bytes[text : text + metadata].tobytes()) if metadata else {},
    )
    return rollout


def _metadata(metadata: Mapping[str, Any], position: int) -> bytes:
    if isinstance(metadata, LazyMapping):
        return metadata.text
    try:
        return json.dumps(dict(metadata), allow_nan=False).encode() if metadata else b""
    except (TypeError, ValueError, RecursionError) as error:
        way_out = "Leave objects out, or write them as text."
        raise RolloutError("metadata", str(error), "what JSON can say", way_out, f"rollout {position}") from error


def _mask(shard: Shard, at: int, start: int, stop: int) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = shard.read_bytes[at : at + stop].view(np.bool_)
    if start == 0:
        return mask
    own = mask.copy()
    own[:start] = False
    own.flags.writeable = False
    return own


def _labels(text: bytes) -> tuple[str, str, dict[str, float], Sampling]:
    """Group, task, scores and sampling; raises ``StoreStateError`` for what a store never wrote."""
    try:
        group, task, scores, sampling = parse_json(text)
        if isinstance(group, str) and isinstance(task, str) and isinstance(scores, dict):
            return group, task, scores, _sampling(*sampling)
    except (ValueError, TypeError) as error:
        raise StoreStateError("labels", text, "the JSON text that RolloutStore wrote") from error
    raise StoreStateError("labels", text, "a group, a task, scores and how it was sampled")


def _mapping(text: bytes) -> dict[str, Any]:
    """Metadata; raises ``StoreStateError`` for what a store never wrote."""
    try:
        found = parse_json(text)
    except ValueError as error:
        raise StoreStateError("metadata", text, "the JSON text that RolloutStore wrote") from error
    if not isinstance(found, dict):
        raise StoreStateError("metadata", text, "a JSON object")
    return found


@lru_cache(maxsize=1024)
def _sampling(temperature: float, top_p: float, top_k: int, source: Any) -> Sampling:
    return Sampling(temperature, top_p, top_k, source)


def _words(count: Any) -> Any:
    return (count + WORD - 1) // WORD
