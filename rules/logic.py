"""Questions of logic about rules, answered by truth tables; what a table can't hold is called undecided.

Truth is crisp here: a degree above one half. A learnable threshold counts at its present value. Answers are about
every world that the words of the formulas can tell apart; that the vocabulary may rule some of these out (an agent
cannot face a door and a wall at once) is for data to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nser.rules.signature import Signature
from nser.rules.syntax import Formula, Iff, Implies, Not
from nser.rules.walk import conjunction, nodes
from nser.rules.worlds import Questions, TooManyWorldsError, Worlds

Answer = Literal["yes", "no", "undecided"]
TABLE = 20_000  # what the smallest truth table costs, in steps of about 5 ns
VISIT = 1_000  # and a part of a formula


@dataclass
class Budget:
    """Work that may still be spent on truth tables, in steps of about 5 ns: so many for each part of a formula.

    A file of a thousand tangled rules is answered in about a second, with `undecided` where the budget ended; being
    no clock, it gives the same answers on every machine.
    """

    left: int = 100_000_000

    @property
    def over(self) -> bool:
        """Whether nothing is left, so that some answers were, or will be, undecided."""
        return self.left < 0

    def spend(self, cost: int) -> None:
        """Take some of it. Raises TooManyWorldsError once nothing is left."""
        self.left -= max(cost, TABLE)
        if self.over:
            raise TooManyWorldsError


@dataclass(frozen=True, slots=True)
class Satisfied:
    """Whether a formula can hold, and a world in which it does, in words."""

    answer: Answer
    world: tuple[tuple[str, str], ...] = ()


def satisfiable(formula: Formula, signature: Signature | None = None, budget: Budget | None = None) -> Satisfied:
    """Whether some world makes a formula true.

    With a signature, quantifiers run over its constants and the actions are those it knows; without one, a
    quantified formula is not looked into. Temporal operators are written out step by step where they fit, else not
    looked into. `no` is always right; `yes` is said only where everything was looked into.

    >>> from nser.rules.parse import parse_formula
    >>> satisfiable(parse_formula("x(t) < 1 & x(t) > 2")).answer
    'no'
    >>> satisfiable(parse_formula("x(t) < 2 & ~p(t)"))
    Satisfied(answer='yes', world=(('p(t)', 'false'), ('x(t)', 'below 2')))
    """
    budget = budget or Budget()
    if budget.over:
        return Satisfied("undecided")
    size = sum(1 for _ in nodes(formula))
    for opaque in (False, True):
        questions = Questions(signature, opaque)
        try:
            questions.ask(formula)
            worlds = Worlds(questions)
            budget.spend(max(size, questions.visits) * (VISIT + worlds.count // 100))
        except TooManyWorldsError:
            budget.left -= questions.visits * VISIT
            continue
        found = worlds.holds(formula)
        if not found:
            return Satisfied("no")
        if questions.hidden:
            return Satisfied("undecided")
        return Satisfied("yes", worlds.describe((found & -found).bit_length() - 1))
    return Satisfied("undecided")


def contradiction(formula: Formula, signature: Signature | None = None, budget: Budget | None = None) -> Answer:
    """Whether a formula can never hold."""
    return _OPPOSITE[satisfiable(formula, signature, budget).answer]


def tautology(formula: Formula, signature: Signature | None = None, budget: Budget | None = None) -> Answer:
    """Whether a formula always holds."""
    return contradiction(Not(formula), signature, budget)


def implies(left: Formula, right: Formula, signature: Signature | None = None, budget: Budget | None = None) -> Answer:
    """Whether `right` holds wherever `left` does.

    >>> from nser.rules.parse import parse_formula
    >>> implies(parse_formula("x(t) < 1 & p(t)"), parse_formula("x(t) <= 2"))
    'yes'
    """
    return tautology(Implies(left, right), signature, budget)


def equivalent(
    left: Formula, right: Formula, signature: Signature | None = None, budget: Budget | None = None
) -> Answer:
    """Whether two formulas hold in the same worlds."""
    return tautology(Iff(left, right), signature, budget)


def overlap(
    left: Formula, right: Formula, signature: Signature | None = None, budget: Budget | None = None
) -> Satisfied:
    """Whether two formulas can hold at once, and a world in which they do."""
    return satisfiable(conjunction((left, right)), signature, budget)


_OPPOSITE: dict[Answer, Answer] = {"yes": "no", "no": "yes", "undecided": "undecided"}
