"""The state of an index as a flat dict of arrays and scalars, checked before it is taken, and as a file.

A state holds what cannot be recomputed with the same bits: the columns, the weights at the leaves, the boosts,
the anchor, the clock and the generator. Inner nodes of the trees are sums of their children, whatever
the order of writing, so they are made anew.
"""

import json
from os import PathLike
from typing import Any

import numpy as np

from nser.jsons import parse_json
from nser.replay.errors import CheckpointError
from nser.replay.forest import Forest
from nser.replay.items import Items
from nser.replay.law import Law
from nser.replay.types import Floats, Ints
from nser.states import read_state

FORMAT = "nser.replay.index"
VERSION = 1
INTEGERS = ("birth", "generation", "version")
FLOATS = ("signal", "relevance", "weight", "boost")
COUNTS = ("capacity", "clock", "head", "size", "inserted", "stale_updates", "stale_relations")
OTHERS = ("format", "format_version", "law", "rng", "warned", "origin", "offset")


def pack(items: Items, forest: Forest, rng: np.random.Generator, counts: dict[str, int]) -> dict[str, Any]:
    """The state: arrays (filled,), numbers, and text for the law and the generator; ``counts`` are the index's own."""
    filled = items.filled
    boost = forest.boost[:filled] if forest.boost is not None else np.zeros(0)
    return {
        "format": FORMAT,
        "format_version": VERSION,
        "law": json.dumps(forest.law.to_dict()),
        "rng": json.dumps(rng.bit_generator.state),
        "capacity": items.capacity,
        "head": items.head,
        "size": items.size,
        "inserted": items.inserted,
        "origin": forest.origin,
        "offset": forest.offset,
        **counts,
        "birth": items.birth[:filled].copy(),
        "generation": items.generation[:filled].copy(),
        "version": items.version[:filled].copy(),
        "signal": items.signal[:filled].copy(),
        "relevance": items.relevance[:filled].copy(),
        "weight": forest.base.leaves[:filled].copy(),
        "boost": boost.copy(),
    }


def unpack(state: dict[str, Any], items: Items, forest: Forest, rng: np.random.Generator) -> None:
    """Put a checked state into place; O(capacity)."""
    items.head, items.size, items.inserted = state["head"], state["size"], state["inserted"]
    filled = items.filled
    for name in (*INTEGERS, "signal", "relevance"):
        column = getattr(items, name)
        column[:filled] = state[name]
        column[filled:] = -1 if name == "version" else 0
    forest.origin, forest.offset = state["origin"], state["offset"]
    if forest.boost is not None:
        forest.boost[:filled] = state["boost"]
        forest.boost[filled:] = 0.0
        forest.related = bool(forest.boost.any())
    if forest.log_decay is not None:
        forest.log_decay[:filled] = forest.law.rate * (items.birth[:filled] - forest.origin) - forest.offset
    forest.restore(np.asarray(state["weight"]))
    forest.peak.mend(0, items.capacity)
    rng.bit_generator.state = parse_json(state["rng"])


def check(state: dict[str, Any], capacity: int, law: Law) -> None:
    """Raise ``CheckpointError`` unless ``state`` fits an index of this capacity and law."""
    for name in (*OTHERS, *COUNTS, *INTEGERS, *FLOATS):
        if name not in state:
            raise CheckpointError(name, "nothing", "an entry; is this the state of a ReplayIndex?")
    _expect(state["format"] == FORMAT, "format", state["format"], FORMAT)
    _expect(state["format_version"] == VERSION, "format_version", state["format_version"], str(VERSION))
    for name in COUNTS:
        value = state[name]
        whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        _expect(whole, name, value, "an integer ≥ 0")
    _expect(state["capacity"] == capacity, "capacity", state["capacity"], f"{capacity}, this index's capacity")
    saved = law_of(state)
    for name, value in law.to_dict().items():
        _expect(saved.to_dict()[name] == value, f"law.{name}", saved.to_dict()[name], f"{value!r}, this index's law")
    inserted, size = state["inserted"], state["size"]
    _expect(state["head"] == inserted % capacity, "head", state["head"], f"inserted % capacity, {inserted % capacity}")
    filled = min(inserted, capacity)
    _expect(size <= filled, "size", size, f"at most {filled}, the number of slots filled")
    origin, offset = state["origin"], state["offset"]
    _expect(isinstance(origin, int) and origin <= state["clock"], "origin", origin, "an integer ≤ clock")
    _expect(isinstance(offset, float) and bool(np.isfinite(offset)), "offset", offset, "a finite float")
    _check_rng(state["rng"])
    _check_columns(state, filled, law.uses_rules)


