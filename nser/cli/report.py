"""`nser report`: one HTML page of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nser.cli.console import out


def command(run: Annotated[Path, typer.Argument(help="Folder of a run.")]) -> None:
    """Write the page of a run: curve, rules, and what was replayed."""
    from nser.report.page import write_report
    from nser.runs.directory import RunDirectory

    out.print(str(write_report(RunDirectory.open(run))), soft_wrap=True)
