"""Check 5: rules that say what another one says: word for word, in other words, or as a special case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nser.rules.cubes import Bodies
from nser.rules.logic import Budget
from nser.rules.printer import print_formula, print_rule
from nser.rules.signature import Signature
from nser.rules.syntax import Rule
from nser.rules.verdict import Verdict, note, refusal

DUPLICATE, EQUIVALENT, SUBSUMED = "R501", "R502", "R503"


def check(
    rules: Sequence[Rule], signature: Signature | None, budget: Budget, *, subsumed: bool = True
) -> list[Verdict]:
    """A refusal for each rule that adds nothing; of rules that say the same the first stays.

    A special case is refused wherever its general rule stands, and noted if its weight is higher, for then it raises
    the score of what is better than the rest. `subsumed=False` leaves special cases to data, which
    may find that only the special case is good.
    """
    groups: dict[str, list[Rule]] = {}
    for rule in rules:
        groups.setdefault(print_formula(rule.head), []).append(rule)
    verdicts = {}
    for group in groups.values():
        for verdict in _among(group, signature, budget, subsumed):
            verdicts[verdict.rule] = verdict
    return [verdicts[rule.name] for rule in rules if rule.name in verdicts]


def meaning(rule: Rule) -> str:
    """What makes two rules the same: all but name and weight.

    >>> from nser.rules.parse import parse_rule
    >>> meaning(parse_rule("rule a [0.5]: forall t in step: p(t) -> good(t)"))
    'rule _: forall t in step: p(t) -> good(t)'
    """
    return print_rule(replace(rule, name="_", weight=1.0))


def _among(group: Sequence[Rule], signature: Signature | None, budget: Budget, subsumed: bool) -> list[Verdict]:
    """The refusals among rules of one head."""
    texts = [meaning(rule) for rule in group]
    first = {text: i for i, text in reversed(list(enumerate(texts)))}
    verdicts: dict[int, Verdict] = {}
    for i, rule in enumerate(group):
        if first[texts[i]] < i:
            other = group[first[texts[i]]].name
            verdicts[i] = refusal(rule, DUPLICATE, f"it says what `{other}` says, word for word", "keep one of the two")
    left = sorted(first.values())
    related = Bodies([group[i].body for i in left], signature, budget).related()
    refused: set[int] = set()
    for place, i in enumerate(left):
        for earlier in range(place):
            if earlier not in refused and related.implied(place, earlier) and related.implied(earlier, place):
                sentence = f"it says what `{group[left[earlier]].name}` says in other words"
                verdicts[i] = refusal(group[i], EQUIVALENT, sentence, "keep one of the two")
                refused.add(place)
                break
    for place, i in enumerate(left) if subsumed else ():
        general = [j for j in range(len(left)) if j != place and j not in refused and related.implied(j, place)]
        if place not in refused and general:
            widest = max(general, key=lambda j: related.implied_by[j].bit_count())
            sentence = f"it is a special case of `{group[left[widest]].name}`, which holds wherever it does"
            if group[i].weight > group[left[widest]].weight:
                verdicts[i] = note(
                    group[i], SUBSUMED, f"{sentence}; its weight is higher, so that it tells grades apart"
                )
            else:
                verdicts[i] = refusal(group[i], SUBSUMED, sentence, "leave it out, or narrow the general rule")
    return [verdicts[i] for i in sorted(verdicts)]
