"""Conjunctions of plain conditions, compared a thousand at a time.

A *cube* says for some dimensions (see `nser.rules.worlds`) which of their values it allows, as the bits of an
integer; a body such as `p(t) & ~q(t) & x(t) < 3 & next(r(t))` is one. One cube implies another exactly when it
allows no more in any dimension; so a file of a thousand rules needs no million truth tables. Bodies with `|`,
windows or quantifiers are no cubes and are compared by truth table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nser.rules.logic import Budget, implies
from nser.rules.logic import overlap as overlap_table
from nser.rules.signature import Signature
from nser.rules.syntax import Atom, Comparison, Formula, Not, Temporal, Truth
from nser.rules.walk import atoms, conjuncts
from nser.rules.worlds import FUTURE, PAST, Key, action_key, action_of, flag_key, number_key, offset

Test = tuple[Key, str, str | float, bool]
"""A dimension, the kind of the test (flag, action, number or reach), what it asks for, and whether it is denied."""

Cube = Mapping[Key, int]


@dataclass(frozen=True, slots=True)
class Related:
    """For each of some bodies, as bits: which others imply it."""

    implied_by: tuple[int, ...]

    def implied(self, body: int, by: int) -> bool:
        """Whether `body` holds wherever `by` does."""
        return bool(self.implied_by[body] >> by & 1)


class Bodies:
    """Formulas that are compared with each other, each with its cube where it has one.

    Each must be able to hold and to fail: what always or never holds is implied by, or implies, everything.
    """

    def __init__(self, bodies: Sequence[Formula], signature: Signature | None, budget: Budget) -> None:
        self.bodies = tuple(bodies)
        self.signature, self.budget = signature, budget
        tests = [_tests(body) for body in bodies]
        self._cuts, self._actions, self._reach = _asked(tests)
        self.cubes = tuple(None if found is None else self._cube(found) for found in tests)
        self._words = [frozenset(atom.predicate for atom in atoms(body)) for body in bodies]

    def related(self) -> Related:
        """Which bodies imply which; a body does not count as implied by itself."""
        mentioned = self._by_key()
        below: dict[tuple[Key, int], int] = {}
        everyone = sum(1 << i for i, cube in enumerate(self.cubes) if cube is not None)
        found = []
        for number, cube in enumerate(self.cubes):
            implied = 0
            if cube is not None:
                implied = everyone
                for key, allowed in cube.items():
                    if (key, allowed) not in below:
                        below[key, allowed] = sum(1 << i for i, mask in mentioned[key] if not mask & ~allowed)
                    implied &= below[key, allowed]
            for other in self._tabled(number):
                if implies(self.bodies[other], self.bodies[number], self.signature, self.budget) == "yes":
                    implied |= 1 << other
            found.append(implied & ~(1 << number))
        return Related(tuple(found))

    def overlap(self, left: int, right: int) -> tuple[tuple[str, str], ...] | None:
        """A world in which both hold, in words; `None` where there is none, or none could be found."""
        one, other = self.cubes[left], self.cubes[right]
        if self.budget.over:
            return None
        if (
            one is not None
            and other is not None
            and any(not one[key] & other[key] for key in one.keys() & other.keys())
        ):
            return None
        found = overlap_table(self.bodies[left], self.bodies[right], self.signature, self.budget)
        return found.world if found.answer == "yes" else None

    def _tabled(self, number: int) -> Iterator[int]:
        """The bodies that only a truth table can compare with this one, and that share a word with it."""
        for other, cube in enumerate(self.cubes):
            if self.budget.over:
                return
            tabled = other != number and (cube is None or self.cubes[number] is None)
            if tabled and self._words[other] & self._words[number]:
                yield other

    def _by_key(self) -> dict[Key, list[tuple[int, int]]]:
        index: dict[Key, list[tuple[int, int]]] = {}
        for number, cube in enumerate(self.cubes):
            for key, allowed in (cube or {}).items():
                index.setdefault(key, []).append((number, allowed))
        return index

    def _cube(self, tests: Sequence[Test]) -> Cube:
        cube: dict[Key, int] = {}
        for key, kind, asked, denied in tests:
            every, allowed = self._mask(key, kind, asked)
            cube[key] = cube.get(key, every) & (every & ~allowed if denied else allowed)
        return cube

    def _mask(self, key: Key, kind: str, asked: str | float) -> tuple[int, int]:
        """Every value of a dimension, and those that a test allows."""
        if kind == "flag":
            return 0b11, 0b10
        if kind == "reach":
            every = (1 << (self._reach[key] + 1)) - 1
            return every, every & ~((1 << int(asked)) - 1)
        if kind == "action":
            names = self._actions[key]
            known = self.signature.sorts.get("action", ()) if self.signature else ()
            others = not known or not set(known) <= set(names)
            return (1 << (len(names) + others)) - 1, 1 << names.index(str(asked))
        cuts = self._cuts[key]
        every = (1 << (2 * len(cuts) + 1)) - 1
        at = 2 * cuts.index(float(asked)) + 1
        below, equal = (1 << at) - 1, 1 << at
        return every, {"<": below, "<=": below | equal, ">": every & ~below & ~equal, ">=": every & ~below}[kind]


def _asked(
    tests: Sequence[Sequence[Test] | None],
) -> tuple[dict[Key, list[float]], dict[Key, list[str]], dict[Key, int]]:
    """The cuts of each feature, the actions asked for, and how far each side of the episode is looked at."""
    cuts: dict[Key, set[float]] = {}
    actions: dict[Key, set[str]] = {}
    reach: dict[Key, int] = {}
    for key, kind, asked, _ in (test for found in tests for test in found or ()):
        if kind == "action":
            actions.setdefault(key, set()).add(str(asked))
        elif kind == "reach":
            reach[key] = max(reach.get(key, 0), int(asked))
        elif kind != "flag":
            cuts.setdefault(key, set()).add(float(asked))
    return {key: sorted(found) for key, found in cuts.items()}, {k: sorted(v) for k, v in actions.items()}, reach


def _tests(body: Formula) -> list[Test] | None:
    """The conditions of a conjunction; `None` for a body that is no cube."""
    found: list[Test] = []
    for part in conjuncts(body):
        tests = _plain(part)
        if tests is None:
            return None
        found += tests
    return found


def _plain(part: Formula) -> list[Test] | None:
    """The tests of one condition."""
    reached: list[Test] = []
    step = 0
    while isinstance(part, Temporal) and part.window is None:
        step += 1 if part.operator == "next" else -1
        reached += _reach(step)
        part = part.operand
    denied = isinstance(part, Not)
    leaf = part.operand if isinstance(part, Not) else part
    if leaf == Truth(not denied):
        return reached
    if not isinstance(leaf, Atom | Comparison):
        return None
    atom = leaf if isinstance(leaf, Atom) else leaf.feature
    by = offset(atom)
    if by and denied:
        return None  # `~p(t+1)` holds at the last step too
    at = step + by
    reached += _reach(at) if by else []
    if isinstance(leaf, Comparison):
        return [*reached, (number_key(atom, at, ()), leaf.operator, leaf.threshold.value, denied)]
    action = action_of(atom, ())
    if action is not None:
        return [*reached, (action_key(at), "action", action, denied)]
    return [*reached, (flag_key(atom, at, ()), "flag", 1.0, denied)]


def _reach(step: int) -> list[Test]:
    return [(FUTURE if step > 0 else PAST, "reach", float(abs(step)), False)] if step else []
