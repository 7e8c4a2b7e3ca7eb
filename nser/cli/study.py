"""`nser study run`, `show` and `conditions`: does it help, by how much, and with what certainty."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Column

from nser.cli.console import err, out, print_json
from nser.cli.train import UsageError, setting_pairs
from nser.errors import NserError

if TYPE_CHECKING:
    from nser.study.curves import Measure
    from nser.study.run import Report
    from nser.study.settings import StudySettings

STUDIES = Path("studies")

app = typer.Typer(
    no_args_is_help=True, help="Compare ways to replay and explore: conditions × update ratios × seeds, with intervals."
)
Baselines = Annotated[
    str,
    typer.Option(
        "--baseline",
        help="What to compare with, e.g. per or uniform,per; else uniform, per and placebo if they are there.",
    ),
]
MeasureName = Annotated[
    str, typer.Option("--measure", help="success or return; success if the environment knows it without.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the table as JSON.")]


class StudyStopped(NserError):
    """The user stopped a study; `path` holds the cells that were finished, `done` of `total`."""

    exit_code = 130

    def __init__(self, path: Path, done: int, total: int) -> None:
        super().__init__(path, done, total)
        self.path, self.done, self.total = path, done, total

    def __str__(self) -> str:
        look = f", or look at what is there with `nser study show {self.path}`" if self.done else ""
        return (
            f"stopped; {self.done} of {self.total} cells (a condition, a ratio, a seed) are finished and kept in "
            f"{self.path}. Go on with the same command{look}"
        )


@app.command("run")
def run_command(
    env: Annotated[str, typer.Argument(metavar="ENV", help="An environment's id, such as MiniGrid-DoorKey-6x6-v0.")],
    conditions: Annotated[
        str,
        typer.Option(help="Names from `nser study conditions`, settings behind a colon: per,induced:eta=2,tau=1e4."),
    ] = "uniform,per,placebo,induced",
    ratios: Annotated[str, typer.Option(help="Updates per environment step, e.g. 1/8,1/4,1/2,1.")] = "1/4",
    seeds: Annotated[int, typer.Option(help="Seeds of each condition; effects of .10 need 30 and more.")] = 12,
    steps: Annotated[int, typer.Option(help="Environment steps of each seed.")] = 60_000,
    agent: Annotated[
        str, typer.Option(help="stacked: all seeds as one batched network; sb3: Stable-Baselines3, one by one.")
    ] = "stacked",
    workers: Annotated[
        int | None, typer.Option(help="Processes; as many as cores without.", show_default=False)
    ] = None,
    llm: Annotated[str, typer.Option(help="The model of the condition induced-llm, as in `nser train`.")] = "",
    name: Annotated[
        str | None, typer.Option(help="Folder under studies/ (or a path); the environment's id without.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option("--set", help="Any setting of study.json, e.g. --set eval_episodes=50.")
    ] = None,
    baselines: Baselines = "",
    measure: MeasureName = "",
    as_json: AsJson = False,
) -> None:
    """Run what is not done yet, then write tables, pictures and a page.

    Run again, it goes on where it was stopped. Conditions, ratios and seeds may be added to a study that is there.
    """
    from nser.study.run import run_study
    from nser.study.settings import study_settings

    values: dict[str, Any] = {"env": env, "conditions": split_conditions(conditions), "ratios": _ratios(ratios)}
    values |= {"seeds": seeds, "steps": steps, "agent": agent, "llm": llm}
    values |= {} if workers is None else {"workers": workers}
    settings = study_settings(values | _given(option or []))
    compared, measured = _baselines(baselines), _measure(measure)  # a slip is told before the work, not after it
    path = study_path(env, name)
    with _progress(settings) as report:
        try:
            run_study(settings, path, report)
        except KeyboardInterrupt:
            raise _stopped(path) from None
    _show(path, compared, measured, as_json)


@app.command("show")
def show_command(
    path: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a study.")],
    baselines: Baselines = "",
    measure: MeasureName = "",
    as_json: AsJson = False,
) -> None:
    """Make tables, pictures and page anew from what is finished, and print the table."""
    _show(path, _baselines(baselines), _measure(measure), as_json)


@app.command("conditions")
def conditions_command(as_json: AsJson = False) -> None:
    """List the conditions and what can be set behind a colon."""
    from nser.cli.study_table import conditions_table
    from nser.study.conditions import CONDITIONS, OVERRIDES

    if as_json:
        print_json({"conditions": {name: known.summary for name, known in CONDITIONS.items()}, "settings": OVERRIDES})
    else:
        out.print(conditions_table(CONDITIONS.values(), OVERRIDES))


def study_path(env: str, name: str | None) -> Path:
    """Where a study goes: a plain name lies under `studies/`, anything with a slash is a path of its own."""
    path = Path(name or env.replace("/", "-"))
    return path if len(path.parts) > 1 else STUDIES / path


def split_conditions(text: str) -> list[str]:
    """Names parted by commas; a `key=value` without a colon belongs to the name before it.

    >>> split_conditions("per,induced:eta=2,tau=1e4,hand+explore")
    ['per', 'induced:eta=2,tau=1e4', 'hand+explore']
    """
    names: list[str] = []
    for part in text.split(","):
        if names and "=" in part and ":" not in part:
            names[-1] += f",{part.strip()}"
        else:
            names.append(part.strip())
    return names


def _given(options: list[str]) -> dict[str, str | list[str]]:
    """The values of `--set`; those that are several are parted by commas."""
    pairs = setting_pairs(options)
    return {name: value.split(",") if name in ("net_arch", "unseen") else value for name, value in pairs.items()}


def _ratios(text: str) -> list[float]:
    try:
        return [float(Fraction(part.strip())) for part in text.split(",")]
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"found --ratios {text}, expected numbers or fractions parted by commas: 1/4,1/2,1") from None


def _baselines(text: str) -> list[str]:
    from nser.study.conditions import condition_of

    return [condition_of(name).name for name in split_conditions(text)] if text else []


def _measure(text: str) -> Measure | None:
    match text:
        case "success" | "return":
            return text
        case "":
            return None
    raise UsageError(f"found --measure {text}, expected success or return")


def _stopped(path: Path) -> StudyStopped:
    from nser.study.cells import StudyDirectory, read_settings

    there = read_settings(path)
    total = len(there.conditions) * len(there.ratios) * there.seeds
    return StudyStopped(path, len(StudyDirectory(path).finished()), total)


@contextmanager
def _progress(settings: StudySettings) -> Iterator[Report]:
    """A bar on a terminal; elsewhere nothing."""
    columns = (
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis")),
    )
    with Progress(*columns, console=err, disable=not err.is_terminal) as bar:
        task = bar.add_task(settings.env, total=None, rate="")

        def report(done: int, total: int, text: str) -> None:
            speed = bar.tasks[0].speed
            bar.update(
                task, completed=done, total=total, description=text, rate=f"{speed:,.0f} steps/s" if speed else ""
            )

        yield report


def _show(path: Path, baselines: list[str], measure: Measure | None, as_json: bool) -> None:
    from nser.cli.study_table import study_table
    from nser.study.outputs import write_outputs

    table = write_outputs(path, baselines, measure)
    page = path / "index.html"
    if as_json:
        print_json({"study": str(path), "page": str(page), **table.as_dict()})
    else:
        out.print(study_table(table, out.width))
        out.print(f"page {page} · beside it: table.md, curves.png, areas.png, evaluations.jsonl", soft_wrap=True)
