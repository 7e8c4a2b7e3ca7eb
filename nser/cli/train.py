"""`nser train`: an agent learns, rules are found on the way, and a run directory holds both."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from nser.cli.console import counted, err, number, out, percent, print_json
from nser.cli.rules_table import rules_table
from nser.errors import NserError

if TYPE_CHECKING:
    from nser.runs.train import Outcome

RUNS = Path("runs")


class UsageError(NserError):
    """Options that do not go together, or a value that is out of its range."""


class Screen:
    """Shows a run as a bar on a terminal, and as nothing but its messages elsewhere."""

    def __init__(self, progress: Progress, total: int) -> None:
        self.bar = progress
        self.task = progress.add_task("train", total=total, figures="", start=False)
        self.started = False
        self.stop = False

    def progress(self, step: int, success: float | None, mean_return: float | None, rules: int) -> None:
        """Move the bar."""
        if not self.started:
            # The first step of a resumed run is where it goes on, and does not count for the speed.
            self.started = True
            self.bar.update(self.task, completed=step)
            self.bar.start_task(self.task)
        speed = self.bar.tasks[self.task].speed
        figures = [f"{speed:,.0f} steps/s"] if speed else []
        if success is not None:
            figures.append(f"success {percent(success)}")
        elif mean_return is not None:
            figures.append(f"return {mean_return:.3g}")
        figures.append(counted(rules, "rule"))
        self.bar.update(self.task, completed=step, figures=" · ".join(figures))

    def say(self, message: str) -> None:
        """Print a message above the bar."""
        self.bar.console.print(message)

    def stopping(self) -> bool:
        """Whether the user asked to stop."""
        return self.stop


def command(
    context: typer.Context,
    env: Annotated[
        str | None, typer.Argument(help="Environment id, e.g. MiniGrid-DoorKey-6x6-v0 or CartPole-v1.")
    ] = None,
    agent: Annotated[str, typer.Option(help="dqn")] = "dqn",
    replay: Annotated[str, typer.Option(help="nser, per, uniform, freshper, vlm-rb or placebo.")] = "nser",
    explore: Annotated[
        str, typer.Option(help="epsilon: every random action alike; rules: half of them by the rules in force.")
    ] = "epsilon",
    llm: Annotated[
        str,
        typer.Option(
            help="Who proposes rules: symbolic, openai:MODEL, http://HOST:PORT/v1#MODEL, hf:FOLDER, both:ONE."
        ),
    ] = "symbolic",
    vlm: Annotated[
        str,
        typer.Option(
            help="Who judges clips for vlm-rb: http://HOST:PORT/v1#MODEL, openai:MODEL, hf:FOLDER, events:FORMULA."
        ),
    ] = "",
    steps: Annotated[
        int | None, typer.Option(help="Environment steps, 100,000 without; with --resume, a later end than before.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything; same seed, same run on the same machine.")] = 0,
    envs: Annotated[int, typer.Option(help="Environments side by side.")] = 1,
    name: Annotated[str | None, typer.Option(help="Folder under runs/ (or a path).")] = None,
    option: Annotated[
        list[str] | None, typer.Option("--set", help="Any setting of config.json, e.g. --set learning_rate=1e-3.")
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace a run of the same name.")] = False,
    resume: Annotated[Path | None, typer.Option(help="Go on with the run in this folder.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train an agent; rules are induced from its own episodes while it learns."""
    if resume is not None:
        _require_nothing_else(context)
        outcome = _watched(resume, steps)
    else:
        if env is None:
            raise UsageError(
                "found no environment, expected its id (MiniGrid-DoorKey-6x6-v0, CartPole-v1) or --resume RUN"
            )
        given: dict[str, Any] = {"agent": agent, "replay": replay, "explore": explore, "llm": llm, "vlm": vlm}
        given |= {"seed": seed, "n_envs": envs, **({} if steps is None else {"steps": steps})}
        pairs = setting_pairs(option or [])
        _require_once(context, pairs)
        settings = {"env": env, **given, **pairs}
        outcome = _watched(run_path(env, replay, explore, seed, name), steps, settings, overwrite)
    _print(outcome, as_json)


