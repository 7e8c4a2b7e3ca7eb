"""`nser rules diff` and `nser rules merge`: two rule sets compared, and put together over a common base."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from nser.cli.console import err, out, print_json
from nser.cli.inputs import AsJson, RuleFile, rule_path
from nser.rules.diff import Change, diff, merge
from nser.rules.printer import print_rule
from nser.rules.store import RuleSet, load_rules, save_rules

SIGNS = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}


def command(
    before: RuleFile,
    after: Annotated[Path, typer.Argument(help="The other file or run.")],
    as_json: AsJson = False,
) -> None:
    """Say which rules were added, removed or changed, and in what."""
    one, other = load_rules(rule_path(before)), load_rules(rule_path(after))
    changes = diff(one.rules, other.rules)
    _warn(one, other)
    if as_json:
        print_json({"from": one.version, "to": other.version, "changes": [change.as_dict() for change in changes]})
        return
    for change in changes:
        _print(change)
    left = {retired.name: retired for retired in other.retired}
    for name in (change.name for change in changes if change.kind == "removed" and change.name in left):
        out.print(Text(f"  {name} left at step {left[name].step:,}: {left[name].sentence}", style="dim"))
    counts = {kind: sum(change.kind == kind for change in changes) for kind in SIGNS}
    out.print(", ".join(f"{count} {kind}" for kind, count in counts.items()), style="bold")


def merge_command(
    base: Annotated[Path, typer.Argument(help="The file that both sides started from.")],
    mine: Annotated[Path, typer.Argument(help="One side; where both changed a rule, this one stands.")],
    theirs: Annotated[Path, typer.Argument(help="The other side.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the merged rules here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Put two changed copies of a rule file together; exit code 1 where both changed a rule, each in its way."""
    sides = [load_rules(rule_path(path)) for path in (base, mine, theirs)]
    _warn(*sides)
    merged = merge(*(side.rules for side in sides))
    if output is not None:
        known = {**sides[2].provenance, **sides[1].provenance}
        save_rules(output, RuleSet(merged.rules, max(side.version for side in sides) + 1, known))
    if as_json:
        conflicts = [str(conflict) for conflict in merged.conflicts]
        print_json({"rules": [print_rule(rule) for rule in merged.rules], "conflicts": conflicts})
    else:
        for rule in merged.rules if output is None else ():
            out.print(Text(print_rule(rule)), soft_wrap=True)
        for conflict in merged.conflicts:
            err.print(Text(f"conflict: {conflict}", style="red"))
    if merged.conflicts:
        raise typer.Exit(1)


def _print(change: Change) -> None:
    sign, colour = SIGNS[change.kind]
    parts = f"  ({', '.join(change.parts)})" if change.parts else ""
    out.print(Text(f"{sign} {change.name}", style=f"bold {colour}").append(parts, style="dim"))
    for rule, mark in ((change.before, "-"), (change.after, "+")):
        if rule is not None:
            told = Text(f"    {mark} {print_rule(rule)}", style="red" if mark == "-" else "green")
            out.print(told, soft_wrap=True)  # a rule that is copied from here stays whole


def _warn(*sides: RuleSet) -> None:
    for side in sides:
        for problem in side.problems:
            err.print(f"warning: {problem}", markup=False)
