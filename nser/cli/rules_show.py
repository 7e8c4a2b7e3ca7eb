"""`nser rules show`: the rules of a file with their figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from nser.cli.console import err, out, print_json
from nser.cli.rule_files import read_rules
from nser.cli.rules_table import rules_table
from nser.rules.printer import print_rule
from nser.rules.store import RuleSet


def command(
    file: Annotated[Path, typer.Argument(help="A .rules file, or a run: its newest rules.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the rules as JSON.")] = False,
) -> None:
    """Show what a rule set says, and what the data says of it."""
    ruleset = read_rules(file)
    if as_json:
        print_json(as_dict(ruleset))
    else:
        out.print(rules_table(ruleset))
    for problem in ruleset.problems:
        err.print(f"warning: {problem}")
    if ruleset.problems:
        raise typer.Exit(1)


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
        "problems": [str(problem) for problem in ruleset.problems],
    }
