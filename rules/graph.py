"""The graph of a rule set: which rules are special cases, which contradict each other, which share conditions.

Rules that prove each other in a circle are found as strongly connected components, with one circle of each: to list
every circle (`simple_cycles`) takes time exponential in the size of the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import networkx as nx

from nser.rules.checks.conflict import claim_of
from nser.rules.cubes import Bodies
from nser.rules.logic import Budget
from nser.rules.print_english import asks_for_action, condition
from nser.rules.signature import Signature
from nser.rules.syntax import GOOD, Rule
from nser.rules.walk import atoms, conjuncts

Kind = Literal["subsumes", "conflicts", "feeds", "shares"]
KINDS: tuple[Kind, ...] = ("subsumes", "conflicts", "feeds", "shares")
MOST = 200


@dataclass(frozen=True, slots=True)
class Edge:
    """`source` subsumes, conflicts with, feeds or shares conditions with `target`.

    subsumes: the target's body holds only where the source's does, and the heads agree
    conflicts: the heads are opposite and both bodies can hold at once; in the order of the file
    feeds: the source's head is a predicate that the target's body asks for; `words` are such predicates
    shares: `words` are conditions that both bodies ask for, as `conditions` tells them; in the order of the file
    """

    source: str
    target: str
    kind: Kind
    words: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {"source": self.source, "target": self.target, "kind": self.kind, "words": list(self.words)}


def conditions(rule: Rule) -> frozenset[str]:
    """The conjuncts of a body as phrases, but for its action and its thresholds.

    That two rules both ask for some action, as nearly all do, relates them no more than that both are rules.

    >>> from nser.rules.parse import parse_rule
    >>> text = "rule a: forall t in step: ~carrying(t) & dist(t, key) < ?1.5 & action_is(t, left) -> good(t)"
    >>> sorted(conditions(parse_rule(text)))
    ['dist(key) < …', 'not carrying']
    """
    return frozenset(condition(part) for part in conjuncts(rule.body) if not asks_for_action(part))


def edges(rules: Sequence[Rule], signature: Signature | None = None) -> tuple[Edge, ...]:
    """Every relation between two of the rules, of the first MOST rules."""
    rules = rules[:MOST]
    bodies = Bodies([rule.body for rule in rules], signature, Budget())
    related = bodies.related()
    claims = [claim_of(rule) for rule in rules]
    words = [frozenset(atom.predicate for atom in atoms(rule.body)) for rule in rules]
    asked = [conditions(rule) for rule in rules]
    found: list[Edge] = []
    for i, j in combinations(range(len(rules)), 2):
        one, other = rules[i].name, rules[j].name
        if claims[i] == claims[j]:
            found += [Edge(one, other, "subsumes")] if related.implied(i, j) else []
            found += [Edge(other, one, "subsumes")] if related.implied(j, i) else []
        elif claims[i][0] == claims[j][0] and bodies.overlap(i, j) is not None:
            found.append(Edge(one, other, "conflicts"))
        if shared := asked[i] & asked[j]:
            found.append(Edge(one, other, "shares", tuple(sorted(shared))))
    for i, source in enumerate(rules):
        heads = {atom.predicate for atom in atoms(source.head)} - {GOOD}
        for j, target in enumerate(rules):
            if i != j and heads & words[j]:
                found.append(Edge(source.name, target.name, "feeds", tuple(sorted(heads & words[j]))))
    return tuple(found)


def rule_graph(rules: Sequence[Rule], signature: Signature | None = None) -> nx.MultiDiGraph:
    """The same as a networkx graph: nodes are names of rules, each edge has `kind` and `words`."""
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(rule.name for rule in rules[:MOST])
    for edge in edges(rules, signature):
        graph.add_edge(edge.source, edge.target, key=edge.kind, kind=edge.kind, words=edge.words)
    return graph


def circles(graph: nx.MultiDiGraph) -> tuple[tuple[str, ...], ...]:
    """One circle of rules that prove each other for each group of such rules, by the edges that feed."""
    feeding = nx.DiGraph((u, v) for u, v, kind in graph.edges(data="kind") if kind == "feeds")
    return _one_each(feeding)


def twins(graph: nx.MultiDiGraph) -> tuple[tuple[str, ...], ...]:
    """The groups of rules that say the same in other words: each subsumes the others."""
    general = nx.DiGraph((u, v) for u, v, kind in graph.edges(data="kind") if kind == "subsumes")
    groups = [sorted(group) for group in nx.strongly_connected_components(general) if len(group) > 1]
    return tuple(tuple(group) for group in sorted(groups))


def _one_each(graph: nx.DiGraph) -> tuple[tuple[str, ...], ...]:
    groups = sorted(sorted(group) for group in nx.strongly_connected_components(graph) if len(group) > 1)
    found = []
    for group in groups:
        steps = nx.find_cycle(graph.subgraph(group), source=group[0])
        found.append(tuple(source for source, _ in steps))
    return tuple(found)


def mermaid(rules: Sequence[Rule], found: Sequence[Edge]) -> str:
    """The graph as mermaid text, which GitHub and many editors draw; names hold no character that needs quoting."""
    arrows = {"subsumes": "-->|subsumes|", "conflicts": "<-. conflicts .->", "feeds": "==>|feeds|", "shares": "---"}
    lines = ["flowchart LR"]
    # A name may be a word of mermaid's own (`end`), so that nodes have numbers and names are labels.
    numbers = {rule.name: f"r{i}" for i, rule in enumerate(rules[:MOST])}
    lines += [f'    {number}["{name}"]' for name, number in numbers.items()]
    lines += [f"    {numbers[edge.source]} {arrows[edge.kind]} {numbers[edge.target]}" for edge in found]
    return "\n".join(lines) + "\n"