def _require_nothing_else(context: typer.Context) -> None:
    """Raises `UsageError` for what was given beside --resume: a run keeps the settings it was started with."""
    for name, said in _given(context).items():
        if name not in ("resume", "steps", "as_json"):
            raise UsageError(
                f"found {said} beside --resume {context.params['resume']}, expected nothing but --steps: a run keeps "
                "what it was started with; leave it out, or start another run"
            )


def _require_once(context: typer.Context, pairs: dict[str, str]) -> None:
    """Raises `UsageError` for a setting that stands in an option of its own and in --set as well."""
    for name, said in _given(context).items():
        setting = "n_envs" if name == "envs" else name
        if setting in pairs:
            raise UsageError(f"found {said} and --set {setting}={pairs[setting]}, expected one of them")


def _given(context: typer.Context) -> dict[str, str]:
    """What stands on the command line: an option by its name there, an argument by its value."""
    found = {}
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            argument = parameter.param_type_name == "argument"
            found[name] = str(context.params[name]) if argument else parameter.opts[0]
    return found


def run_path(env: str, replay: str, explore: str, seed: int, name: str | None) -> Path:
    """Where a run goes: a plain name lies under `runs/`, anything with a slash is a path of its own."""
    if name is None:
        by_rules = "-explore" if explore == "rules" else ""
        name = f"{env.replace('/', '-')}-{replay}{by_rules}-{seed}"
    path = Path(name)
    return path if len(path.parts) > 1 else RUNS / path


def _watched(path: Path, steps: int | None, settings: dict[str, Any] | None = None, overwrite: bool = False) -> Outcome:
    import torch

    from nser.runs.directory import RunDirectory
    from nser.runs.settings import parse_settings
    from nser.runs.train import resume, train

    torch.set_num_threads(1)  # nets of this size lose time on a second thread
    parsed = parse_settings(settings) if settings is not None else RunDirectory.open(path).settings()
    columns = (
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, disable=not err.is_terminal) as progress:
        screen = Screen(progress, steps or parsed.steps)
        with _polite_interrupt(screen):
            if settings is None:
                return resume(path, steps=steps, observer=screen)
            return train(path, parsed, overwrite=overwrite, observer=screen)


@contextmanager
def _polite_interrupt(screen: Screen) -> Iterator[None]:
    """The first Ctrl-C stops at the next border and saves; the second stops at once."""

    def ask(number: int, frame: FrameType | None) -> None:
        del number, frame
        screen.stop = True
        screen.say("stopping at the next step; once more to stop without saving")
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def setting_pairs(options: list[str]) -> dict[str, str]:
    """The values of `--set NAME=VALUE`. Raises `UsageError` for one that is no pair."""
    pairs = {}
    for text in options:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise UsageError(f"found --set {text}, expected NAME=VALUE such as --set learning_rate=1e-3")
        pairs[key.strip()] = value.strip()
    return pairs


def _print(outcome: Outcome, as_json: bool) -> None:
    from nser.report.page import write_report

    report = write_report(outcome.run)
    evaluation, ruleset = outcome.evaluation, outcome.ruleset
    if as_json:
        print_json(
            {
                "run": str(outcome.run.path),
                "seconds": round(outcome.seconds, 1),
                "success": evaluation.success if evaluation else None,
                "mean_return": evaluation.mean_return if evaluation else None,
                "rules": len(ruleset.rules) if ruleset else 0,
                "report": str(report),
            }
        )
        return
    if ruleset is not None:
        out.print(rules_table(ruleset))
    elif outcome.run.settings().uses_rules:
        out.print("no rules were found in so few steps, so that none were replayed or explored by; give the run more")
    if evaluation is not None:
        success = "" if evaluation.success is None else f"success {percent(evaluation.success)}, "
        out.print(
            f"greedy policy over {counted(evaluation.episodes, 'fresh episode')}: {success}"
            f"return {number(evaluation.mean_return)}, {evaluation.mean_length:.0f} steps each",
            soft_wrap=True,
        )
    out.print(f"trained for {outcome.seconds:.0f} s in all · run {outcome.run.path} · report {report}", soft_wrap=True)
