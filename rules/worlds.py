"""The crisp worlds that formulas can tell apart, as bits of Python integers.

A *dimension* is one thing that a formula asks about, with a few values: whether an atom holds at a step (two
values), where a number lies among the thresholds it is compared with (2k + 1 values for k thresholds: below, at,
between, …), which action was taken (those named, and any other), how many steps the episode has before and after.
A *world* is one value of each. A formula becomes the set of worlds where it holds, an integer with one bit a
world; `&`, `|` and `~` are those of integers. So `x < 1` implies `x < 2`, two actions exclude each other, and
`next(~p)` differs from `~next(p)`, which holds at the last step too.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from nser.rules.print_english import ACTION
from nser.rules.printer import print_term
from nser.rules.signature import Signature
from nser.rules.syntax import (
    And,
    Atom,
    Comparison,
    Constant,
    Formula,
    Iff,
    Implies,
    Not,
    Or,
    Quantified,
    Temporal,
    Term,
    Truth,
    Variable,
    Window,
)

MAX_DIMENSIONS = 16
MAX_WORLDS = 2**MAX_DIMENSIONS
MAX_VISITS = 2_000
_NEXT = Window(1, 1)

Key = tuple[Hashable, ...]
Bindings = tuple[tuple[str, str], ...]
FUTURE: Key = ("future",)
PAST: Key = ("past",)
_OTHER = ""


class TooManyWorldsError(Exception):
    """More worlds than a truth table holds, or a window too wide to write out."""


@dataclass
class Questions:
    """Everything that some formulas ask about, collected before the worlds are numbered.

    numbers: cuts of each feature;  actions: names asked for at each step;  flags: what is true or false;
    first, last: steps looked at, counted from the present one;  hidden: whether something was not looked into
    visits: parts of formulas looked at, each at one step and under one binding
    """

    signature: Signature | None
    opaque: bool = False
    numbers: dict[Key, set[float]] = field(default_factory=dict)
    actions: dict[Key, set[str]] = field(default_factory=dict)
    flags: dict[Key, None] = field(default_factory=dict)
    first: int = 0
    last: int = 0
    hidden: bool = False
    visits: int = 0
    _seen: set[Key] = field(default_factory=set)

    def ask(self, formula: Formula, step: int = 0, bound: Bindings = ()) -> None:
        """Collect what a formula asks about. Raises TooManyWorldsError for what can't be written out."""
        self.visits += 1
        # Seventeen things with two values each are too many already, whatever else is asked.
        if self.visits > MAX_VISITS or len(self.flags) + len(self.numbers) + len(self.actions) > MAX_DIMENSIONS:
            raise TooManyWorldsError
        key = (id(formula), step, bound)
        if key in self._seen:
            return
        self._seen.add(key)
        match formula:
            case Truth():
                pass
            case Atom():
                self._ask_atom(formula, self._reach(formula, step), bound)
            case Comparison(feature, _, threshold):
                place = number_key(feature, self._reach(feature, step), bound)
                self.numbers.setdefault(place, set()).add(threshold.value)
            case Temporal(operator, operand, window) if not self.opaque:
                for at in moments(operator, window, step):
                    self._extend(at)
                    self.ask(operand, at, bound)
            case Quantified(_, variable, sort, operand) if self.constants(sort) is not None:
                for constant in self.constants(sort) or ():
                    self.ask(operand, step, bind(bound, variable, constant))
            case Temporal() | Quantified():
                self.hidden = True
                self.flags[hidden_key(formula, step, bound)] = None
            case Not(operand):
                self.ask(operand, step, bound)
            case And(operands) | Or(operands):
                for operand in operands:
                    self.ask(operand, step, bound)
            case Implies(left, right) | Iff(left, right):
                self.ask(left, step, bound)
                self.ask(right, step, bound)

    def sizes(self) -> dict[Key, int]:
        """The number of values of each dimension."""
        found: dict[Key, int] = {FUTURE: self.last + 1, PAST: 1 - self.first}
        found |= dict.fromkeys(self.flags, 2)
        found |= {key: 2 * len(cuts) + 1 for key, cuts in self.numbers.items()}
        found |= {key: len(self.choices(key)) for key in self.actions}
        return found

    def choices(self, key: Key) -> tuple[str, ...]:
        """The actions told apart at a step; the empty name is any other, where there may be one."""
        named = self.actions[key]
        known = self.constants("action")
        others = known is None or not set(known) <= named
        return (*sorted(named), *((_OTHER,) if others else ()))

    def _ask_atom(self, atom: Atom, step: int, bound: Bindings) -> None:
        name = action_of(atom, bound)
        if name is None:
            self.flags[flag_key(atom, step, bound)] = None
        else:
            self.actions.setdefault(action_key(step), set()).add(name)

    def _reach(self, atom: Atom, step: int) -> int:
        at = step + offset(atom)
        self._extend(at)
        return at

    def _extend(self, step: int) -> None:
        self.first, self.last = min(self.first, step), max(self.last, step)

    def constants(self, sort: str) -> tuple[str, ...] | None:
        """The members of a sort; `None` where nobody knows them."""
        return self.signature.sorts.get(sort) if self.signature else None


