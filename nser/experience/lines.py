"""One JSON line of a trajectory file as transitions, or a complaint that names line and field."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from nser.experience.trajectories import TrajectoryError

MAX_LINE = 2**26  # characters; a longer line is refused before it is held in memory
PARTS = ("observation", "action", "reward", "next_observation")


class Row(NamedTuple):
    """One transition; `finished` is true where its episode is over."""

    observation: NDArray[np.float32]
    action: NDArray
    reward: float
    next_observation: NDArray[np.float32]
    terminated: bool
    finished: bool


@dataclass
class LineParser:
    """Reads lines and holds each against the shapes of those before."""

    path: Path
    number: int = 0
    shapes: dict[str, Any] = field(default_factory=dict)

    def parse(self, number: int, line: str) -> dict[str, Any]:
        """The object of a line; raises `TrajectoryError`, as every other method does."""
        self.number = number
        if len(line) > MAX_LINE:
            self.refuse(
                "the line", f"more than {MAX_LINE:,} characters", "a shorter one: a transition a line", in_words=True
            )
        try:
            found = json.loads(line, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            raise TrajectoryError(f"{self.path}, line {number}: no JSON ({reason}); expected an object") from error
        if not isinstance(found, dict):
            self.refuse("the line", found, f"an object with {', '.join(PARTS)}")
        return found

    def label(self, found: dict[str, Any]) -> int | None:
        """The number of the episode, if the line tells one."""
        label = found.get("episode")
        if label is not None and (isinstance(label, bool) or not isinstance(label, int) or abs(label) >= 2**63):
            self.refuse("episode", label, "a whole number")
        return label

    def transition(self, found: dict[str, Any]) -> Row:
        """The only transition of the line."""
        for name in PARTS:
            if name not in found:
                self.refuse(name, None, f"it in every line, beside {', '.join(PARTS)}")
        ended = self._flag(found, "terminated")
        return Row(
            self._observation("observation", found["observation"]),
            self._action("action", found["action"]),
            self._number("reward", found["reward"]),
            self._observation("next_observation", found["next_observation"]),
            ended,
            ended or self._flag(found, "truncated"),
        )

    def episode(self, found: dict[str, Any]) -> list[Row]:
        """Every transition of a line that holds an episode."""
        seen, actions, rewards = (self._list(found, name) for name in ("observations", "actions", "rewards"))
        if len(rewards) != len(actions) or len(seen) != len(actions) + 1 or not actions:
            lengths = f"{len(seen)} observations, {len(actions)} actions, {len(rewards)} rewards"
            expected = "at least one action, as many rewards, one observation more"
            self.refuse("the episode", lengths, expected, in_words=True)
        ended = self._flag(found, "terminated")
        over = ended or self._flag(found, "truncated")
        observations = [self._observation("observations", one) for one in seen]
        last = len(actions) - 1
        return [
            Row(
                observations[i],
                self._action("actions", actions[i]),
                self._number("rewards", rewards[i]),
                observations[i + 1],
                ended and i == last,
                over and i == last,
            )
            for i in range(len(actions))
        ]

    def refuse(self, name: str, found: Any, expected: str, *, in_words: bool = False) -> NoReturn:
        """Say what is wrong with a field of the present line."""
        text = "nothing" if found is None else found if in_words else repr(found)
        short = text if len(text) <= 80 else f"{text[:77]}…"
        raise TrajectoryError(f"{self.path}, line {self.number}: {name}: found {short}, expected {expected}")

    def _observation(self, name: str, value: Any) -> NDArray[np.float32]:
        parts: dict[str, tuple[int, ...]] = {}
        row = self._flat(name, value, parts, "")
        expected = self.shapes.setdefault("observation", parts)
        if parts != expected:
            self.refuse(name, _written(parts), f"{_written(expected)} as in the lines before", in_words=True)
        return row

    def _flat(self, name: str, value: Any, parts: dict[str, tuple[int, ...]], key: str) -> NDArray[np.float32]:
        if isinstance(value, dict):
            if not value:
                self.refuse(name, value, "numbers")
            inner = [self._flat(name, value[k], parts, f"{key}.{k}" if key else k).ravel() for k in sorted(value)]
            return np.concatenate(inner)
        array = self._array(name, value)
        parts[key] = array.shape
        return np.atleast_1d(array).astype(np.float32)

    def _action(self, name: str, value: Any) -> NDArray:
        if isinstance(value, float):
            self.refuse(name, value, "a whole number, or a list of numbers for a continuous action")
        array = self._array(name, value)
        shape = self.shapes.setdefault("action", array.shape)
        if array.shape != shape:
            self.refuse(name, value, f"an action of shape {shape} as in the lines before")
        return array

    def _array(self, name: str, value: Any) -> NDArray:
        """Finite numbers that float32 (or, of whole ones, int64) can hold."""
        if isinstance(value, bool) or not isinstance(value, int | float | list):
            self.refuse(name, value, "numbers")
        try:
            array = np.asarray(value)
        except (ValueError, RecursionError):
            self.refuse(name, value, "numbers, in lists of equal lengths")
        if array.dtype.kind not in "if" or not array.size:
            self.refuse(name, value, "numbers")
        if array.dtype.kind == "f" and not (np.abs(array) <= np.finfo(np.float32).max).all():
            self.refuse(name, value, "finite numbers of at most 3e38")
        return array if array.dtype.kind == "i" else array.astype(np.float32)

    def _number(self, name: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.refuse(name, value, "a number")
        if not abs(value) <= sys.float_info.max:  # false for NaN; whole numbers may be too large for a float
            self.refuse(name, value, "a finite number")
        return float(value)

    def _flag(self, found: dict[str, Any], name: str) -> bool:
        value = found.get(name, False)
        if not isinstance(value, bool):
            self.refuse(name, value, "true or false")
        return value

    def _list(self, found: dict[str, Any], name: str) -> list[Any]:
        value = found.get(name)
        if not isinstance(value, list):
            self.refuse(name, value, "a list")
        return value


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no finite number")


def _written(parts: dict[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{key or 'numbers'} of shape {shape}" for key, shape in parts.items())
