"""The slow twin of DoorKey's observation: every fact searched in MiniGrid's grid, nothing remembered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from minigrid.core.constants import DIR_TO_VEC
from numpy.typing import NDArray

from nser.envs.doorkey import DoorKey


def facts(env: DoorKey) -> dict[str, Any]:
    """What holds in the present state; positions in cells, `key` is None while it is carried."""
    found: dict[str, tuple[int, int]] = {}
    walls = []
    for x in range(env.width):
        for y in range(env.height):
            thing: Any = env.grid.get(x, y)
            if thing is None:
                continue
            if thing.type == "wall":
                walls.append((x, y))
            else:
                found[thing.type] = (x, y)
    agent = tuple(int(i) for i in env.agent_pos)
    dx, dy = DIR_TO_VEC[env.agent_dir]
    ahead = (agent[0] + int(dx), agent[1] + int(dy))
    things = {place: name for name, place in found.items()} | dict.fromkeys(walls, "wall")
    door: Any = env.grid.get(*found["door"])
    carrying: Any = env.carrying
    assert (carrying is None) == ("key" in found)
    return {
        "agent": agent,
        "heading": int(env.agent_dir),
        "facing": things.get(ahead, "empty"),
        "carrying": carrying is not None,
        "key": found.get("key"),
        "door": found["door"],
        "goal": found["goal"],
        "door_open": bool(door.is_open),
        "door_locked": bool(door.is_locked),
        "in_doorway": agent == found["door"],
        "past_door": agent[0] > found["door"][0],
    }


def slow_observation(env: DoorKey) -> NDArray[np.float32]:
    """The observation of the present state, written down in the order of the documented table."""
    now, unit = facts(env), env.size - 3
    x, y = now["agent"]
    values: list[float] = [(x - 1) / unit, (y - 1) / unit]
    values += [float(now["heading"] == direction) for direction in range(4)]
    for target in ("key", "door", "goal"):
        there = now[target] or now["agent"]
        values += [(there[0] - x) / unit, (there[1] - y) / unit]
    values += [now["carrying"], now["door_open"], now["door_locked"]]
    values += [float(now["facing"] == thing) for thing in ("key", "door", "goal", "wall", "empty")]
    values += [now["past_door"], 1 / unit]
    return np.array(values, dtype=np.float32)


def distance(now: dict[str, Any], target: str) -> int:
    """Manhattan distance in cells; 0 for a carried key."""
    there = now[target] or now["agent"]
    return int(abs(there[0] - now["agent"][0]) + abs(there[1] - now["agent"][1]))


def wild_play(env: DoorKey, steps: int, seed: int) -> Iterator[tuple[NDArray[np.float32], int]]:
    """(observation, next action) of random play that is now and then put somewhere else.

    Random actions alone seldom reach the key of a large grid, so one step in four begins in a cell that the
    agent could stand in: any cell with any heading, or one straight before the key, the door or the goal, or upon it.
    """
    rng = np.random.default_rng(seed)
    observation, _ = env.reset(seed=seed)
    for _ in range(steps):
        if rng.random() < 1 / 4:
            x, y, direction = _somewhere(env, rng)
            cell: Any = env.grid.get(x, y)
            if cell is None or (cell.type == "door" and cell.is_open):
                env.agent_pos, env.agent_dir = (x, y), direction
                observation = env.gen_obs()
        action = int(rng.choice(7, p=[0.12, 0.12, 0.28, 0.16, 0.12, 0.18, 0.02]))
        yield observation, action
        observation, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            yield observation, 6
            observation, _ = env.reset()


def _somewhere(env: DoorKey, rng: np.random.Generator) -> tuple[int, int, int]:
    direction = int(rng.integers(4))
    if rng.random() < 1 / 2:
        x, y = (int(i) for i in rng.integers(1, env.size - 1, 2))
        return x, y, direction
    now, target = facts(env), str(rng.choice(["key", "door", "goal"], p=[0.45, 0.45, 0.1]))
    there = now[target] or now["door"]
    dx, dy = (int(i) for i in DIR_TO_VEC[direction])
    away = int(rng.integers(2))
    return there[0] - away * dx, there[1] - away * dy, direction
