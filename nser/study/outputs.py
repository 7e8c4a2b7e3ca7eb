"""Everything that is made from the rows of a study: tables, pictures and the page, each written anew at once.

table.md, table.json                      the figures
curves.png, curves.svg                    success over steps
areas.png, areas.svg                      areas with their intervals
index.html                                the page
evaluations.parquet                       the rows once more, where pyarrow is installed (extra `study`)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from nser.files import atomic_path, write_text
from nser.pages.figures import inline, picture
from nser.study.cells import Row, StudyDirectory, read_rows, read_settings
from nser.study.curves import Measure, collect
from nser.study.page import render
from nser.study.plot import draw_areas, draw_curves
from nser.study.sheets import markdown
from nser.study.table import Table, make_table

KINDS: tuple[Literal["svg", "png"], ...] = ("svg", "png")


def write_outputs(path: Path, baselines: Sequence[str] = (), measure: Measure | None = None) -> Table:
    """Make all outputs of the study in a directory, and return its table; arguments as in `make_table` and `collect`.

    Raises `NoStudyError` where there is none, `NoResultsError` where no cell is finished, and `BaselineError`.
    """
    settings, rows = read_settings(path), read_rows(path)
    expected = settings.conditions, settings.ratios, settings.seed_numbers
    results = collect(rows, *expected, measure=measure, lost=_lost(path, len(rows)))
    table = make_table(results, baselines)
    drawn = {
        "curves": (draw_curves(results), "Learning curves"),
        "areas": (draw_areas(results, table), "Areas under the curves"),
    }
    write_text(path / "table.json", json.dumps(table.as_dict(), indent=2, allow_nan=False) + "\n")
    write_text(path / "table.md", markdown(table))
    for name, (figure, title) in drawn.items():
        for kind in KINDS:
            with atomic_path(path / f"{name}.{kind}") as beside:
                beside.write_bytes(picture(figure, kind, title))
    inlined = {name: inline(figure, name, title) for name, (figure, title) in drawn.items()}
    write_text(path / "index.html", render(path, table, inlined))
    if find_spec("pyarrow") is not None:
        _write_parquet(path / "evaluations.parquet", rows)
    return table


def _lost(path: Path, rows: int) -> int:
    """How many lines of the rows' file are no whole row."""
    file = StudyDirectory(path).evaluations
    if not file.exists():
        return 0
    return sum(bool(line.strip()) for line in file.read_text(encoding="utf-8", errors="replace").splitlines()) - rows


def _write_parquet(path: Path, rows: Sequence[Row]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    with atomic_path(path) as beside:
        parquet.write_table(pa.Table.from_pylist(list(rows)), beside)
