"""Rules between two inductions: what a person decided stands, and what leaves leaves with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nser.grounding.vocabulary import Vocabulary
from nser.induce.checks.support import REFUTED
from nser.induce.choose import Chosen, farewell
from nser.induce.evidence import Evidence
from nser.induce.naming import free_name
from nser.rules.checks import same
from nser.rules.logic import Budget
from nser.rules.parse import parse_rules
from nser.rules.printer import print_rule
from nser.rules.ruleset import PERSON, Retired, RuleSet, meaning, skeleton
from nser.rules.scope import check_names
from nser.rules.syntax import Rule
from nser.rules.verdict import Verdict, refusal

TAKEN_OUT = "R504"


def standing_rules(ruleset: RuleSet, vocabulary: Vocabulary) -> tuple[Rule, ...]:
    """The rules of a set that a person put in force and that this vocabulary can ground."""
    return tuple(
        rule
        for rule in ruleset.rules
        if (known := ruleset.provenance.get(rule.name))
        and known.proposer == PERSON
        and not check_names(rule, vocabulary.signature)
    )


def beside(
    proposals: Sequence[Rule], standing: Sequence[Rule], before: RuleSet, vocabulary: Vocabulary
) -> tuple[tuple[Rule, ...], list[Verdict]]:
    """The proposals that say other than a person's rules do, under names of their own, and refusals of the rest."""
    taken_out = {bare(one.text): one for one in before.retired if one.by == PERSON}
    if not standing and not taken_out:
        return tuple(proposals), []
    verdicts: list[Verdict] = []
    names = {rule.name for rule in standing}
    left: list[Rule] = []
    for rule in proposals:
        if out := taken_out.get(skeleton(rule)):
            sentence = f"a person took it out at step {out.step:,}"
            verdicts.append(
                refusal(rule, TAKEN_OUT, sentence, "put it back into the newest rule file to have it again")
            )
            continue
        name = rule.name
        if name in names:
            name = free_name(name, names | {other.name for other in proposals})
        names.add(name)
        left.append(replace(rule, name=name))
    doubles = same.check([*standing, *left], vocabulary.signature, Budget(), subsumed=False)
    theirs = {rule.name for rule in standing}
    refused = [verdict for verdict in doubles if verdict.rule not in theirs]
    out_names = {verdict.rule for verdict in refused}
    return tuple(rule for rule in left if rule.name not in out_names), [*verdicts, *refused]


def carried(found: RuleSet, current: RuleSet | None) -> RuleSet:
    """Rules found from an older set, with what a person has decided since: what is theirs, and what they took out.

    For an induction that took its time, while the set that it started from was edited.
    """
    if current is None:
        return found
    theirs = [r for r in current.rules if (k := current.provenance.get(r.name)) and k.proposer == PERSON]
    out = {bare(one.text) for one in current.retired if one.by == PERSON}
    names, said = {rule.name for rule in theirs}, {skeleton(rule) for rule in theirs}
    rest = [r for r in found.rules if r.name not in names and skeleton(r) not in (said | out)]
    known = {**found.provenance, **{name: current.provenance[name] for name in names}}
    kept = (*theirs, *rest)
    gone = [one for one in current.retired if one.by == PERSON]
    gone += [one for one in found.retired if one.by != PERSON and one.name not in names]
    provenance = {rule.name: known[rule.name] for rule in kept if rule.name in known}
    return replace(found, rules=kept, provenance=provenance, retired=tuple(gone))


def in_force(found: RuleSet, current: RuleSet | None) -> RuleSet | None:
    """What an induction puts in force: the rules it found, or what stays of the present ones. None: nothing changes.

    An induction that found no rule is no reason to do without those that are there, but for what data refuted.
    """
    if found.rules or current is None:
        return found if found.rules else None
    refuted = {one.name for one in found.retired if one.code == REFUTED}
    kept = tuple(rule for rule in current.rules if rule.name not in refuted)
    if len(kept) == len(current.rules):
        return None
    provenance = {rule.name: current.provenance[rule.name] for rule in kept if rule.name in current.provenance}
    gone = tuple(one for one in found.retired if one.code == REFUTED or one.by == PERSON)
    return RuleSet(kept, current.version + 1, provenance, retired=gone)


def retired(
    before: RuleSet, kept: Sequence[Rule], chosen: Chosen, evidence: Evidence, step: int
) -> tuple[Retired, ...]:
    """Why each rule of the set before is not in the new one, and every rule that a person ever took out."""
    still = {skeleton(rule) for rule in kept}
    told = {verdict.text: verdict for verdict in chosen.verdicts if not verdict.kept}
    found = [one for one in before.retired if one.by == PERSON]
    for rule in before.rules:
        if skeleton(rule) not in still:
            said = told.get(print_rule(rule)) or told.get(meaning(rule)) or farewell(rule, evidence, chosen)
            found.append(Retired(rule.name, meaning(rule), said.code, said.sentence, step=step))
    return tuple(found)


def bare(text: str) -> str:
    """What a retired rule says, its name, weight and learnable thresholds left out."""
    parsed = parse_rules(text).rules
    return skeleton(parsed[0]) if parsed else text