class Worlds:
    """All worlds of some questions, numbered; formulas become sets of them."""

    def __init__(self, questions: Questions) -> None:
        self.questions = questions
        self.sizes = questions.sizes()
        self.strides: dict[Key, int] = {}
        count = 1
        for key, size in self.sizes.items():
            self.strides[key] = count
            count *= size
            if count > MAX_WORLDS:
                raise TooManyWorldsError
        self.count = count
        self.all = (1 << count) - 1
        self._known: dict[Key, int] = {}
        self._repeats: dict[Key, int] = {}

    def where(self, key: Key, first: int, stop: int) -> int:
        """The worlds in which a dimension has one of the values from `first` up to, not with, `stop`."""
        stride = self.strides[key]
        length = stride * self.sizes[key]
        pattern = ((1 << stride * max(stop - first, 0)) - 1) << stride * first
        if key not in self._repeats:
            self._repeats[key] = self.all // ((1 << length) - 1)
        return pattern * self._repeats[key]

    def holds(self, formula: Formula, step: int = 0, bound: Bindings = ()) -> int:
        """The worlds in which a formula holds. Its depth, which the parser bounds, bounds the recursion."""
        key = (id(formula), step, bound)
        if key not in self._known:
            self._known[key] = self._holds(formula, step, bound)
        return self._known[key]

    def describe(self, world: int) -> tuple[tuple[str, str], ...]:
        """What is asked, in words, and its answer in one world."""
        told = []
        for key in self.sizes:
            value = world // self.strides[key] % self.sizes[key]
            told += self._told(key, value)
        return tuple(told)

    def _told(self, key: Key, value: int) -> list[tuple[str, str]]:
        if key[0] == "flag":
            return [(str(key[1]), "true" if value else "false")]
        if key[0] == "number":
            cuts = sorted(self.questions.numbers[key])
            place = value // 2
            if value % 2:
                return [(str(key[1]), f"{cuts[place]:g}")]
            low = f"above {cuts[place - 1]:g}" if place else ""
            high = f"below {cuts[place]:g}" if place < len(cuts) else ""
            return [(str(key[1]), " and ".join(part for part in (low, high) if part))]
        if key[0] == "action":
            return [(f"action{_at(int(str(key[1])))}", self.questions.choices(key)[value] or "another")]
        return []

    def _holds(self, formula: Formula, step: int, bound: Bindings) -> int:
        match formula:
            case Truth(value):
                return self.all if value else 0
            case Atom():
                return self._exists(formula, step) & self._atom(formula, step + offset(formula), bound)
            case Comparison():
                return self._exists(formula.feature, step) & self._comparison(formula, step, bound)
            case Not(operand):
                return self.all ^ self.holds(operand, step, bound)
            case And(operands):
                found = self.all
                for operand in operands:
                    found &= self.holds(operand, step, bound)
                return found
            case Or(operands):
                found = 0
                for operand in operands:
                    found |= self.holds(operand, step, bound)
                return found
            case Implies(left, right):
                return (self.all ^ self.holds(left, step, bound)) | self.holds(right, step, bound)
            case Iff(left, right):
                return self.all ^ self.holds(left, step, bound) ^ self.holds(right, step, bound)
            case Temporal() if not self.questions.opaque:
                return self._temporal(formula, step, bound)
            case Quantified(quantifier, variable, sort, operand) if self.questions.constants(sort) is not None:
                cases = [
                    self.holds(operand, step, bind(bound, variable, constant))
                    for constant in self.questions.constants(sort) or ()
                ]
                found = self.all if quantifier == "forall" else 0
                for case in cases:
                    found = found & case if quantifier == "forall" else found | case
                return found
        return self.where(hidden_key(formula, step, bound), 1, 2)

    def _temporal(self, formula: Temporal, step: int, bound: Bindings) -> int:
        always = formula.operator == "always"
        found = self.all if always else 0
        for at in moments(formula.operator, formula.window, step):
            there, then = self._reaches(at), self.holds(formula.operand, at, bound)
            found = found & ((self.all ^ there) | then) if always else found | (there & then)
        return found

    def _exists(self, atom: Atom, step: int) -> int:
        """An atom at an offset is false past the end of the episode; at its own step it needs no more."""
        by = offset(atom)
        return self._reaches(step + by) if by else self.all

    def _reaches(self, step: int) -> int:
        """The worlds whose episode has this step."""
        key = FUTURE if step >= 0 else PAST
        if (key, step) not in self._known:
            self._known[key, step] = self.where(key, abs(step), self.sizes[key])
        return self._known[key, step]

    def _atom(self, atom: Atom, step: int, bound: Bindings) -> int:
        name = action_of(atom, bound)
        if name is None:
            return self.where(flag_key(atom, step, bound), 1, 2)
        key = action_key(step)
        at = self.questions.choices(key).index(name)
        return self.where(key, at, at + 1)

    def _comparison(self, formula: Comparison, step: int, bound: Bindings) -> int:
        key = number_key(formula.feature, step + offset(formula.feature), bound)
        at = 2 * sorted(self.questions.numbers[key]).index(formula.threshold.value) + 1
        size = self.sizes[key]
        ends = {"<": (0, at), "<=": (0, at + 1), ">": (at + 1, size), ">=": (at, size)}
        return self.where(key, *ends[formula.operator])


