"""Names of induced rules: within a run a name means one rule."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from nser.induce.loop import induce
from nser.induce.naming import free_name, names_kept
from nser.induce.settings import InductionSettings
from nser.induce.symbolic import SymbolicProposer
from nser.rules.parse import parse_rule
from nser.rules.ruleset import Retired, RuleSet, meaning, outline, skeleton
from nser.rules.syntax import MAX_NAME, Rule
from tests.induce.planted import CHAIN, play

SAID = [
    parse_rule(f"rule x: forall t in step: {body} -> good(t)")
    for body in ("p(t)", "q(t)", "p(t) & q(t)", "x(t) > 1", "x(t) > 2", "x(t) > ?2", "~p(t)")
]
NAMES = ("a", "b", "a_2", "a" * MAX_NAME)
rules = st.builds(lambda rule, name: replace(rule, name=name), st.sampled_from(SAID), st.sampled_from(NAMES))


def distinct(rules: st.SearchStrategy[Rule]) -> st.SearchStrategy[list[Rule]]:
    return st.lists(rules, max_size=4, unique_by=(lambda rule: rule.name, skeleton))


@given(proposals=distinct(rules), before=distinct(rules), gone=distinct(rules))
def test_a_name_means_one_rule(proposals: list[Rule], before: list[Rule], gone: list[Rule]) -> None:
    retired = tuple(Retired(rule.name, meaning(rule), "D701", "it fires too seldom") for rule in gone)
    found = names_kept(proposals, RuleSet(tuple(before), 1, retired=retired))
    assert [skeleton(rule) for rule in found] == [skeleton(rule) for rule in proposals]
    assert len({rule.name for rule in found}) == len(found)
    assert all(len(rule.name) <= MAX_NAME for rule in found)
    kept = {skeleton(rule): rule.name for rule in before}
    in_force = {rule.name: outline(rule) for rule in before}
    left = {rule.name: outline(rule) for rule in gone if rule.name not in in_force}
    for rule in found:
        if skeleton(rule) in kept:
            assert rule.name == kept[skeleton(rule)]
        else:
            assert (in_force | left).get(rule.name, outline(rule)) == outline(rule)


@given(proposals=distinct(rules))
def test_without_rules_before_names_stay(proposals: list[Rule]) -> None:
    assert list(names_kept(proposals, RuleSet())) == proposals


def test_a_free_name_is_no_longer_than_the_language_allows() -> None:
    taken = {"a" * MAX_NAME, f"{'a' * (MAX_NAME - 4)}_2"}
    assert free_name("a" * MAX_NAME, taken) == f"{'a' * (MAX_NAME - 4)}_3"


def test_an_induction_lends_no_rule_the_name_of_another() -> None:
    first = induce(play(200, 0), CHAIN, SymbolicProposer(), InductionSettings()).ruleset
    one, other = first.rules[0].name, first.rules[1].name
    swapped = {one: other, other: one}
    before = replace(
        first,
        rules=tuple(replace(rule, name=swapped.get(rule.name, rule.name)) for rule in first.rules),
        provenance={swapped.get(name, name): known for name, known in first.provenance.items()},
    )
    again = induce(play(200, 0), CHAIN, SymbolicProposer(), InductionSettings(), previous=before)
    assert {rule.name: skeleton(rule) for rule in again.ruleset.rules} == {
        rule.name: skeleton(rule) for rule in before.rules
    }
    assert {verdict.rule for verdict in again.verdicts if verdict.kept} == {rule.name for rule in before.rules}
    assert not again.ruleset.retired
