"""A rule set as a table for a terminal: a line of figures for each rule, and below it what the rule says."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from nser.cli.console import counted, number, percent
from nser.rules.printer import print_formula
from nser.rules.ruleset import UNPROVEN, Provenance, RuleSet, is_unproven
from nser.rules.syntax import MAX_NAME, Rule, blames, praises

# 80 columns in all: a plain terminal shows every figure, and the formula has the whole next line.
COLUMNS = (
    ("rule", MAX_NAME, "left"),
    ("weight", 6, "right"),
    ("support", 7, "right"),
    ("precis.", 7, "right"),
    ("lift", 7, "right"),
    ("by", 9, "left"),
    ("since", 6, "right"),
)


def rules_table(ruleset: RuleSet, order: str = "") -> RenderableType:
    """Weight, support, precision and lift of each rule, who proposed it and at which step, then its text.

    `order` says in which order they stand.
    """
    title = Text(f"{counted(len(ruleset.rules), 'rule')}, version {ruleset.version}", style="bold")
    title.append(f", {order}" if order else "", style="not bold dim")
    parts: list[RenderableType] = [title, _line([Text(name, style="dim") for name, _, _ in COLUMNS])]
    for rule in ruleset.rules:
        parts.append(_line(_figures(rule, ruleset.provenance.get(rule.name))))
        parts.append(Padding(_claim(rule), (0, 0, 0, 4)))
    for rule in ruleset.rules:
        if is_unproven(ruleset.provenance.get(rule.name)):
            told = f"unproven: {rule.name} counts for {UNPROVEN:.0%} of its weight in replay until data support it"
            parts.append(Text(told, style="yellow", overflow="ellipsis", no_wrap=True))
    for one in ruleset.retired:
        parts.append(Text(f"retired: {one.name}, {one.sentence}", style="dim", overflow="ellipsis", no_wrap=True))
    return Group(*parts)


def _claim(rule: Rule) -> Text:
    """Body and head, the head in the colour of what it claims."""
    colour = "green" if praises(rule) else "red" if blames(rule) else "cyan"
    return Text(f"{print_formula(rule.body)} -> ", style="dim").append(
        print_formula(rule.head), style=f"not dim {colour}"
    )


def _figures(rule: Rule, found: Provenance | None) -> list[Text]:
    lift = found.lift if found else None
    since = "–" if found is None or found.since is None else f"{found.since:,}"
    return [
        Text(rule.name, style="bold"),
        Text(number(rule.weight, 2)),
        Text(percent(found.support if found else None)),
        Text(percent(found.precision if found else None)),
        Text(number(lift), style="" if lift is None else "green" if lift > 0 else "red"),
        Text((found.proposer if found else None) or "–"),
        Text(since),
    ]


def _line(cells: list[Text]) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0))
    for _, width, justify in COLUMNS:
        table.add_column(width=width, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    table.add_row(*cells)
    return table
