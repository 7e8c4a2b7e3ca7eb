"""`nser rules show`: the rules of a file with their figures."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.console import Console

from nser.cli.console import err, out, print_json
from nser.cli.inputs import InputError, RuleFile, rule_path
from nser.cli.rules_table import rules_table
from nser.rules.printer import print_rule
from nser.rules.store import RuleSet, load_rules

SORTS = ("file", "name", "weight", "support", "precision", "lift", "since")


def command(
    file: RuleFile,
    sort: Annotated[str, typer.Option(help="file, name, weight, support, precision, lift or since.")] = "file",
    only: Annotated[str | None, typer.Option("--filter", help="Rules with this in their name or text.")] = None,
    colour: Annotated[bool, typer.Option("--colour/--plain", help="Colours on a terminal.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rules as JSON.")] = False,
) -> None:
    """Show what a rule set says, and what the data says of it."""
    ruleset = arranged(load_rules(rule_path(file)), sort, only)
    if as_json:
        print_json(as_dict(ruleset))
    else:
        (out if colour else Console(no_color=True, highlight=False)).print(rules_table(ruleset, _order(sort)))
    for problem in ruleset.problems:
        err.print(f"warning: {problem}")
    if ruleset.problems:
        raise typer.Exit(1)


def arranged(ruleset: RuleSet, sort: str, only: str | None) -> RuleSet:
    """The rules that a filter leaves, in an order: figures the best first, rules without a figure last."""
    if sort not in SORTS:
        raise InputError(f"found --sort {sort}, expected one of {', '.join(SORTS)}")
    rules = [rule for rule in ruleset.rules if only is None or only.lower() in print_rule(rule).lower()]
    if sort == "name":
        rules.sort(key=lambda rule: rule.name)
    elif sort == "weight":
        rules.sort(key=lambda rule: -rule.weight)
    elif sort != "file":
        figures = {rule.name: getattr(ruleset.provenance.get(rule.name), sort, None) for rule in rules}
        rules.sort(key=lambda rule: (figures[rule.name] is None, -(figures[rule.name] or 0)))
    return replace(ruleset, rules=tuple(rules))


def _order(sort: str) -> str:
    """Told, because figures that happen to fall look like sorted ones that are not."""
    return "as in the file (--sort lift for the best first)" if sort == "file" else f"by {sort}"


def as_dict(ruleset: RuleSet) -> dict[str, Any]:
    """A rule set as plain values: text, weight and provenance of each rule."""
    return {
        "version": ruleset.version,
        "rules": [
            {
                "name": rule.name,
                "text": print_rule(rule),
                "weight": rule.weight,
                **(ruleset.provenance[rule.name].as_dict() if rule.name in ruleset.provenance else {}),
            }
            for rule in ruleset.rules
        ],
        "retired": [one.as_dict() for one in ruleset.retired],
        "problems": [str(problem) for problem in ruleset.problems],
    }
