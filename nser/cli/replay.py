"""`nser replay`: what a run replays, and why."""

from __future__ import annotations

import typer

from nser.cli import replay_inspect

app = typer.Typer(no_args_is_help=True, help="Look into what a run replays.")
app.command("inspect")(replay_inspect.command)


@app.callback()
def options() -> None:
    """Look into what a run replays."""
