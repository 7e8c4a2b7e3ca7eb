"""`nser rollouts inspect`: what a saved store holds, how it was replayed, and what is probable now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from nser.cli.console import number, out, percent, print_json
from nser.cli.inputs import AsJson

if TYPE_CHECKING:
    from nser.rollouts.metrics import StoreMetrics
    from nser.rollouts.store import RolloutStore

FACTORS = ("signal", "age", "decay", "relevance", "rule_factor", "probability", "rule_share")


def command(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="A store that `RolloutStore.save` wrote.")],
    most: Annotated[int, typer.Option("--items", min=1, help="Rollouts shown at either end.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Ages and reuse, admission of each task, the share owed to rules, and the most and least probable rollouts."""
    from nser.rollouts.store import RolloutStore

    loaded = RolloutStore.load(store)
    metrics = loaded.metrics()
    rows = probable(loaded)
    if as_json:
        print_json({**metrics.to_dict(), "most_probable": rows[:most], "least_probable": rows[::-1][:most]})
        return
    _print_metrics(metrics)
    _print_tasks(metrics)
    if rows:
        _print_rows("most probable", rows[:most])
        _print_rows("least probable", rows[::-1][:most])


def probable(store: RolloutStore) -> list[dict[str, Any]]:
    """Every item with the factors of its probability, the most probable first; equal ones by slot."""
    slots = store.live_slots()
    if not len(slots):
        return []
    rows = []
    for row, rollout in zip(store.explain(slots).rows(), store.rollouts(slots), strict=True):
        told = {"task": rollout.task, "group": rollout.group, "reward": rollout.reward, "uses": rollout.uses}
        rows.append({"slot": row["slots"], **told, **{name: row[name] for name in FACTORS}})
    return sorted(rows, key=lambda row: (-row["probability"], row["slot"]))


def _print_metrics(metrics: StoreMetrics) -> None:
    out.print(
        f"[bold]{metrics.items:,} of {metrics.capacity:,} items[/] at version {metrics.version:,}, "
        f"{metrics.bytes / 2**20:.1f} MiB",
        soft_wrap=True,
    )
    facts = {
        "drawn": f"{metrics.drawn:,}, age mean {number(metrics.age_mean, 1)}, max {metrics.age_max}",
        "ages drawn": _ages(metrics.age_counts) or "–",
        "uses": f"mean {number(metrics.uses_mean, 2)}, max {metrics.uses_max}",
        "gone": f"{metrics.gone:,}, {percent(metrics.gone_unused)} never replayed",
        "owed to rules": f"{percent(metrics.rule_share)} of draws, {percent(metrics.scored)} of items scored",
        "draws as varied as": f"{metrics.effective_size:,.0f} equal items",
    }
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, told in facts.items():
        table.add_row(Text(name, style="dim"), Text(told))
    out.print(table)


def _ages(counts: tuple[int, ...]) -> str:
    """`0: 3, 1: 5, 2-3: 8`, the bins that hold something."""
    names = ["0", "1", *(f"{2**place}-{2 ** (place + 1) - 1}" for place in range(1, len(counts)))]
    return ", ".join(f"{name}: {count:,}" for name, count in zip(names, counts, strict=False) if count)


def _print_tasks(metrics: StoreMetrics) -> None:
    if not metrics.tasks:
        return
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("task", style="bold", no_wrap=True)
    for title in ("admitted", "rate"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("refused")
    for name, found in metrics.tasks.items():
        refused = ", ".join(f"{reason} {count:,}" for reason, count in found.refused.items())
        table.add_row(Text(name or "–"), f"{found.admitted:,}", percent(found.rate), Text(refused or "–"))
    out.print(table)


def _print_rows(title: str, rows: list[dict[str, Any]]) -> None:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim", title=title, title_justify="left")
    table.add_column("slot", justify="right")
    table.add_column("task", no_wrap=True, max_width=16)
    for name in ("reward", "uses", *FACTORS[:-2], "prob.", "owed"):
        table.add_column(name.replace("_", " "), justify="right")
    for row in rows:
        figures = [number(row[name]) for name in ("signal", "age", "decay", "relevance", "rule_factor")]
        figures[1] = f"{row['age']:g}"
        ends = (f"{row['probability']:.2e}", percent(row["rule_share"]))
        table.add_row(
            f"{row['slot']}", Text(row["task"] or "–"), number(row["reward"], 2), f"{row['uses']}", *figures, *ends
        )
    out.print(table)
