"""Names of rules that no person named: the action, then what the body is about; and that a name means one rule."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from nser.rules.parse import parse_rules
from nser.rules.ruleset import RuleSet, outline, skeleton
from nser.rules.syntax import MAX_NAME, Atom, Comparison, Formula, Not, Rule, Variable


def rule_name(body: Sequence[Formula], action: str | None, taken: set[str]) -> str:
    """A name such as `pickup_facing_key`, cut to the language's length and made unique among `taken`."""
    words = [action] if action is not None else []
    for literal in body:
        words.append(_words(literal))
    stem = re.sub(r"_?\W+_?", "_", "_".join(words), flags=re.ASCII)[: MAX_NAME - 3].rstrip("_") or "always"
    name, count = stem, 1
    while name in taken:
        count += 1
        name = f"{stem}_{count}"
    taken.add(name)
    return name


def names_kept(proposals: Sequence[Rule], before: RuleSet) -> tuple[Rule, ...]:
    """The proposals under names that mean one rule: what was in force keeps its name, and lends it to no other.

    Nor does a rule take the name of one that has just retired, unless it differs from it in thresholds alone.
    """
    gone = [parsed[0] for one in before.retired if (parsed := parse_rules(one.text).rules)]
    owners = {rule.name: outline(rule) for rule in (*gone, *before.rules)}
    said = [skeleton(rule) for rule in proposals]
    known = {skeleton(rule): rule.name for rule in before.rules}
    reserved = {known[one] for one in said if one in known}
    taken = {*owners, *(rule.name for rule in proposals)}
    used: set[str] = set()
    found = []
    for rule, one in zip(proposals, said, strict=True):
        name = known.get(one, rule.name)
        lent = name in reserved and one not in known
        if lent or name in used or owners.get(name, outline(rule)) != outline(rule):
            name = free_name(name, taken)
        used.add(name)
        taken.add(name)
        found.append(replace(rule, name=name))
    return tuple(found)


def free_name(name: str, taken: set[str]) -> str:
    """The name with the first number from 2 on that makes it new among `taken`."""
    number = 2
    while (found := f"{name[: MAX_NAME - 4]}_{number}") in taken:
        number += 1
    return found


def _words(literal: Formula) -> str:
    match literal:
        case Not(operand):
            return f"not_{_words(operand)}"
        case Comparison(feature, operator, _):
            return f"{_words(feature)}_{'high' if operator.startswith('>') else 'low'}"
        case Atom(predicate, args):
            return "_".join([predicate, *(term.name for term in args if not isinstance(term, Variable))])
        case _:
            return type(literal).__name__.lower()
