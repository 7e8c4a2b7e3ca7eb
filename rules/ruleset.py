"""A rule set: rules, a version, where each rule comes from, and which ones left."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from nser.rules.errors import RuleError
from nser.rules.printer import print_rule
from nser.rules.syntax import Comparison, Formula, Rule, Threshold
from nser.rules.walk import fold, with_children

PERSON = "person"


@dataclass(frozen=True, slots=True)
class Provenance:
    """Who proposed a rule, and what held-out data said of it; `None` where nobody knows.

    `support` is the fraction of steps on which the body holds, `coverage` that of the good (or bad) steps
    it covers, `precision` that of its firings which are good (or bad), with the ends of its interval, `recall` that
    of the good (or bad) steps on which it fires, `lift` its gain over the base rate with the ends of its interval,
    `firings` a count, `since` the environment step of its proposal.
    """

    proposer: str | None = None
    since: int | None = None
    support: float | None = None
    coverage: float | None = None
    precision: float | None = None
    lift: float | None = None
    lift_low: float | None = None
    lift_high: float | None = None
    firings: int | None = None
    prompt_hash: str | None = None
    reply_hash: str | None = None
    verdict: str | None = None
    recall: float | None = None
    precision_low: float | None = None
    precision_high: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """JSON values of the fields that are known; a NaN or infinite figure counts as unknown."""
        return {name: value for name, value in asdict(self).items() if is_known(value)}


@dataclass(frozen=True, slots=True)
class Retired:
    """A rule that left, and why.

    text: all of the rule but its weight;  code, sentence: the verdict that it left by;  by: `data`, or `person`, whose
    decision later proposals do not undo;  step: environment step at which it left
    """

    name: str
    text: str
    code: str
    sentence: str
    by: str = "data"
    step: int = 0

    def as_dict(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Rules in the order of their file, a version, and the provenance of those whose origin is known.

    `retired` are the rules that left with this version, and those that a person ever took out. `problems` is what was
    wrong with the files it was read from; neither takes part in equality.
    """

    rules: tuple[Rule, ...] = ()
    version: int = 0
    provenance: Mapping[str, Provenance] = field(default_factory=dict)
    problems: tuple[RuleError, ...] = field(default=(), compare=False)
    retired: tuple[Retired, ...] = field(default=(), compare=False)


UNPROVEN = 0.1
"""What a person's rule counts for in replay, of its weight, until data support it."""


def is_unproven(known: Provenance | None) -> bool:
    """Whether a person put a rule in force and data do not support it yet: no lift whose lower end lies above 0."""
    return known is not None and known.proposer == PERSON and not (known.lift_low or 0.0) > 0


def meaning(rule: Rule) -> str:
    """What figures are about: all of a rule but its weight."""
    return print_rule(replace(rule, weight=1.0))


def skeleton(rule: Rule) -> str:
    """What stays the same while a rule is learnt: all but name, weight and learnable thresholds.

    >>> from nser.rules.parse import parse_rule
    >>> skeleton(parse_rule("rule a [0.5]: forall t in step: x(t) < ?3 & y(t) > 2 -> good(t)"))
    'rule _: forall t in step: x(t) < ?0.0 & y(t) > 2.0 -> good(t)'
    """

    return _blanked(rule, lambda threshold: threshold.learnable)


def outline(rule: Rule) -> str:
    """What its name is about: all but name, weight and thresholds, which move a little with every induction.

    >>> from nser.rules.parse import parse_rule
    >>> outline(parse_rule("rule a [0.5]: forall t in step: x(t) < ?3 & y(t) > 2 -> good(t)"))
    'rule _: forall t in step: x(t) < ?0.0 & y(t) > ?0.0 -> good(t)'
    """
    return _blanked(rule, lambda threshold: True)


def _blanked(rule: Rule, left_out: Callable[[Threshold], bool]) -> str:
    def blank(node: Formula, parts: tuple[Formula, ...]) -> Formula:
        if isinstance(node, Comparison) and left_out(node.threshold):
            return Comparison(node.feature, node.operator, Threshold(0.0, True))
        return with_children(node, parts)

    return print_rule(replace(rule, name="_", weight=1.0, body=fold(rule.body, blank), head=fold(rule.head, blank)))


def is_known(value: object) -> bool:
    """Whether a figure can be told: neither absent nor NaN nor infinite."""
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))
