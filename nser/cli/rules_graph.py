"""`nser rules graph`: how the rules of a set hang together, as a picture or as mermaid text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nser.cli.console import counted, err, out, print_json
from nser.cli.inputs import AsJson, Env, InputError, RuleFile, Vocab, readable_rules, vocabulary_for
from nser.files import write_text

PAIRS = {
    "subsumes": ("special case", "special cases"),
    "conflicts": ("contradiction", "contradictions"),
    "feeds": ("rule asks for what another says", "rules ask for what others say"),
    "shares": ("pair shares conditions", "pairs share conditions"),
}
SUFFIXES = (".svg", ".png", ".mmd")


def command(
    file: RuleFile,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="A .svg, .png or .mmd; text without.")] = None,
    env: Env = None,
    vocab: Vocab = None,
    shared: Annotated[bool, typer.Option(help="Draw which rules ask for the same predicates.")] = True,
    as_json: AsJson = False,
) -> None:
    """Draw special cases, contradictions and shared conditions; tell circles of rules that prove each other."""
    from nser.rules.graph import MOST, circles, edges, mermaid, rule_graph, twins

    if output is not None and output.suffix not in SUFFIXES:
        raise InputError(f"found -o {output}, expected a name that ends in {', '.join(SUFFIXES)}")
    ruleset = readable_rules(file)
    vocabulary = vocabulary_for(env, vocab, file)
    signature = vocabulary.signature if vocabulary else None
    rules = ruleset.rules[:MOST]
    if len(ruleset.rules) > MOST:
        err.print(f"note: the first {MOST} of {len(ruleset.rules)} rules are drawn")
    found = [edge for edge in edges(rules, signature) if shared or edge.kind != "shares"]
    graph = rule_graph(rules, signature)
    for circle in circles(graph):
        err.print(f"note: rules that prove each other: {' → '.join((*circle, circle[0]))}", markup=False)
    for group in twins(graph):
        err.print(f"note: rules that say the same: {', '.join(group)}", markup=False)
    if output is None and not as_json:
        print(mermaid(rules, found), end="")
    elif output is not None:
        if output.suffix == ".mmd":
            write_text(output, mermaid(rules, found))
        else:
            from nser.report.rule_picture import draw

            draw(output, rules, found)
    if as_json:
        print_json({"rules": [rule.name for rule in rules], "edges": [edge.as_dict() for edge in found]})
    elif output is not None:
        kinds = {edge.kind for edge in found}
        told = ((sum(edge.kind == kind for edge in found), kind) for kind in sorted(kinds))
        counts = ", ".join(counted(number, PAIRS[kind][0], PAIRS[kind][1]) for number, kind in told)
        out.print(f"{counted(len(rules), 'rule')}, {counts or 'no relations'} · {output}", soft_wrap=True)
