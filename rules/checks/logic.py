"""Check 4: does a rule say anything: a body that always or never holds, a head that its own body states."""

from __future__ import annotations

from itertools import combinations

from nser.rules.logic import Budget, contradiction, implies, tautology
from nser.rules.printer import print_formula
from nser.rules.signature import Signature
from nser.rules.syntax import Not, Quantified, Rule, blames, praises
from nser.rules.verdict import Verdict, note, refusal
from nser.rules.walk import conjunction, conjuncts, nodes

TAUTOLOGY, CONTRADICTION, HEAD_IN_BODY, UNDECIDED = "R401", "R402", "R403", "R490"


def check(rule: Rule, signature: Signature | None, budget: Budget) -> list[Verdict]:
    """At most one refusal, or a note where a truth table could not hold the rule."""
    never = contradiction(rule.body, signature, budget)
    if never == "yes":
        sentence = f"its body can never hold{_clash(rule, signature, budget)}"
        return [refusal(rule, CONTRADICTION, sentence, "take out what excludes the rest")]
    always = tautology(rule.body, signature, budget)
    if always == "yes":
        way_out = "say in the body when it holds"
        return [refusal(rule, TAUTOLOGY, "its body holds at every step, expected a condition", way_out)]
    if not (praises(rule) or blames(rule)):
        for head, told in ((rule.head, "states"), (Not(rule.head), "denies")):
            if implies(rule.body, head, signature, budget) == "yes":
                sentence = f"its body {told} the head `{print_formula(rule.head)}` already, expected other evidence"
                return [refusal(rule, HEAD_IN_BODY, sentence, "take it out of the body")]
    unknown = signature is None and any(isinstance(node, Quantified) for node in nodes(rule.body))
    if "undecided" in (never, always) and not unknown:
        sentence = "whether its body can hold, or fail, is not decided: it asks about more than a truth table holds"
        return [note(rule, UNDECIDED, sentence)]
    return []


def _clash(rule: Rule, signature: Signature | None, budget: Budget) -> str:
    """Which two conditions exclude each other, where two are enough."""
    for one, other in combinations(conjuncts(rule.body), 2):
        if contradiction(conjunction((one, other)), signature, budget) == "yes":
            return f": `{print_formula(one)}` and `{print_formula(other)}` exclude each other"
    return ""
