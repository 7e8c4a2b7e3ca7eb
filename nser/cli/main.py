"""The command `nser`: one app, and one place where errors become a line and an exit code."""

from __future__ import annotations

import os
import sys

import typer

from nser import __version__
from nser.cli import (
    induce,
    replay,
    report,
    rollouts,
    rules_check,
    rules_diff,
    rules_edit,
    rules_explain,
    rules_fit,
    rules_graph,
    rules_score,
    rules_show,
    rules_simplify,
    study,
    train,
    vocab,
)
from nser.errors import NserError

INTERRUPTED = 130  # what shells give a command that Ctrl-C ended

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Experience replay that reasons: rules read from an agent's own episodes decide what it replays.",
)
rules = typer.Typer(no_args_is_help=True, help="Read, check and question rule files.")
app.add_typer(rules, name="rules")
app.add_typer(vocab.app, name="vocab")
app.add_typer(replay.app, name="replay")
app.add_typer(rollouts.app, name="rollouts")
app.add_typer(study.app, name="study")
app.command("train")(train.command)
app.command("report")(report.command)
app.command("induce")(induce.command)
rules.command("show")(rules_show.command)
rules.command("check")(rules_check.command)
rules.command("explain")(rules_explain.command)
rules.command("graph")(rules_graph.command)
rules.command("diff")(rules_diff.command)
rules.command("merge")(rules_diff.merge_command)
rules.command("simplify")(rules_simplify.command)
rules.command("score")(rules_score.command)
rules.command("fit")(rules_fit.command)
rules.command("edit")(rules_edit.command)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"nser {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    """Options of every command."""


def main() -> None:
    """Run the command line; exit 0 for well done, 1 for problems found, 2 for wrong use."""
    try:
        _run()
    except NserError as error:
        asked_for = error.exit_code == INTERRUPTED
        print(error if asked_for else f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except OSError as error:
        _drop_output()
        print(f"error: {error.filename or 'standard output'}: {error.strerror or error}", file=sys.stderr)
        sys.exit(1)
    except MemoryError as error:
        print(f"error: not enough memory{f' ({error})' if str(error) else ''}; take less at once", file=sys.stderr)
        sys.exit(1)


def _run() -> None:
    try:
        app()
    finally:
        sys.stdout.flush()  # here, a disk that is full can still be told of


def _drop_output() -> None:
    """Python would try once more, when it ends, to write what could not be written."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
