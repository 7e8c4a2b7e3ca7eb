"""The state of a rollout store as a flat dict of arrays and scalars, checked before it is taken, and as a file.

The shards are saved as they stand, one array each, so that writing a store needs no second copy of it in memory.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from nser.jsons import parse_json
from nser.replay import CheckpointError, ReplayIndex
from nser.replay.checkpoint import most_slots
from nser.rollouts.codec import ROW, sizes_of
from nser.rollouts.errors import StoreStateError
from nser.rollouts.metrics import Counters
from nser.rollouts.settings import StoreSettings
from nser.rollouts.shards import WORD, Shards
from nser.states import read_state

FORMAT = "nser.rollouts.store"
VERSION = 1
MAX_SHARD = 2**30  # bytes that a file may ask for where its shards are smaller
INDEX, SHARD = "index.", "shard."  # what the names of the parts' arrays begin with
KINDS: dict[str, Any] = {"lagging": bool, "started": int | None, "shard_bytes": int, "last_shard": int}
COUNTERS = TypeAdapter(Counters)
SCALARS = ("format", "format_version", "settings", "counters", "others")


def pack(
    settings: StoreSettings,
    index: dict[str, Any],
    rows: NDArray,
    shards: Shards,
    counters: Counters,
    others: dict[str, Any],
) -> dict[str, Any]:
    """The state, its arrays not copied; ``others`` is JSON-able: ``rng``, ``lagging``, ``started``."""
    return {
        "format": FORMAT,
        "format_version": VERSION,
        "settings": json.dumps(settings.to_dict()),
        "counters": json.dumps(asdict(counters)),
        "others": json.dumps(others | {"shard_bytes": shards.shard_words * WORD, "last_shard": shards.last}),
        "rows": rows[: min(index["inserted"], len(rows))],
        **{INDEX + name: value for name, value in index.items()},
        **{f"{SHARD}{number}": shard.read_words[: shard.used] for number, shard in shards.by_number.items()},
    }


def check(state: dict[str, Any], settings: StoreSettings) -> None:
    """Raise ``StoreStateError`` unless ``state`` is whole and of a store with these ``settings``; index apart."""
    for name in (*SCALARS, "rows"):
        if name not in state:
            raise StoreStateError(name, "nothing", "an entry; is this the state of a RolloutStore?")
    for name, value in (("format", FORMAT), ("format_version", VERSION)):
        if state[name] != value:
            raise StoreStateError(name, state[name], repr(value))
    saved, own = settings_of(state).to_dict(), settings.to_dict()
    for name, value in own.items():
        if saved[name] != value:
            raise StoreStateError(f"settings.{name}", saved[name], f"{value!r}, this store's setting")
    rows_of(state)
    scalars_of(state)


def settings_of(state: dict[str, Any]) -> StoreSettings:
    """The settings that a state was saved under; raises ``StoreStateError``."""
    try:
        return StoreSettings.from_dict(parse_json(state["settings"]))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise StoreStateError(
            "settings", state.get("settings"), f"the text of StoreSettings.to_dict ({error})"
        ) from error


def rows_of(state: dict[str, Any]) -> NDArray:
    """The rows of a state; raises ``StoreStateError``."""
    rows = state["rows"]
    if not isinstance(rows, np.ndarray) or rows.dtype != ROW or rows.ndim != 1:
        found = f"{rows.dtype} {rows.shape}" if isinstance(rows, np.ndarray) else rows
        raise StoreStateError("rows", found, "one row for each slot that was ever filled")
    return rows


def scalars_of(state: dict[str, Any]) -> tuple[Counters, dict[str, Any]]:
    """Counters, and the other numbers that ``pack`` wrote; raises ``StoreStateError``."""
    try:
        parse_json(state["counters"])  # stricter about what is JSON at all
        counters = COUNTERS.validate_json(state["counters"], strict=True)
        others = parse_json(state["others"])
        np.random.PCG64(0).state = others["rng"]
        for name, kind in KINDS.items():
            if not isinstance(others[name], kind):
                raise TypeError(f"{name} is {others[name]!r}")
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, ("counters", *first["loc"])))
        raise StoreStateError(where, first["input"], f"what RolloutStore wrote there ({first['msg']})") from error
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise StoreStateError("counters, others", str(error), "the JSON texts that RolloutStore wrote") from error
    return counters, others


def restore_index(state: dict[str, Any], index: ReplayIndex) -> None:
    """Put the index's part into ``index``; raises ``StoreStateError``."""
    part = {name.removeprefix(INDEX): value for name, value in state.items() if name.startswith(INDEX)}
    try:
        index.load_state_dict(part)
    except CheckpointError as error:
        raise StoreStateError(INDEX + error.field, error.found, error.expected) from error
    filled = min(part["inserted"], index.capacity)
    if len(state["rows"]) != filled:
        raise StoreStateError("rows", len(state["rows"]), f"{filled}, as many as slots were filled")


