"""What rules may say about gymnasium's small maps: FrozenLake, CliffWalking, Taxi.

The constants of a direction are the actions themselves, where all actions are directions:

>>> from nser.envs.make import make_env, vocabulary_of
>>> lake = vocabulary_of(make_env("FrozenLake-v1"))
>>> list(lake.predicates)
['hole_ahead', 'edge_ahead', 'goal_ahead', 'toward', 'near_goal', 'row', 'column', 'dist', 'action_is']
>>> lake.examples["toward"]
'exists a in action: toward(t, a) & ~hole_ahead(t, a) & action_is(t, a)'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nser.envs.known import KNOWN, Factor
from nser.envs.tables import Place, Tables, apart
from nser.grounding.vocabulary import Vocabulary

TAXI_SIDE, IN_TAXI = 5, 4  # cells along a side; what stands for the passenger's stop during the ride
TAXI_WAYS = ("south", "north", "east", "west")
_STOPS = ("red", "green", "yellow", "blue")
TAXI_FACTORS = (
    Factor("row", 100, TAXI_SIDE, "cells", "row of the taxi, counted from the top"),
    Factor("column", 20, TAXI_SIDE, "cells", "column of the taxi, counted from the left"),
    Factor("passenger", 4, (*_STOPS, "taxi"), "", "the passenger waits at this stop, or sits in the taxi"),
    Factor("destination", 1, _STOPS, "", "the passenger wants to go to this stop"),
)
"""How Taxi packs its state, for those who want stops by name: `automatic_vocabulary(…, factors=TAXI_FACTORS)`."""


def frozen_lake(env: Any) -> Vocabulary:
    """Holes, edges and the goal beside the agent, on whatever map the environment was made with."""
    at = {(r, c): cell for r, row in enumerate(env.desc) for c, cell in enumerate(row)}
    goal = next((place for place, cell in at.items() if cell == b"G"), (0, 0))
    holes = {place for place, cell in at.items() if cell == b"H"}
    meaning = "A hole is next to the agent in this direction"
    return _walking("frozen_lake", Tables(tuple(at)), goal, holes, ("hole_ahead", meaning))


def cliff_walking(env: Any) -> Vocabulary:
    """The cliff, edges and the goal beside the agent."""
    rows, columns = env.shape
    places = tuple((row, column) for row in range(rows) for column in range(columns))
    goal = rows - 1, columns - 1
    cliff = {(rows - 1, column) for column in range(1, columns - 1)}
    meaning = "The cliff is next to the agent in this direction: a fall costs 100 and leads back to the start"
    return _walking("cliff_walking", Tables(places), goal, cliff, ("cliff_ahead", meaning))


def _walking(name: str, tables: Tables, goal: Place, bad: set[Place], danger: tuple[str, str]) -> Vocabulary:
    """The vocabulary of a map to walk on; `danger` is the name and the meaning of the predicate for bad cells."""
    places, inside = tables.places, set(tables.places)
    actions = KNOWN["FrozenLake" if name == "frozen_lake" else "CliffWalking"].actions
    near = (places[-1][0] + places[-1][1] + 2) // 4
    fear = danger[0]
    declared = (
        tables.each_way(
            *danger,
            actions,
            lambda _, to: to in bad,
            example=f"exists a in action: {fear}(t, a) & action_is(t, a)",
        ),
        tables.each_way(
            "edge_ahead",
            "The edge of the map is next to the agent in this direction; a step that way leads nowhere",
            actions,
            lambda _, to: to not in inside,
        ),
        tables.each_way(
            "goal_ahead", "The goal is next to the agent in this direction", actions, lambda _, to: to == goal
        ),
        tables.each_way(
            "toward",
            "A step in this direction leads toward the goal, were nothing in the way",
            actions,
            lambda state, to: apart(to, goal) < apart(places[state], goal),
            example=f"exists a in action: toward(t, a) & ~{fear}(t, a) & action_is(t, a)",
        ),
        tables.truth("near_goal", f"The goal is at most {near} steps away", (apart(at, goal) <= near for at in places)),
        tables.cells("row", "Row of the agent, counted from the top", (row for row, _ in places)),
        tables.cells("column", "Column of the agent, counted from the left", (column for _, column in places)),
        tables.cells(
            "dist", "Steps to the goal, as if nothing were in the way", (apart(place, goal) for place in places)
        ),
    )
    return Vocabulary(name, declared, actions=actions, features=("state",))


def taxi(env: Any) -> Vocabulary:
    """Walls beside the taxi, and where it must go: to the passenger, then to the destination."""
    stops: list[Place] = [(int(row), int(column)) for row, column in env.locs]
    states = [tuple(int(part) for part in env.decode(state)) for state in range(int(env.observation_space.n))]
    tables = Tables(tuple((row, column) for row, column, _, _ in states))
    places = tables.places
    waits = [stops[who] if who < IN_TAXI else None for _, _, who, _ in states]
    wanted = [stops[destination] for *_, destination in states]
    aims = [there if there is not None else end for there, end in zip(waits, wanted, strict=True)]
    declared = (
        tables.truth("in_taxi", "The passenger sits in the taxi", (there is None for there in waits)),
        tables.truth(
            "at_passenger",
            "The taxi stands where the passenger waits",
            (place == there for place, there in zip(places, waits, strict=True)),
            "at_passenger(t) & action_is(t, pickup)",
        ),
        tables.truth(
            "at_destination",
            "The taxi stands where the passenger wants to go",
            (place == end for place, end in zip(places, wanted, strict=True)),
            "at_destination(t) & in_taxi(t) & action_is(t, dropoff)",
        ),
        tables.each_way(
            "wall_ahead",
            "A wall is next to the taxi in this direction",
            TAXI_WAYS,
            _walled(env.desc, places),
            sort="direction",
        ),
        tables.each_way(
            "toward",
            "A step in this direction leads toward the passenger, or during the ride toward the destination",
            TAXI_WAYS,
            lambda state, to: apart(to, aims[state]) < apart(places[state], aims[state]),
            sort="direction",
            example="toward(t, north) & ~wall_ahead(t, north)",
        ),
        tables.cells("row", "Row of the taxi, counted from the top", (row for row, _ in places)),
        tables.cells("column", "Column of the taxi, counted from the left", (column for _, column in places)),
        tables.cells(
            "dist",
            "Steps to the passenger, or during the ride to the destination, as if there were no walls",
            (apart(place, aim) for place, aim in zip(places, aims, strict=True)),
        ),
    )
    return Vocabulary("taxi", declared, {"direction": TAXI_WAYS}, KNOWN["Taxi"].actions, ("state",))


def _walled(desc: Any, places: tuple[Place, ...]) -> Callable[[int, Place], bool]:
    """Whether a wall stands between the taxi and the next cell: drawn as `|`, where a free way is `:`."""

    def walled(state: int, to: Place) -> bool:
        (row, column), (next_row, next_column) = places[state], to
        if not (0 <= next_row < TAXI_SIDE and 0 <= next_column < TAXI_SIDE):
            return True
        return row == next_row and bool(desc[1 + row, column + next_column + 1] == b"|")

    return walled


MAPS: dict[str, Callable[[Any], Vocabulary]] = {
    "FrozenLake": frozen_lake,
    "FrozenLake8x8": frozen_lake,
    "CliffWalking": cliff_walking,
    "CliffWalkingSlippery": cliff_walking,
    "Taxi": taxi,
}
"""Who makes the vocabulary of a map, by the environment's id without its version."""
