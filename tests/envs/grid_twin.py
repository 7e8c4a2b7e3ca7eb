"""Slow twins of the grid worlds' observations: every fact searched in MiniGrid's grid, nothing remembered."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
from minigrid.core.constants import DIR_TO_VEC
from numpy.typing import NDArray

Place = tuple[int, int]


def scan(env: Any) -> dict[str, list[tuple[Place, Any]]]:
    """Everything on the grid by type, with its place."""
    found: dict[str, list[tuple[Place, Any]]] = {}
    for x in range(env.width):
        for y in range(env.height):
            thing = env.grid.get(x, y)
            if thing is not None:
                found.setdefault(thing.type, []).append(((x, y), thing))
    return found


def ahead(env: Any) -> Any:
    x, y = (int(i) for i in env.agent_pos)
    dx, dy = (int(i) for i in DIR_TO_VEC[env.agent_dir])
    return env.grid.get(x + dx, y + dy)


def unlock(env: Any) -> tuple[dict[str, Place | None], dict[str, bool], str]:
    """Places of the targets (None where they are with the agent), facts, and what is ahead."""
    found, held = scan(env), env.carrying.type if env.carrying else None
    key = found["key"][0][0] if "key" in found else None
    assert (held == "key") == (key is None)
    return {"key": key, "door": found["door"][0][0]}, {"carrying": held == "key"}, kind(ahead(env))


def unlock_pickup(env: Any) -> tuple[dict[str, Place | None], dict[str, bool], str]:
    places, facts, thing = unlock(env)
    found, held = scan(env), env.carrying.type if env.carrying else None
    (at, door), *_ = found["door"]
    places["box"] = found["box"][0][0] if "box" in found else None
    facts |= {
        "door_open": door.is_open,
        "door_locked": door.is_locked,
        "past_door": int(env.agent_pos[0]) > at[0],
        "box_gone": "box" not in found and held != "box",
    }
    return places, facts, thing


def key_corridor(env: Any) -> tuple[dict[str, Place | None], dict[str, bool], str]:
    found, held = scan(env), env.carrying.type if env.carrying else None
    agent = (int(env.agent_pos[0]), int(env.agent_pos[1]))
    at, door = next((at, door) for at, door in found["door"] if door is the_locked_door(env))
    places: dict[str, Place | None] = {
        "key": found["key"][0][0] if "key" in found else None,
        "door": at,
        "ball": found["ball"][0][0] if "ball" in found else None,
    }
    facts = {
        "carrying": held == "key",
        "door_open": door.is_open,
        "door_locked": door.is_locked,
        "in_corridor": room(env, agent) == "corridor",
        "with_key": room(env, agent) == room(env, places["key"] or agent),
        "with_ball": room(env, agent) == room(env, places["ball"] or agent),
    }
    thing = ahead(env)
    if kind(thing) != "door":
        return places, facts, kind(thing)
    state = "open_door" if thing.is_open else "locked_door" if thing.is_locked else "shut_door"
    return places, facts, state


def the_locked_door(env: Any) -> Any:
    """The only door of the ball's room."""
    doors = [door for row in env.room_grid for place in row[2:] if env.obj in place.objs for door in place.doors]
    return next(door for door in doors if door)


def room(env: Any, place: Place) -> Any:
    """The room that MiniGrid itself counts a place to."""
    found = env.room_from_pos(*place)
    return "corridor" if any(found is row[1] for row in env.room_grid) else id(found)


def lava_gap(env: Any) -> tuple[dict[str, Place | None], dict[str, bool], str]:
    found = scan(env)
    column = found["lava"][0][0][0]
    lava = {at for at, _ in found["lava"]}
    (gap,) = {(column, y) for y in range(1, env.height - 1)} - lava
    places: dict[str, Place | None] = {"gap": gap, "goal": found["goal"][0][0]}
    return places, {"past_gap": int(env.agent_pos[0]) > column}, kind(ahead(env))


