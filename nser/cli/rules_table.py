"""A rule set as a table for a terminal."""

from __future__ import annotations

from rich.table import Table

from nser.cli.console import number, percent
from nser.rules.printer import print_formula
from nser.rules.store import RuleSet


def rules_table(ruleset: RuleSet) -> Table:
    """One row a rule: what it says, and what the data says of it."""
    table = Table(title=f"rules, version {ruleset.version}", title_justify="left", row_styles=("", "dim"))
    table.add_column("rule", style="bold", overflow="fold")
    table.add_column("when", overflow="fold", ratio=1)
    for column in ("weight", "support", "precision", "lift", "95 %"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("by")
    table.add_column("since", justify="right")
    for rule in ruleset.rules:
        found = ruleset.provenance.get(rule.name)
        interval = "–"
        if found and found.lift_low is not None and found.lift_high is not None:
            interval = f"[{found.lift_low:.3f}, {found.lift_high:.3f}]"
        table.add_row(
            rule.name,
            f"{print_formula(rule.body)} -> {print_formula(rule.head)}",
            number(rule.weight, 2),
            percent(found.support if found else None),
            percent(found.precision if found else None),
            number(found.lift if found else None),
            interval,
            (found.proposer or "–") if found else "–",
            f"{found.since:,}" if found and found.since is not None else "–",
        )
    return table