def law_of(state: dict[str, Any]) -> Law:
    """The law that a state was saved under; raises ``CheckpointError``."""
    try:
        return Law.from_dict(parse_json(state["law"]))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CheckpointError("law", state.get("law"), f"the text of Law.to_dict ({error})") from error


def read(path: str | PathLike[str]) -> dict[str, Any]:
    """The state that ``write_state`` wrote, unchecked; raises ``CheckpointError`` for any other file."""
    try:
        arrays, scalars = read_state(path)
    except (ValueError, KeyError) as error:
        raise CheckpointError("file", str(path), f"an npz written by ReplayIndex.save ({error})") from error
    if not isinstance(scalars, dict) or not isinstance(scalars.get("capacity"), int):
        raise CheckpointError("capacity", scalars, "a JSON object with an integer capacity")
    most = most_slots(arrays.get("birth"))
    if scalars["capacity"] > most:
        raise CheckpointError("capacity", scalars["capacity"], f"at most {most:,} in a file with as few items")
    return {**arrays, **scalars}


def most_slots(filled: object) -> int:
    """The largest capacity that a file may ask memory for: 2²⁴ slots, or 64 for each of the rows ``filled``.

    A larger store goes on by ``load_state_dict``, since then somebody has chosen its capacity.
    """
    return max(2**24, 64 * len(filled)) if isinstance(filled, np.ndarray) and filled.ndim else 2**24


def _expect(holds: bool, field: str, found: object, expected: str) -> None:
    if not holds:
        raise CheckpointError(field, found, expected)


def _check_rng(text: object) -> None:
    try:
        np.random.PCG64(0).state = parse_json(str(text))
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise CheckpointError("rng", text, "the JSON text of the state of a PCG64 generator") from error


def _check_columns(state: dict[str, Any], filled: int, uses_rules: bool) -> None:
    for names, dtype in ((INTEGERS, np.dtype(np.int64)), (FLOATS, np.dtype(np.float64))):
        for name in names:
            value = state[name]
            length = filled if name != "boost" or uses_rules else 0
            fits = isinstance(value, np.ndarray) and value.dtype == dtype and value.shape == (length,)
            found = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else value
            _expect(fits, name, found, f"{dtype} ({length},)")
    for name in FLOATS:
        values: Floats = state[name]
        high = 1.0 if name == "relevance" else np.finfo(np.float64).max
        wrong = ~((values >= 0.0) & (values <= high))
        if wrong.any():
            raise CheckpointError(name, float(values[wrong][0]), f"finite numbers in [0, {high:g}]")
    # Live slots are the last ``size`` before the head; their generations are odd, all others even.
    dead = filled - state["size"]
    generation: Ints = state["generation"]
    order = np.roll(generation, -state["head"]) if filled == state["capacity"] else generation
    odd = bool((order[dead:] & 1).all()) and not bool((order[:dead] & 1).any())
    _expect(odd, "generation", "other parities", "odd generations for the live slots, even for the rest")
    birth: Ints = state["birth"]
    latest = int(birth.max(initial=0))
    _expect(latest <= state["clock"], "birth", latest, "no birth after the clock")