def restore_shards(state: dict[str, Any], shards: Shards, live: NDArray) -> None:
    """Put the shards into ``shards``, which the ``live`` rows (n,) point into; raises ``StoreStateError``."""
    saved = _saved_shards(state)
    shards.last = scalars_of(state)[1]["last_shard"]
    numbers, holders = np.unique(live["shard"], return_counts=True)
    for number in numbers.tolist():
        if number not in saved:
            raise StoreStateError(f"{SHARD}{number}", "nothing", "the shard that rollouts are in")
    lengths = np.array([len(saved[number]) for number in numbers.tolist()], np.int64)
    ends = live["offset"] + sizes_of(live)
    inside = ends <= lengths[np.searchsorted(numbers, live["shard"])] if len(live) else np.zeros(0, np.bool_)
    inside &= (live["start"] <= live["stop"]) & (live["stop"] <= live["response"])
    for name in ("offset", "start", "prompt", "labels", "metadata"):
        inside &= live[name] >= 0
    if not inside.all():
        raise StoreStateError("rows", "a rollout outside its shard", "rollouts within the saved shards")
    for number, count in zip(numbers.tolist(), holders.tolist(), strict=True):
        shards.adopt(number, saved[number], count)


def _saved_shards(state: dict[str, Any]) -> dict[int, NDArray]:
    saved = {}
    for name, words in state.items():
        number = name.removeprefix(SHARD)
        if number == name:
            continue
        if not number.isdecimal() or not isinstance(words, np.ndarray) or words.dtype != np.int32 or words.ndim != 1:
            raise StoreStateError(name, type(words).__name__, "an array of 32-bit words, named by a number")
        saved[int(number)] = words
    return saved


def read(path: str | PathLike[str]) -> dict[str, Any]:
    """The state that ``write_state`` wrote, unchecked; raises ``StoreStateError`` for any other or cut file."""
    try:
        arrays, scalars = read_state(path)
    except (ValueError, KeyError) as error:
        raise StoreStateError("file", str(path), f"a whole npz written by RolloutStore.save ({error})") from error
    if not isinstance(scalars, dict):
        raise StoreStateError("scalars", scalars, "a JSON object")
    return {**arrays, **scalars}


def check_sizes(state: dict[str, Any]) -> None:
    """Raise ``StoreStateError`` where a checked state asks for much more memory than it fills."""
    capacity, room = settings_of(state).capacity, scalars_of(state)[1]["shard_bytes"]
    most = most_slots(rows_of(state))
    if capacity > most:
        raise StoreStateError("settings.capacity", capacity, f"at most {most:,} in a file with as few rollouts")
    largest = max((words.nbytes for words in _saved_shards(state).values()), default=0)
    if not 0 < room <= max(MAX_SHARD, largest):
        raise StoreStateError("shard_bytes", room, f"a number from 1 to {max(MAX_SHARD, largest):,}")
