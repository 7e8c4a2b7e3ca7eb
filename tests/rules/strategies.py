"""Hypothesis strategies for formulas and rules.

Every formula parses back from its print: names are no keywords, constants are told from bound variables by
their names, `&` and `|` are flat. With a signature the formulas also pass `check_names`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeVar

from hypothesis import strategies as st

from nser.rules.signature import PredicateSignature, Signature
from nser.rules.syntax import (
    GOOD,
    KEYWORDS,
    MAX_TEXT,
    WINDOWED,
    Atom,
    Comparison,
    ComparisonOperator,
    Constant,
    Formula,
    Iff,
    Implies,
    Not,
    Quantified,
    Rule,
    Temporal,
    TemporalOperator,
    Term,
    Text,
    Threshold,
    Truth,
    Variable,
    Window,
)
from nser.rules.walk import conjunction, disjunction

SIGNATURE = Signature(
    {
        known.name: known
        for known in (
            PredicateSignature("carrying", doc="The agent carries the key."),
            PredicateSignature("facing", ("object",), doc="The cell ahead holds this."),
            PredicateSignature("beside", ("object", "object")),
            PredicateSignature("dist_goal", (), "number", unit="cells", low=0.0, high=20.0),
            PredicateSignature("dist", ("object",), "number"),
            PredicateSignature("action_is", ("action",), scope="action", doc="the agent took this action"),
            PredicateSignature("bumped", scope="transition"),
        )
    },
    {"object": ("key", "door", "goal"), "action": ("left", "right", "forward", "pickup")},
)

OPERATORS: tuple[TemporalOperator, ...] = ("next", "prev", "eventually", "always", "once")
COMPARED: tuple[ComparisonOperator, ...] = ("<", "<=", ">", ">=")
VARIABLES = ("x", "y", "o2")

T = TypeVar("T")

names: st.SearchStrategy[str] = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,31}", fullmatch=True).filter(
    lambda name: name not in KEYWORDS and name not in {"t", GOOD, *VARIABLES}
)
# Texts that a careless reader would take for rules, comments or ends; cheap to draw, as rules hold many.
short_texts: st.SearchStrategy[str] = st.one_of(
    st.text(max_size=6),
    st.sampled_from(
        (
            *("rule a: forall t in step: p(t) -> good(t)", "# not a note", 't", key) -> good(t)'),
            *("\\", "</think>", "é" * MAX_TEXT),
        )
    ),
)
texts: st.SearchStrategy[str] = st.one_of(short_texts, st.text(min_size=MAX_TEXT, max_size=MAX_TEXT))
weights = st.floats(0, 1)
windows = st.tuples(st.integers(0, 1000), st.integers(0, 1000)).map(lambda ends: Window(min(ends), max(ends)))
thresholds = st.builds(Threshold, st.floats(allow_nan=False, allow_infinity=False), st.booleans())


class _Maker:
    """Draws formulas, with the variables in scope and their sorts."""

    def __init__(self, draw: st.DrawFn, signature: Signature | None, offsets: bool, quoted: bool) -> None:
        self._draw = draw
        self.quoted = quoted
        self.signature = signature
        self.offsets = offsets

    def draw(self, strategy: st.SearchStrategy[T]) -> T:
        return self._draw(strategy)

    def step(self) -> Variable:
        return Variable("t", self.draw(st.integers(-3, 3)) if self.offsets else 0)

    def argument(self, sort: str, bound: Mapping[str, str]) -> Term:
        variables = [name for name, of in bound.items() if of == sort]
        if bool(variables) and self.draw(st.booleans()):
            return Variable(self.draw(st.sampled_from(variables)))
        if self.signature:
            return Constant(self.draw(st.sampled_from(self.signature.sorts[sort])))
        if self.quoted and self.draw(st.booleans()):
            return Text(self.draw(short_texts))
        return Constant(self.draw(names))

    def atom(self, kind: str, bound: Mapping[str, str]) -> Atom:
        if self.signature:
            known = [one for one in self.signature.predicates.values() if one.kind == kind]
            chosen = self.draw(st.sampled_from(known))
            return Atom(chosen.name, (self.step(), *(self.argument(sort, bound) for sort in chosen.sorts)))
        sorts = ["object"] * self.draw(st.integers(0, 2))
        return Atom(self.draw(names), (self.step(), *(self.argument(sort, bound) for sort in sorts)))

    def leaf(self, bound: Mapping[str, str]) -> Formula:
        kind = self.draw(st.sampled_from(("atom", "atom", "comparison", "truth")))
        if kind == "truth":
            return Truth(self.draw(st.booleans()))
        return self.literal(bound, comparison=kind == "comparison")

    def literal(self, bound: Mapping[str, str], *, comparison: bool) -> Atom | Comparison:
        if not comparison:
            return self.atom("truth", bound)
        operator = self.draw(st.sampled_from(COMPARED))
        return Comparison(self.atom("number", bound), operator, self.draw(thresholds))

    def temporal(self, operand: Formula) -> Temporal:
        operator = self.draw(st.sampled_from(OPERATORS))
        return Temporal(operator, operand, self.draw(windows) if operator in WINDOWED else None)

    def formula(self, levels: int, bound: Mapping[str, str]) -> Formula:
        kinds = ("leaf", "leaf", "not", "and", "or", "implies", "iff", "temporal", "quantified")
        kind = self.draw(st.sampled_from(kinds)) if levels else "leaf"
        below = levels - 1
        match kind:
            case "not":
                return Not(self.formula(below, bound))
            case "and" | "or":
                parts = tuple(self.formula(below, bound) for _ in range(self.draw(st.integers(2, 3))))
                return conjunction(parts) if kind == "and" else disjunction(parts)
            case "implies":
                return Implies(self.formula(below, bound), self.formula(below, bound))
            case "iff":
                return Iff(self.formula(below, bound), self.formula(below, bound))
            case "temporal":
                return self.temporal(self.formula(below, bound))
            case "quantified" if len(bound) < len(VARIABLES):
                variable = VARIABLES[len(bound)]
                sort = self.draw(st.sampled_from(tuple(self.signature.sorts))) if self.signature else "object"
                quantifier: Literal["forall", "exists"] = self.draw(st.sampled_from(("forall", "exists")))
                operand = self.formula(below, {**bound, variable: sort})
                return Quantified(quantifier, variable, sort, operand)
            case _:
                return self.leaf(bound)

    def head(self, judged: bool) -> Formula:
        if judged or self.draw(st.booleans()):
            good = Atom(GOOD, (Variable("t"),))
            return Not(good) if self.draw(st.booleans()) else good
        head: Formula = self.literal({}, comparison=self.draw(st.booleans()))
        for _ in range(self.draw(st.integers(0, 2))):
            head = self.temporal(head) if self.draw(st.booleans()) else head
            head = Not(head) if not isinstance(head, Not) and self.draw(st.booleans()) else head
        return head


@st.composite
def formulas(
    draw: st.DrawFn,
    signature: Signature | None = None,
    levels: int = 3,
    offsets: bool = True,
    quoted: bool = True,
) -> Formula:
    """Formulas over the step variable `t`, at most `levels` + 1 deep; over a signature's names if given.

    Without a signature some arguments are texts in quotes, unless `quoted` is false.
    """
    return _Maker(draw, signature, offsets, quoted).formula(levels, {})


@st.composite
def rules(
    draw: st.DrawFn,
    signature: Signature | None = None,
    levels: int = 3,
    offsets: bool = True,
    judged: bool = False,
    quoted: bool = True,
) -> Rule:
    """Rules with any head, or with `good(t)` and `~good(t)` alone where `judged`."""
    maker = _Maker(draw, signature, offsets, quoted)
    weight = maker.draw(st.one_of(st.just(1.0), weights))
    return Rule(maker.draw(names), maker.formula(levels, {}), maker.head(judged), weight)
