"""The graph of rules: relations, circles, twins, and mermaid text."""

from __future__ import annotations

import networkx as nx
import pytest

from nser.rules.graph import MOST, circles, edges, mermaid, rule_graph, twins
from nser.rules.parse import parse_rules

IN = "forall t in step:"


def read(text: str) -> tuple:
    parsed = parse_rules(text, strict=True)
    assert not parsed.problems
    return parsed.rules


def test_every_relation_is_found() -> None:
    rules = read(
        f"rule wide: {IN} p(t) -> good(t)\nrule narrow: {IN} p(t) & q(t) -> good(t)\n"
        f"rule against: {IN} q(t) -> ~good(t)\nrule makes: {IN} r(t) -> q(t)\n"
    )
    found = {(edge.kind, edge.source, edge.target, edge.words) for edge in edges(rules)}
    assert found == {
        ("subsumes", "wide", "narrow", ()),
        ("shares", "wide", "narrow", ("p",)),
        ("conflicts", "wide", "against", ()),
        ("conflicts", "narrow", "against", ()),
        ("shares", "narrow", "against", ("q",)),
        ("feeds", "makes", "narrow", ("q",)),
        ("feeds", "makes", "against", ("q",)),
    }
    graph = rule_graph(rules)
    assert set(graph.nodes) == {"wide", "narrow", "against", "makes"}
    assert graph.number_of_edges() == len(found)
    assert circles(graph) == ()


def test_rules_share_conditions_not_actions_signs_or_thresholds() -> None:
    rules = read(
        f"rule left: {IN} ~held(t) & near(t, door) & dist(t, key) < ?1.5 & action_is(t, left) -> good(t)\n"
        f"rule right: forall s in step: ~held(s) & near(s, key) & dist(s, key) < 3 & action_is(s, right) -> good(s)\n"
        f"rule drop: {IN} held(t) & dist(t, key) > ?1.5 & ~action_is(t, left) -> good(t)\n"
        f"rule again: {IN} prev(action_is(t, left)) & action_is(t, left) -> good(t)\n"
        f"rule back: {IN} prev(action_is(t, left)) & action_is(t, right) -> good(t)\n"
    )
    shared = {(edge.source, edge.target): edge.words for edge in edges(rules) if edge.kind == "shares"}
    assert shared == {
        ("left", "right"): ("dist(key) < …", "not held"),
        ("again", "back"): ("at the step before action_is(left)",),
    }


def test_circles_and_twins_are_groups() -> None:
    rules = read(
        f"rule a: {IN} p(t) -> q(t)\nrule b: {IN} q(t) & s(t) -> r(t)\nrule c: {IN} r(t) -> p(t)\n"
        f"rule one: {IN} ~(x(t) | y(t)) -> good(t)\nrule other: {IN} ~x(t) & ~y(t) -> good(t)\n"
    )
    graph = rule_graph(rules)
    (circle,) = circles(graph)
    assert sorted(circle) == ["a", "b", "c"]
    feeding = {(u, v) for u, v, kind in graph.edges(data="kind") if kind == "feeds"}
    assert all(pair in feeding for pair in zip(circle, (*circle[1:], circle[0]), strict=True))
    assert twins(graph) == (("one", "other"),)


def test_a_dense_graph_has_one_circle_told_not_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """networkx #8737: simple_cycles is exponential; a complete graph of 30 rules has 10^31 circles."""
    monkeypatch.setattr(nx, "simple_cycles", None)
    count = 30
    lines = [
        f"rule r{i}: {IN} {' & '.join(f'p{j}(t)' for j in range(count) if j != i)} -> p{i}(t)" for i in range(count)
    ]
    (circle,) = circles(rule_graph(read("\n".join(lines))))
    assert 2 <= len(circle) <= count


def test_mermaid_names_are_labels_and_nothing_breaks_out() -> None:
    rules = read(f"rule end: {IN} p(t) -> good(t)\nrule graph: {IN} p(t) & q(t) -> good(t)\n")
    text = mermaid(rules, edges(rules))
    assert text.splitlines()[:3] == ["flowchart LR", '    r0["end"]', '    r1["graph"]']
    assert "    r0 -->|subsumes| r1" in text


def test_only_the_first_rules_of_a_great_many_are_related() -> None:
    rules = read("\n".join(f"rule r{i}: {IN} p{i}(t) -> good(t)" for i in range(MOST + 50)))
    assert len(rule_graph(rules)) == MOST
    assert edges(rules) == ()
