"""Check 6, without data: rules of opposite heads whose bodies can, or must, hold at once."""

from __future__ import annotations

from collections.abc import Sequence

from nser.rules.cubes import Bodies
from nser.rules.logic import Budget
from nser.rules.printer import print_formula
from nser.rules.signature import Signature
from nser.rules.syntax import Not, Rule
from nser.rules.verdict import Verdict, note, refusal

CONFLICT, MAY_CONFLICT = "R601", "R602"


def check(rules: Sequence[Rule], signature: Signature | None, budget: Budget) -> list[Verdict]:
    """A refusal where one body holds wherever the other does, a note with an example where both may hold.

    The later of the two in the text is told, once: against the first rule that it conflicts with.
    """
    groups: dict[str, list[tuple[Rule, bool]]] = {}
    for rule in rules:
        claim, positive = claim_of(rule)
        groups.setdefault(claim, []).append((rule, positive))
    verdicts = {}
    for group in groups.values():
        if len({positive for _, positive in group}) == 2:
            for verdict in _among(group, signature, budget):
                verdicts[verdict.rule] = verdict
    return [verdicts[rule.name] for rule in rules if rule.name in verdicts]


def claim_of(rule: Rule) -> tuple[str, bool]:
    """What a head claims, and whether it says that it is so or that it is not."""
    head = rule.head
    return (print_formula(head.operand), False) if isinstance(head, Not) else (print_formula(head), True)


def _among(group: Sequence[tuple[Rule, bool]], signature: Signature | None, budget: Budget) -> list[Verdict]:
    bodies = Bodies([rule.body for rule, _ in group], signature, budget)
    related = bodies.related()
    verdicts: list[Verdict] = []
    refused: set[int] = set()
    for i, (rule, positive) in enumerate(group):
        found: Verdict | None = None
        for j, (other, sign) in enumerate(group[:i]):
            if sign == positive or j in refused:
                continue
            narrower, wider = related.implied(i, j), related.implied(j, i)
            if narrower or wider:
                sentence = f"`{other.name}` claims the opposite and holds {_where(narrower, wider)} this one does"
                found = refusal(rule, CONFLICT, sentence, "narrow one of the two bodies, or drop one")
                refused.add(i)
                break
            if found is None and (world := bodies.overlap(j, i)) is not None:
                example = ", ".join(f"{name} {value}" for name, value in world)
                sentence = f"`{other.name}` claims the opposite, and both hold at a step with {example}"
                found = note(rule, MAY_CONFLICT, sentence, "let data decide, or narrow one of the two bodies")
        verdicts += [found] if found else []
    return verdicts


def _where(narrower: bool, wider: bool) -> str:
    return "exactly where" if narrower and wider else "only where" if narrower else "wherever"
