"""`nser replay inspect`: what a run replays, and which rules and items it owes that to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from nser.cli.console import counted, number, out, percent, print_json
from nser.cli.inputs import AsJson

if TYPE_CHECKING:
    from nser.runs.inspect import Inspection, Item


def command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    items: Annotated[int, typer.Option(min=1, help="Items shown.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Say what is drawn: the share owed to each rule, ages, variety, and the likeliest items with their factors.

    `nser rules explain RUN --slot SLOT` tells all of one item.
    """
    from nser.runs.directory import RunDirectory
    from nser.runs.inspect import inspect

    found = inspect(RunDirectory.open(run), items)
    if as_json:
        print_json(found.as_dict())
        return
    _print_whole(found)
    _print_rules(found)
    _print_items("drawn most often (age in gradient steps)", found.likeliest)


def _print_whole(found: Inspection) -> None:
    stats = found.stats
    out.print(f"[bold]{stats.eligible:,} of {stats.capacity:,} transitions[/]")
    facts = {
        "owed to rules": f"{percent(stats.rule_share)} of draws; {percent(stats.scored)} of items scored, "
        f"{percent(stats.related)} above 0",
        "draws as varied as": f"{stats.effective_size:,.0f} equal items; half of them show {found.half:,} of "
        f"{counted(found.episodes, 'episode')}",
        "a batch shows": "–" if found.batch_episodes is None else counted(found.batch_episodes, "different episode"),
    }
    for ages in found.ages:
        name = f"{ages.low:,} to {ages.high - 1:,} gradient steps old"
        facts[name] = f"{percent(ages.stored)} of items, {percent(ages.drawn)} of draws"
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, told in facts.items():
        table.add_row(Text(name, style="dim"), Text(told))
    out.print(table)


def _print_rules(found: Inspection) -> None:
    if not found.owed:
        return
    table = _table("owed to each rule")
    table.add_column("rule", style="bold", no_wrap=True)
    table.add_column("draws", justify="right")
    table.add_column("items", justify="right")
    for name, share in sorted(found.owed.items(), key=lambda one: -one[1]):
        table.add_row(Text(name), percent(share), percent(found.firing.get(name)))
    out.print(table)


def _print_items(title: str, items: tuple[Item, ...]) -> None:
    table = _table(title)
    for name in ("slot", "× uniform", "signal", "age", "relev.", "owed"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("action", no_wrap=True, max_width=10)
    table.add_column("rule", no_wrap=True, max_width=24)
    for item in items:
        table.add_row(
            f"{item.slot}",
            number(item.times, 2),
            f"{item.signal:.3g}",
            f"{item.age:,}",
            number(item.relevance, 2),
            percent(item.rule_share),
            Text(item.action),
            Text(item.rule or "–"),
        )
    out.print(table)


def _table(title: str) -> Table:
    return Table(box=None, padding=(0, 1, 0, 0), header_style="dim", title=title, title_justify="left")