def moments(operator: str, window: Window | None, step: int) -> range:
    """The steps that a temporal operator looks at from a step."""
    reach = window or _NEXT
    if operator in {"prev", "once"}:
        return range(step - reach.stop, step - reach.start + 1)
    return range(step + reach.start, step + reach.stop + 1)


def offset(atom: Atom) -> int:
    """How many steps away an atom is read."""
    step = atom.args[0] if atom.args else None
    return step.offset if isinstance(step, Variable) else 0


def bind(bound: Bindings, variable: str, constant: str) -> Bindings:
    """Bindings with one more, an older one of the same name replaced."""
    return (*(pair for pair in bound if pair[0] != variable), (variable, constant))


def action_of(atom: Atom, bound: Bindings) -> str | None:
    """The action that `action_is(t, …)` asks for; `None` for every other atom."""
    if atom.predicate != ACTION or len(atom.args) != 2:
        return None
    return _named(atom.args[1], dict(bound))


def flag_key(atom: Atom, step: int, bound: Bindings) -> Key:
    """The dimension of an atom at a step."""
    return ("flag", _words(atom, bound) + _at(step))


def number_key(feature: Atom, step: int, bound: Bindings) -> Key:
    """The dimension of a numeric feature at a step."""
    return ("number", _words(feature, bound) + _at(step))


def action_key(step: int) -> Key:
    """The dimension of the action taken at a step."""
    return ("action", step)


def hidden_key(formula: Formula, step: int, bound: Bindings) -> Key:
    """The dimension of a formula that is not looked into: true or false, whatever it says."""
    return ("hidden", formula, step, bound)


def _words(atom: Atom, bound: Bindings) -> str:
    names = dict(bound)
    terms = [_named(term, names) or "?" + term.name for term in atom.args[1:]]
    # One name for the step variable, so that rules over `t` and over `s` are about the same.
    return f"{atom.predicate}({', '.join(['t', *terms])})"


def _named(term: Term, names: Mapping[str, str]) -> str | None:
    if isinstance(term, Constant):
        return print_term(term)
    return names.get(term.name)


def _at(step: int) -> str:
    return f" at {step:+d}" if step else ""
