"""The page of a study: one HTML file that needs no network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from nser.study.sheets import NAME_COLUMNS, comparison_sheet, summary_sheet
from nser.study.table import Line, Table
from nser.study.wording import ratio_text, short


def render(path: Path, table: Table, pictures: Mapping[str, str]) -> str:
    """The page as text. `pictures` are the SVG elements `curves` and `areas`; `path` holds the `study.json`."""
    environment = Environment(
        loader=PackageLoader("nser.study", "."),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    study = json.loads((path / "study.json").read_text(encoding="utf-8"))
    return environment.get_template("page.html").render(
        name=path.resolve().name,
        table=table,
        settings=study["settings"],
        versions=study.get("versions", {}),
        command=study.get("command"),
        cards=_cards(table),
        pictures=pictures,
        sheets=[sheet for sheet in (summary_sheet(table), comparison_sheet(table)) if sheet.rows],
        name_columns=NAME_COLUMNS,
        cpu=_cpu(table),
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
    return {"conditions": minutes, "total": sum(minutes.values())}


def _minutes(line: Line) -> float:
    return line.seeds * (line.cpu_seconds or 0.0) / 60
