"""Check 3: sorts, arities, constants and variables of a vocabulary."""

from __future__ import annotations

from nser.rules.printer import print_rule
from nser.rules.scope import check_names
from nser.rules.signature import Signature
from nser.rules.source import Source
from nser.rules.syntax import Rule
from nser.rules.verdict import Verdict, from_error


def check(rule: Rule, signature: Signature, source: Source | None) -> list[Verdict]:
    """A refusal for everything that is wrong with the names of a rule; none where it can be grounded."""
    problems = check_names(rule, signature, source)
    return [from_error(problem, print_rule(rule)) for problem in problems]
