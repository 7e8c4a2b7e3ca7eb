"""What changed between two rule sets, and putting two changed ones together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from nser.rules.printer import print_formula, print_rule
from nser.rules.ruleset import skeleton
from nser.rules.syntax import Comparison, Formula, Rule, Threshold
from nser.rules.walk import fold, with_children

Kind = Literal["added", "removed", "changed"]
Part = Literal["name", "weight", "threshold", "body", "head"]


@dataclass(frozen=True, slots=True)
class Change:
    """One rule that differs between two sets; `parts` says in what, for a changed one."""

    kind: Kind
    name: str
    before: Rule | None = None
    after: Rule | None = None
    parts: tuple[Part, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """JSON values; the rules as text."""
        return {
            "kind": self.kind,
            "name": self.name,
            "parts": list(self.parts),
            "before": print_rule(self.before) if self.before else None,
            "after": print_rule(self.after) if self.after else None,
        }


def diff(before: Sequence[Rule], after: Sequence[Rule]) -> tuple[Change, ...]:
    """Added, removed and changed rules, in the order of `after`, the removed ones last.

    Rules are paired by name; of the rest those that say the same are one rule with a new name. `threshold` is said
    where the numbers of comparisons differ and nothing else of the body does.
    """
    old, new = {rule.name: rule for rule in before}, {rule.name: rule for rule in after}
    lost = {skeleton(rule): rule for rule in before if rule.name not in new}
    changes: list[Change] = []
    renamed: set[str] = set()
    for rule in after:
        paired = old.get(rule.name) or lost.get(skeleton(rule))
        if paired is None or paired.name in renamed:
            changes.append(Change("added", rule.name, after=rule))
            continue
        if paired.name != rule.name:
            renamed.add(paired.name)
        if parts := _parts(paired, rule):
            changes.append(Change("changed", rule.name, paired, rule, parts))
    gone = (rule for rule in before if rule.name not in new and rule.name not in renamed)
    return (*changes, *(Change("removed", rule.name, before=rule) for rule in gone))


def _parts(before: Rule, after: Rule) -> tuple[Part, ...]:
    parts: list[Part] = ["name"] if before.name != after.name else []
    parts += ["weight"] if before.weight != after.weight else []
    if before.body != after.body:
        parts += ["threshold" if _bare(before.body) == _bare(after.body) else "body"]
    bound = (before.variable, before.sort) != (after.variable, after.sort)
    parts += ["head"] if before.head != after.head or bound else []
    return tuple(parts)


def _bare(formula: Formula) -> str:
    """A formula without its numbers."""

    def blank(node: Formula, parts: tuple[Formula, ...]) -> Formula:
        if isinstance(node, Comparison):
            return Comparison(node.feature, node.operator, Threshold(0.0))
        return with_children(node, parts)

    return print_formula(fold(formula, blank))


@dataclass(frozen=True, slots=True)
class Conflict:
    """A rule that both sides changed, each in its way; `None` where a side took it out."""

    name: str
    base: Rule | None
    mine: Rule | None
    theirs: Rule | None

    def __str__(self) -> str:
        sides = (("before", self.base), ("mine", self.mine), ("theirs", self.theirs))
        told = "; ".join(f"{name}: {print_rule(rule) if rule else 'no such rule'}" for name, rule in sides)
        return f"rule `{self.name}` was changed on both sides: {told}"


@dataclass(frozen=True, slots=True)
class Merged:
    """The rules of both sides; where they conflict, the rule of `mine` stands."""

    rules: tuple[Rule, ...]
    conflicts: tuple[Conflict, ...]


def merge(base: Sequence[Rule], mine: Sequence[Rule], theirs: Sequence[Rule]) -> Merged:
    """Both sides' changes to a common base, rule by rule; the order is that of `theirs`, what `mine` added last.

    A side that left a rule as it was yields to the other, and the same change on both sides is one change.
    """
    named = {one: {rule.name: rule for rule in rules} for one, rules in (("b", base), ("m", mine), ("t", theirs))}
    order = [rule.name for rule in theirs]
    order += [rule.name for rule in (*mine, *base) if rule.name not in named["t"]]
    rules: list[Rule] = []
    conflicts: list[Conflict] = []
    for name in dict.fromkeys(order):
        was, here, there = (_plain(named[side].get(name)) for side in ("b", "m", "t"))
        chosen = here if there in (was, here) else there
        if was not in (here, there) and here != there:
            conflicts.append(Conflict(name, was, here, there))
            chosen = here
        rules += [chosen] if chosen else []
    return Merged(tuple(rules), tuple(conflicts))


def _plain(rule: Rule | None) -> Rule | None:
    """A rule without its place in a file."""
    return replace(rule, position=None) if rule else None
