"""Check 10: what a writer needs to mend a rule: transitions that show what is wrong with it.

They are taken from the episodes that proposers may see; held-out ones stay unseen.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nser.grounding.steps import Steps
from nser.grounding.vocabulary import written
from nser.induce.checks.firing import Mask, claimed
from nser.induce.evidence import Evidence
from nser.rules.syntax import GOOD, Atom, Comparison, Constant, Rule, Variable
from nser.rules.verdict import Verdict, Witness
from nser.rules.walk import nodes

MOST = 3


def with_witnesses(verdict: Verdict, rule: Rule, fires: Mask, evidence: Evidence) -> Verdict:
    """A refusal by data with the firings that speak most against the rule; one that has some keeps them."""
    if verdict.kept or verdict.witnesses or not verdict.code.startswith("D"):
        return verdict
    against = fires & (claimed(rule, evidence.outcomes) <= 0)
    return replace(verdict, witnesses=witnesses(rule, against if against.any() else fires, evidence))


def witnesses(rule: Rule, rows: Mask, evidence: Evidence) -> tuple[Witness, ...]:
    """Up to three shown transitions of different episodes among some rows, those worst for the rule first."""
    found = np.flatnonzero(rows & ~evidence.held)
    worst = found[np.argsort(claimed(rule, evidence.outcomes)[found], kind="stable")]
    numbers = evidence.trajectories.numbers
    _, firsts = np.unique(numbers[worst], return_index=True)
    return tuple(_witness(rule, int(row), evidence) for row in worst[np.sort(firsts)[:MOST]])


def _witness(rule: Rule, row: int, evidence: Evidence) -> Witness:
    trajectories = evidence.trajectories
    episode = int(trajectories.numbers[row])
    step = row - int(trajectories.starts[episode])
    return Witness(row, episode, step, float(evidence.outcomes[row]), _facts(rule, row, evidence))


def _facts(rule: Rule, row: int, evidence: Evidence) -> tuple[tuple[str, float], ...]:
    """What the present step says of every ground atom and feature that the body asks for, and the action."""
    steps: Steps = evidence.trajectories.steps()[row : row + 1]
    vocabulary = evidence.vocabulary
    facts: dict[str, float] = {}
    for node in nodes(rule.body):
        atom = node.feature if isinstance(node, Comparison) else node
        if not isinstance(atom, Atom) or atom.predicate == GOOD:
            continue
        if not all(isinstance(term, Constant) for term in atom.args[1:]):
            continue
        still = Atom(atom.predicate, (Variable("t"), *atom.args[1:]))
        read = vocabulary.numbers if isinstance(node, Comparison) else vocabulary.degrees
        facts[written(still)] = round(float(read(still, steps)[0]), 6)
    if vocabulary.actions:
        facts[f"action {vocabulary.actions[int(steps.actions.reshape(-1)[0])]}"] = 1.0
    return tuple(facts.items())