def four_rooms(env: Any, exit_told: Place) -> tuple[dict[str, Place | None], dict[str, bool], str]:
    """The exit may be one of several as near, so the told one is checked against walks and taken over."""
    goal = scan(env)["goal"][0][0]
    here = (int(env.agent_pos[0]), int(env.agent_pos[1]))
    away, near = walks(env, goal), walks(env, here)
    assert near[exit_told] + away[exit_told] == away[here]
    on_wall = [9 in place for place in (here, exit_told)]
    same = any(side(here, i) & side(goal, i) == set() for i in (0, 1))
    assert exit_told == goal or (on_wall[1] and exit_told != here)
    assert (exit_told == goal) == (not same)
    return {"exit": exit_told, "goal": goal}, {"in_goal_room": not same, "in_gap": on_wall[0]}, kind(ahead(env))


def side(place: Place, axis: int) -> set[str]:
    """Which half of the map a place is in along an axis; the wall in the middle belongs to both."""
    return {"low", "high"} if place[axis] == 9 else {"low" if place[axis] < 9 else "high"}


def walks(env: Any, start: Place) -> dict[Place, int]:
    """Steps from `start` to every cell, counted by walking."""
    steps, waiting = {start: 0}, deque([start])
    while waiting:
        x, y = waiting.popleft()
        for cell in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
            if cell not in steps and kind(env.grid.get(*cell)) != "wall":
                steps[cell] = steps[x, y] + 1
                waiting.append(cell)
    return steps


def kind(thing: Any) -> str:
    return "empty" if thing is None else str(thing.type)


def written_down(
    env: Any, places: dict[str, Place | None], facts: dict[str, bool], thing: str, objects: tuple[str, ...]
) -> NDArray[np.float32]:
    """The observation in the order of the documented table."""
    unit = max(env.width, env.height) - 3
    x, y = (int(i) for i in env.agent_pos)
    values: list[float] = [(x - 1) / unit, (y - 1) / unit]
    values += [float(env.agent_dir == direction) for direction in range(4)]
    for place in places.values():
        there = place or (x, y)
        values += [(there[0] - x) / unit, (there[1] - y) / unit]
    values += [float(fact) for fact in facts.values()]
    values += [float(thing == other) for other in objects]
    return np.array([*values, 1 / unit], dtype=np.float32)


def wild_play(env: Any, steps: int, seed: int) -> Iterator[tuple[NDArray[np.float32], int]]:
    """(observation, next action) of random play that now and then is put somewhere else, often before a thing.

    One step in thirty a door opens or shuts by itself, as few random plays bring the right key.
    """
    rng = np.random.default_rng(seed)
    observation, _ = env.reset(seed=seed)
    for _ in range(steps):
        if rng.random() < 1 / 3:
            direction = int(rng.integers(4))
            x, y = _somewhere(env, rng, direction)
            if 0 <= x < env.width and 0 <= y < env.height:
                cell = env.grid.get(x, y)
                if cell is None or (cell.type == "door" and cell.is_open):
                    env.agent_pos, env.agent_dir = (x, y), direction
                    observation = env.gen_obs()
        if rng.random() < 1 / 30:
            for (x, y), door in scan(env).get("door", []):
                if tuple(env.agent_pos) != (x, y):
                    door.is_open, door.is_locked = not door.is_open, False
            observation = env.gen_obs()
        action = int(rng.choice(7, p=[0.12, 0.12, 0.28, 0.16, 0.1, 0.2, 0.02]))
        yield observation, action
        observation, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            yield observation, 6
            observation, _ = env.reset()


def _somewhere(env: Any, rng: np.random.Generator, direction: int) -> Place:
    if rng.random() < 1 / 2:
        return int(rng.integers(env.width)), int(rng.integers(env.height))
    things = [(at, thing) for kind, found in scan(env).items() if kind != "wall" for at, thing in found]
    (x, y), _ = things[int(rng.integers(len(things)))]
    dx, dy = (int(i) for i in DIR_TO_VEC[direction])
    return x - dx, y - dy
