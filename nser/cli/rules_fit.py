"""`nser rules fit`: thresholds and weights learnt from recorded outcomes, with a report of before and after."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from nser.cli.console import err, number, out, percent, print_json
from nser.cli.inputs import (
    AsJson,
    Data,
    Env,
    InputError,
    RuleFile,
    Vocab,
    load_data,
    readable_rules,
    required_vocabulary,
)
from nser.rules.store import Retired, RuleSet, save_rules

if TYPE_CHECKING:
    from nser.grounding.fit import Fit

RETIRED = "D701"


def command(
    file: RuleFile,
    data: Data,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the fitted rules here.")] = None,
    env: Env = None,
    vocab: Vocab = None,
    label: Annotated[
        str, typer.Option(help="Worth of a transition: progress, return, success, advantage, novelty.")
    ] = "progress",
    gamma: Annotated[float, typer.Option(min=0.01, max=1, help="Discount.")] = 0.99,
    as_json: AsJson = False,
) -> None:
    """Learn the `?` thresholds and the weights of rules; a rule that stops firing, or adds nothing, leaves.

    Exit code 1 where a rule leaves.
    """
    from dataclasses import asdict

    import torch

    from nser.grounding.fit import fit
    from nser.induce.labels import LABELS, OUTCOMES
    from nser.rules.ruleset import meaning

    if label not in LABELS:
        raise InputError(f"found --label {label}, expected one of {', '.join(LABELS)}")
    if output is not None and output.suffix != ".rules":
        raise InputError(f"found -o {output}, expected a name that ends in .rules")
    before = readable_rules(file)
    vocabulary = required_vocabulary(env, vocab, file, data)
    trajectories = load_data(data).only_complete()
    if not len(trajectories):
        raise InputError(f"found no complete episode in {data}, expected some: outcomes are told at their ends")
    outcomes = torch.from_numpy(OUTCOMES[label](trajectories, vocabulary, gamma)).float()
    found = fit(before.rules, vocabulary, trajectories.steps(), outcomes)
    if output is not None:
        texts = {rule.name: meaning(rule) for rule in before.rules}
        gone = tuple(Retired(one.rule, texts[one.rule], RETIRED, one.retired) for one in found.report if one.retired)
        kept = {rule.name for rule in found.rules}
        known = {name: told for name, told in before.provenance.items() if name in kept}
        save_rules(output, RuleSet(found.rules, before.version + 1, known, retired=gone))
    if as_json:
        print_json({"rules": [asdict(one) for one in found.report]})
    else:
        _print(found)
        if output is not None:
            err.print(f"written to {output}", soft_wrap=True)
    if any(one.retired for one in found.report):
        raise typer.Exit(1)


def _print(found: Fit) -> None:
    """A line of figures for each rule, its thresholds and why it leaves below."""
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("rule", style="bold", no_wrap=True)
    for title in ("weight", "support", "correlation"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in found.report:
        table.add_row(
            Text(one.rule, style="red" if one.retired else ""),
            f"{number(one.weight[0], 2)} → {number(one.weight[1], 2)}",
            f"{percent(one.support[0])} → {percent(one.support[1])}",
            f"{number(one.correlation[0], 2)} → {number(one.correlation[1], 2)}",
        )
    out.print(table)
    for one in found.report:
        for change in one.thresholds:
            unit = f" {change.unit}" if change.unit else ""
            moved = f"{change.feature} {change.operator} {change.before:g} → {change.after:g}{unit}"
            out.print(Text(f"{one.rule}: {moved}, seen {change.low:g} to {change.high:g}", style="dim"))
        if one.retired:
            out.print(Text(f"{one.rule} leaves: {one.retired}", style="red"))
