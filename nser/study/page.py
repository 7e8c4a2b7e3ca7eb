"""The page of a study: one HTML file that needs no network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nser.pages.environment import environment
from nser.study.sheets import sections
from nser.study.table import Line, Table
from nser.study.wording import ratio_text, short


def render(path: Path, table: Table, pictures: Mapping[str, str]) -> str:
    """The page as text. `pictures` are the SVG elements `curves` and `areas`; `path` holds the `study.json`."""
    study = json.loads((path / "study.json").read_text(encoding="utf-8"))
    name = path.resolve().name
    return (
        environment("nser.study")
        .get_template("page.html")
        .render(
            title=f"{table.environment} · study {name}",
            name=name,
            table=table,
            settings=study["settings"],
            versions=study.get("versions", {}),
            command=study.get("command", ""),
            cards=_cards(table),
            pictures=pictures,
            sections=sections(table),
            cpu=_cpu(table),
        )
    )


def _cards(table: Table) -> list[tuple[str, str, str]]:
    """(figure, what it is, note) for the head of the page."""
    best = max(table.lines, key=lambda line: line.area.value)
    seeds = [line.seeds for line in table.lines]
    fewest = f"{min(seeds)}" if min(seeds) == max(seeds) else f"{min(seeds)}-{max(seeds)}"
    shown = sum(comparison.difference.verdict != "not shown" for comparison in table.comparisons)
    ratios = ", ".join(ratio_text(ratio) for ratio in table.ratios)
    cards = [
        (str(len({line.condition for line in table.lines})), "conditions", f"at update ratio {ratios}"),
        (fewest, "seeds each", f"{table.last_step:,} steps"),
        (short(best.area.value), "highest area", f"{best.condition} at {ratio_text(best.ratio)}"),
    ]
    if table.comparisons:
        cards.append((f"{shown} of {len(table.comparisons)}", "differences shown", "both intervals exclude 0"))
    return cards


def _cpu(table: Table) -> dict[str, Any]:
    """CPU time of each condition over all its seeds and ratios, and of all, in minutes."""
    minutes: dict[str, float] = {}
    for line in table.lines:
        minutes[line.condition] = minutes.get(line.condition, 0.0) + _minutes(line)
    told = {condition: f"{spent:.1f} min" for condition, spent in minutes.items()}
    return {"conditions": told, "total": sum(minutes.values())}


def _minutes(line: Line) -> float:
    return line.seeds * (line.cpu_seconds or 0.0) / 60
