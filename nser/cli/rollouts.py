"""`nser rollouts`: rules and replay for the rollouts of language models."""

from __future__ import annotations

import typer

from nser.cli import rollouts_inspect, rollouts_weigh

app = typer.Typer(
    no_args_is_help=True, help="Weigh rollouts of language models by rules, and look into stores of them."
)
app.command("weigh")(rollouts_weigh.command)
app.command("inspect")(rollouts_inspect.command)
