"""`nser vocab show` and `nser vocab check`: what rules may say about an environment, and whether it says anything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nser.cli.console import err, out, print_json
from nser.cli.inputs import load_data

if TYPE_CHECKING:
    from nser.envs.check import Finding
    from nser.grounding.vocabulary import Vocabulary

app = typer.Typer(no_args_is_help=True, help="See what rules may say about an environment.")
Environment = Annotated[
    str, typer.Argument(metavar="ENV", help="An environment's id, such as MiniGrid-DoorKey-6x6-v0.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def show(env_id: Environment, as_json: AsJson = False) -> None:
    """Every predicate with its sorts, kind, unit, range, meaning and an example; the constants of each sort."""
    from nser.cli.vocab_table import vocabulary_table
    from nser.envs.make import make_env, vocabulary_of

    vocabulary = vocabulary_of(make_env(env_id))
    if as_json:
        print_json(as_dict(vocabulary))
    else:
        out.print(vocabulary_table(vocabulary))


@app.command()
def check(
    env_id: Environment,
    data: Annotated[
        Path | None, typer.Argument(help="Recorded trajectories, or a run, to judge by; random play without.")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, max=10_000_000, help="Steps of random play.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random play.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Play at random and report predicates that are never or always true, out of range, identical or broken.

    Exit code 1 where something is found. A finding may be a hint only: random play never opens some doors.
    """
    from nser.envs.check import check_steps, check_vocabulary
    from nser.envs.make import make_env, vocabulary_of

    env = make_env(env_id)
    vocabulary = vocabulary_of(env)
    if data is None:
        findings, judged = check_vocabulary(env, steps, vocabulary=vocabulary, seed=seed), f"{steps:,} random steps"
    else:
        trajectories = load_data(data)
        findings, judged = check_steps(vocabulary, trajectories.steps()), f"{len(trajectories):,} recorded steps"
    atoms = len(vocabulary.ground_atoms(("truth", "number"), ("state", "action", "transition")))
    if as_json:
        print_json({"vocabulary": vocabulary.name, "judged": judged, "findings": [f.as_dict() for f in findings]})
    else:
        _report(findings, f"{vocabulary.name}: {atoms} atoms judged by {judged}")
    if findings:
        raise typer.Exit(1)


def as_dict(vocabulary: Vocabulary) -> dict[str, Any]:
    """A vocabulary as plain values."""
    return {
        "name": vocabulary.name,
        "features": list(vocabulary.features),
        "sorts": {sort: list(constants) for sort, constants in vocabulary.sorts.items()},
        "predicates": [
            {
                "name": known.name,
                "sorts": list(known.sorts),
                "kind": known.kind,
                "scope": known.scope,
                "unit": known.unit,
                "low": known.low,
                "high": known.high,
                "meaning": known.doc,
                "example": vocabulary.examples[known.name],
            }
            for known in vocabulary.signature.predicates.values()
        ],
    }


def _report(findings: list[Finding], title: str) -> None:
    for finding in findings:
        out.print(f"[bold]{finding.kind}[/bold]", end=" ")
        out.print(str(finding).removeprefix(f"{finding.kind}: "), markup=False)
    told = f"{title}: {len(findings) or 'nothing'} found"
    err.print(told, markup=False)
