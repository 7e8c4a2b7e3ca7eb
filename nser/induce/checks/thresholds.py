"""Check 9: does every threshold lie inside the values that were seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nser.grounding.comparison import observed_ranges
from nser.induce.evidence import Evidence
from nser.rules.printer import print_formula
from nser.rules.syntax import Atom, Comparison, Rule, Variable
from nser.rules.verdict import Verdict, refusal
from nser.rules.walk import nodes

OUTSIDE = "D901"
Seen = Mapping[Atom, tuple[float, float]]


def seen_ranges(rules: Sequence[Rule], evidence: Evidence) -> Seen:
    """Lowest and highest value of every feature; nothing is read where no rule compares."""
    compares = any(isinstance(node, Comparison) for rule in rules for node in nodes(rule.body))
    return observed_ranges(evidence.vocabulary, evidence.trajectories.steps()) if compares else {}


def check(rule: Rule, seen: Seen) -> Verdict | None:
    """A refusal for the first threshold that no value ever passed: its comparison is always or never true."""
    for node in nodes(rule.body):
        if isinstance(node, Comparison) and (ends := _range(node.feature, seen)):
            low, high = ends
            if not low <= node.threshold.value <= high:
                sentence = f"`{print_formula(node)}` compares with a number outside the {low:g} to {high:g} seen"
                return refusal(rule, OUTSIDE, sentence, f"choose a threshold between {low:g} and {high:g}")
    return None


def _range(feature: Atom, seen: Seen) -> tuple[float, float] | None:
    """The range of a feature at any step, over all constants that a variable may stand for."""
    ends = [
        found
        for atom, found in seen.items()
        if atom.predicate == feature.predicate
        and all(isinstance(a, Variable) or a == b for a, b in zip(feature.args[1:], atom.args[1:], strict=True))
    ]
    return (min(low for low, _ in ends), max(high for _, high in ends)) if ends else None
