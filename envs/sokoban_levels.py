"""Levels of Sokoban that can be solved: made by playing backwards, or read from text.

    # wall   @ agent   + agent on a target   $ box   * box on a target   . target

>>> level = parse_level('''
...     ######
...     #@$ .#
...     ######''')
>>> level.width, level.height, len(level.boxes), level.solved
(6, 3, 1, False)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nser.errors import NserError

FLOOR = 0.65  # share of the inner cells that are carved
PULLS = 14  # for each box; more make longer detours, not harder levels
ATTEMPTS = 100
MIN_AWAY = 2  # cells between a box and the nearest target on average, lest levels are solved by one push


class LevelError(NserError, ValueError):
    """A level that is none; the message says where."""


@dataclass(frozen=True)
class Level:
    """Cells are numbered row by row: `cell = row * width + column`."""

    width: int
    height: int
    walls: frozenset[int]
    targets: frozenset[int]
    boxes: frozenset[int]
    agent: int

    @property
    def solved(self) -> bool:
        """Whether every box stands on a target."""
        return self.boxes <= self.targets

    @property
    def steps(self) -> tuple[int, int, int, int]:
        """What up, down, left and right add to a cell."""
        return -self.width, self.width, -1, 1

    def apart(self, one: int, other: int) -> int:
        """Manhattan distance of two cells."""
        (row, column), (there_row, there_column) = divmod(one, self.width), divmod(other, self.width)
        return abs(row - there_row) + abs(column - there_column)


def parse_level(text: str) -> Level:
    """Read a level; rows are padded with walls to one width. Raises `LevelError`."""
    rows = [row for row in text.strip("\n").splitlines() if row.strip()]
    margin = min((len(row) - len(row.lstrip()) for row in rows), default=0)
    rows = [row[margin:].rstrip() for row in rows]
    width = max(map(len, rows), default=0)
    cells = "".join(row.ljust(width, "#") for row in rows)
    strange = set(cells) - set("# .@+$*")
    if strange:
        raise LevelError(f"found {min(strange)!r} in a level, expected only # . @ + $ * and blanks")
    at = {sign: frozenset(i for i, cell in enumerate(cells) if cell in sign) for sign in ("#", ".+*", "$*", "@+")}
    if len(at["@+"]) != 1:
        raise LevelError(f"found {len(at['@+'])} agents in a level, expected one @ or +")
    if not at["$*"] or len(at["$*"]) != len(at[".+*"]):
        raise LevelError(f"found {len(at['$*'])} boxes and {len(at['.+*'])} targets, expected as many of each, and one")
    rim = {i for i in range(len(cells)) if i // width in (0, len(rows) - 1) or i % width in (0, width - 1)}
    if not rim <= at["#"]:
        cell = min(rim - at["#"])
        raise LevelError(f"found no wall at row {cell // width}, column {cell % width}, expected walls all around")
    return Level(width, len(rows), at["#"], at[".+*"], at["$*"], min(at["@+"]))


def random_level(rng: np.random.Generator, size: int, boxes: int) -> Level:
    """A level of `size` × `size` cells that can be solved, no box on a target; the same for the same generator.

    A random walk carves the room, boxes are put on their targets, and an agent pulls them away at random: what was
    pulled there can be pushed back.
    """
    for attempt in range(2 * ATTEMPTS):
        # Narrow rooms may leave no space to pull; an open room nearly always does.
        floor = _carve(rng, size, FLOOR if attempt < ATTEMPTS else 1.0)
        level = _pulled(rng, size, floor, boxes)
        if level is not None:
            return level
    raise LevelError(f"found no room for {boxes} boxes in {size} × {size} cells, expected fewer boxes or a larger room")


def _carve(rng: np.random.Generator, size: int, share: float) -> frozenset[int]:
    inner = size - 2
    wanted = round(share * inner * inner)
    x, y = (int(i) for i in rng.integers(1, size - 1, 2))
    floor = {y * size + x}
    while len(floor) < wanted:
        dx, dy = ((0, -1), (0, 1), (-1, 0), (1, 0))[int(rng.integers(4))]
        x, y = min(max(x + dx, 1), inner), min(max(y + dy, 1), inner)
        floor.add(y * size + x)
    return frozenset(floor)


def _pulled(rng: np.random.Generator, size: int, floor: frozenset[int], boxes: int) -> Level | None:
    """Pull the boxes off their targets; None where they can't be brought far enough."""
    cells = [int(cell) for cell in rng.permutation(sorted(floor))]
    if len(cells) < 2 * boxes + 1:
        return None
    targets, agent = frozenset(cells[:boxes]), cells[boxes]
    walls = frozenset(range(size * size)) - floor
    level = Level(size, size, walls, targets, targets, agent)
    steps = level.steps
    near = {cell: min(level.apart(cell, target) for target in targets) for cell in floor}
    now, best, far = set(targets), None, MIN_AWAY * boxes - 1
    for _ in range(PULLS * boxes):
        region = _region(agent, floor - now, steps)
        pulls = [
            (box, step)
            for box in sorted(now)
            for step in steps
            if box + step in region and box + 2 * step in floor and box + 2 * step not in now
        ]
        if not pulls:
            break
        box, step = pulls[int(rng.integers(len(pulls)))]
        now = now - {box} | {box + step}
        agent = box + 2 * step
        away = sum(near[box] for box in now)
        if away > far and not now & targets:
            best, far = (frozenset(now), agent), away
    if best is None:
        return None
    start, agent = best
    reachable = sorted(_region(agent, floor - start, steps))
    return Level(size, size, walls, targets, start, reachable[int(rng.integers(len(reachable)))])


def _region(start: int, free: frozenset[int] | set[int], steps: tuple[int, ...]) -> set[int]:
    """Every cell that can be walked to."""
    found, waiting = {start}, [start]
    while waiting:
        cell = waiting.pop()
        for step in steps:
            if cell + step in free and cell + step not in found:
                found.add(cell + step)
                waiting.append(cell + step)
    return found
