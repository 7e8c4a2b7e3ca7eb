"""What changed between two rule sets, and three-way merges."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from nser.rules.diff import diff, merge
from nser.rules.parse import parse_rules
from nser.rules.syntax import Rule
from tests.rules.strategies import rules

IN = "forall t in step:"


def read(*lines: str) -> tuple[Rule, ...]:
    parsed = parse_rules("\n".join(f"rule {line} -> good(t)" for line in lines), strict=True)
    assert not parsed.problems
    return parsed.rules


def told(before: tuple[Rule, ...], after: tuple[Rule, ...]) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(change.kind, change.name, change.parts) for change in diff(before, after)]


def test_each_kind_of_change_is_told_apart() -> None:
    before = read(f"a [0.5]: {IN} p(t)", f"b: {IN} x(t) < ?3", f"c: {IN} q(t)", f"d: {IN} p(t)", f"e: {IN} r(t)")
    after = read(
        f"a [0.6]: {IN} p(t)", f"b: {IN} x(t) < ?4", f"c: {IN} q(t) & p(t)", f"new: {IN} s(t)", f"ee: {IN} r(t)"
    )
    assert told(before, after) == [
        ("changed", "a", ("weight",)),
        ("changed", "b", ("threshold",)),
        ("changed", "c", ("body",)),
        ("added", "new", ()),
        ("changed", "ee", ("name",)),
        ("removed", "d", ()),
    ]
    head = parse_rules(f"rule a [0.5]: {IN} p(t) -> ~good(t)").rules
    assert told(before[:1], head) == [("changed", "a", ("head",))]
    (change,) = diff(before[:1], after[:1])
    assert change.as_dict()["before"] == "rule a [0.5]: forall t in step: p(t) -> good(t)"


batches = st.lists(rules(levels=1), max_size=4, unique_by=lambda rule: rule.name).map(tuple)


@given(batches, batches)
@settings(max_examples=40)
def test_no_change_is_empty_and_every_rule_is_accounted_for(one: tuple[Rule, ...], other: tuple[Rule, ...]) -> None:
    assert diff(one, one) == ()
    changes = diff(one, other)
    gone = {change.before.name for change in changes if change.before and change.kind == "removed"}
    assert gone == {r.name for r in one} - {r.name for r in other} - {
        change.before.name for change in changes if "name" in change.parts and change.before
    }
    kept = {change.name for change in changes if change.kind != "removed"}
    assert {rule.name for rule in other if rule not in one} <= kept


@given(batches, batches)
@settings(max_examples=40)
def test_a_side_that_changed_nothing_yields(base: tuple[Rule, ...], other: tuple[Rule, ...]) -> None:
    for mine, theirs in ((other, base), (base, other), (other, other)):
        merged = merge(base, mine, theirs)
        assert set(merged.rules) == set(other)
        assert merged.conflicts == ()


def test_changes_of_both_sides_are_joined_and_conflicts_are_shown() -> None:
    base = read(f"a [0.5]: {IN} p(t)", f"b: {IN} q(t)", f"c: {IN} r(t)", f"d: {IN} s(t)")
    mine = read(f"a [0.9]: {IN} p(t)", f"b: {IN} q(t) & p(t)", f"c: {IN} r(t)", f"mine: {IN} p(t) & s(t)")
    theirs = read(f"a [0.5]: {IN} p(t)", f"b: {IN} q(t) & s(t)", f"d: {IN} s(t) & q(t)", f"theirs: {IN} s(t)")
    merged = merge(base, mine, theirs)
    assert [rule.name for rule in merged.rules] == ["a", "b", "theirs", "mine"]
    assert merged.rules[0].weight == 0.9
    assert merged.rules[1] == mine[1], "in a conflict mine stands"
    assert [conflict.name for conflict in merged.conflicts] == ["b", "d"]
    assert "no such rule" in str(merged.conflicts[1])
    assert "\n" not in str(merged.conflicts[0])
