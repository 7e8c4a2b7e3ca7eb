"""Check 6, with data: a rule that fires where a better-founded one claims the opposite, and a transition to show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nser.induce.checks.firing import Mask
from nser.induce.checks.repair import witnesses
from nser.induce.evidence import Evidence
from nser.rules.checks.conflict import claim_of
from nser.rules.syntax import Rule
from nser.rules.verdict import Verdict, note, refusal

CONTRADICTED, OVERLAPS = "D601", "D602"


def check(rule: Rule, fires: Mask, kept: Sequence[tuple[Rule, Mask]], evidence: Evidence) -> Verdict | None:
    """What speaks against a rule among the better ones of the opposite head.

    A refusal where most of its firings are theirs too, a note where some are; either with up to three transitions.
    """
    claim, positive = claim_of(rule)
    for other, others in kept:
        if claim_of(other) != (claim, not positive):
            continue
        both = fires & others
        if not both.any():
            continue
        count, firings = int(both.sum()), int(fires.sum())
        where = f"{count:,} of its {firings:,} firings"
        sentence = f"`{other.name}`, which is better founded, claims the opposite on {where}"
        told = refusal if 2 * count > firings else note
        verdict = told(rule, CONTRADICTED if 2 * count > firings else OVERLAPS, sentence, "narrow one of the two")
        return replace(verdict, witnesses=witnesses(rule, both, evidence))
    return None
