"""What a rule is: frozen, typed values that compare by content and know no numbers of any run.

A formula is built of atoms and comparisons over one *step* variable (`t`), joined by connectives, shifted by
temporal operators and offsets, and closed by quantifiers over the object sorts of a vocabulary. `&` and `|`
are n-ary and flat: `a & b & c` is one `And` of three, so that no depth is spent on length.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

MAX_DEPTH = 64
MAX_LITERALS = 64
MAX_NAME = 32
MAX_TEXT = 200
MAX_RULES = 1000
MAX_WINDOW = 1000

ComparisonOperator = Literal["<", "<=", ">", ">="]
TemporalOperator = Literal["next", "prev", "eventually", "always", "once"]
WINDOWED: frozenset[str] = frozenset({"eventually", "always", "once"})
_STRUCTURE = {"rule", "forall", "exists", "in"}
_LOGIC = {"and", "or", "not", "implies", "iff", "true", "false"}
_TIME = {"next", "prev", "eventually", "always", "once"}
KEYWORDS: frozenset[str] = frozenset(_STRUCTURE | _LOGIC | _TIME)


@dataclass(frozen=True, slots=True)
class Variable:
    """A bound variable; `offset` shifts a step variable in time (`t+1`), and is 0 for every other sort."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Constant:
    """A named member of a sort: an action, an object, a state."""

    name: str


@dataclass(frozen=True, slots=True)
class Text(Constant):
    """A constant that needs no declaration: any text, written in quotes, as in `contains(r, "I am not sure")`.

    `name` is the text itself, at most MAX_TEXT characters.
    """


Term = Variable | Constant


@dataclass(frozen=True, slots=True)
class Truth:
    """`true` or `false`."""

    value: bool


@dataclass(frozen=True, slots=True)
class Atom:
    """A predicate applied to its terms. `good(t)` is the reserved atom that data judges.

    `position` is where a parser read it, for the errors of later checks; it takes no part in equality.
    """

    predicate: str
    args: tuple[Term, ...]
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Threshold:
    """The number a feature is compared with, in the feature's unit; `?` before it makes it learnable."""

    value: float
    learnable: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """A numeric feature against a threshold, as in `dist_goal(t) < ?3`."""

    feature: Atom
    operator: ComparisonOperator
    threshold: Threshold


@dataclass(frozen=True, slots=True)
class Not:
    """`~operand`."""

    operand: Formula


@dataclass(frozen=True, slots=True)
class And:
    """`a & b & …`, two or more operands, none of them an `And`."""

    operands: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """`a | b | …`, two or more operands, none of them an `Or`."""

    operands: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Implies:
    """`left -> right`, inside a body or in parentheses."""

    left: Formula
    right: Formula


@dataclass(frozen=True, slots=True)
class Iff:
    """`left <-> right`."""

    left: Formula
    right: Formula


@dataclass(frozen=True, slots=True)
class Window:
    """Steps `start` to `stop`, both included, counted away from the present step; `0 <= start <= stop`."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Temporal:
    """An operand at another step of the same episode.

    `next`/`prev` look one step ahead or back and are false past the end; `eventually[a..b]` and
    `always[a..b]` look ahead, `once[a..b]` looks back. `always` over an empty window is true, the other
    two are false. A window is present for exactly these three.
    """

    operator: TemporalOperator
    operand: Formula
    window: Window | None = None


@dataclass(frozen=True, slots=True)
class Quantified:
    """`forall x in sort: operand` or `exists x in sort: operand` over the constants of an object sort."""

    quantifier: Literal["forall", "exists"]
    variable: str
    sort: str
    operand: Formula


Formula = Truth | Atom | Comparison | Not | And | Or | Implies | Iff | Temporal | Quantified


@dataclass(frozen=True, slots=True)
class Position:
    """Where something stands in a text; line and column count from 1, `offset` from 0, in characters."""

    line: int
    column: int
    offset: int


@dataclass(frozen=True, slots=True)
class Rule:
    """`rule name [weight]: forall variable in sort: body -> head`.

    `weight` lies in [0, 1]. `position` is where the rule stands in its file; it takes no part in equality.
    """

    name: str
    body: Formula
    head: Formula
    weight: float = 1.0
    variable: str = "t"
    sort: str = "step"
    position: Position | None = field(default=None, compare=False)


GOOD = "good"

VARIABLES = {"step": "t", "clip": "t", "rollout": "r", "turn": "u"}
"""What rules quantify over, each sort with its usual variable: one of these is the sort of every rule."""


def praises(rule: Rule) -> bool:
    """Whether the head is `good(…)`: the rule claims that such steps are worth repeating."""
    return isinstance(rule.head, Atom) and rule.head.predicate == GOOD


def blames(rule: Rule) -> bool:
    """Whether the head is `~good(…)`: the rule claims that such steps are worth avoiding."""
    head = rule.head
    return isinstance(head, Not) and isinstance(head.operand, Atom) and head.operand.predicate == GOOD
