"""`nser rules explain`: why a transition has its priority, or what a rule set says in plain English."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from nser.cli.console import counted, err, out, print_json
from nser.cli.inputs import (
    Env,
    OptionalData,
    RuleFile,
    Vocab,
    load_data,
    required_vocabulary,
    rule_path,
    vocabulary_for,
)
from nser.errors import NserError
from nser.percent import percent
from nser.rules.print_english import english
from nser.rules.store import RuleSet, load_rules

if TYPE_CHECKING:
    from nser.rules.signature import Signature
    from nser.runs.explain import RowExplanation, TransitionExplanation

SHOWN = 0.05  # contributions below this are traces of soft comparisons, shown only when asked for everything


class ExplainUsageError(NserError):
    """--run and --slot belong together."""


def command(
    file: RuleFile,
    data: OptionalData = None,
    row: Annotated[int | None, typer.Option(help="Row of DATA whose transition is explained, from 0.")] = None,
    env: Env = None,
    vocab: Vocab = None,
    run: Annotated[Path | None, typer.Option(help="Run whose checkpoint holds the transition.")] = None,
    slot: Annotated[int | None, typer.Option(help="Slot of the transition in the replay buffer.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show rules that do not fire, too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the explanation as JSON.")] = False,
) -> None:
    """Say why a transition is replayed as often as it is, or how a recorded one scores; else, say the rules in English.

    A run and --slot explain what replay does; DATA and --row what the rules say of a transition of a file.
    """
    if (data is None) != (row is None) or (data is not None and slot is not None):
        raise ExplainUsageError("found only part of DATA and --row, expected both, or a run with --slot, or neither")
    if run is None and slot is not None and file.is_dir():
        run = file
    if (run is None) != (slot is None):
        raise ExplainUsageError(
            "found only one of --run and --slot, expected both, or neither to read the rules in English"
        )
    ruleset = RuleSet() if slot is not None and _has_none(file) else load_rules(rule_path(file))
    for problem in ruleset.problems:
        err.print(f"warning: {problem}")
    if data is not None and row is not None:
        from nser.runs.explain import explain_row

        vocabulary = required_vocabulary(env, vocab, file, data)
        told = explain_row(load_data(data), vocabulary, ruleset, row)
        if as_json:
            print_json({"file_version": ruleset.version, **told.as_dict()})
            return
        _print_row(told)
        _print_firings(told, everything)
        return
    if run is None or slot is None:
        words = vocabulary_for(env, vocab)  # a run's own meanings make long sentences: only when asked for
        _print_english(ruleset, words.signature if words else None, as_json)
        return
    from nser.runs.directory import RunDirectory
    from nser.runs.explain import explain_slot, stored_buffer

    buffer, known = stored_buffer(RunDirectory.open(run))
    explanation = explain_slot(buffer, vocabulary_for(env, vocab) or known, ruleset, slot)
    if as_json:
        print_json({"file_version": ruleset.version, **explanation.as_dict()})
        return
    _print_factors(explanation, ruleset)
    if ruleset.rules:
        _print_firings(explanation, everything)


def _has_none(file: Path) -> bool:
    """Whether it is a run without rules, as those that replay by TD error alone are."""
    return (file / "config.json").is_file() and not any((file / "rules").glob("*.rules"))


def _print_english(ruleset: RuleSet, signature: Signature | None, as_json: bool) -> None:
    sentences = {rule.name: english(rule, signature) for rule in ruleset.rules}
    if as_json:
        print_json(sentences)
        return
    for name, sentence in sentences.items():
        out.print(f"[bold]{name}[/]  {escape(sentence)}")


def _print_factors(found: TransitionExplanation, ruleset: RuleSet) -> None:
    law = found.law
    end = ", the last of its episode" if found.ended else ""
    out.print(f"[bold]slot {found.slot}[/]  action {found.action}, reward {found.reward:g}{end}")
    _print_facts(found.facts)
    out.print()
    table = Table(title="why it is drawn", title_justify="left", show_header=False, box=None, padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(style="dim")
    new = law["signal"] >= found.largest_signal > 0
    told = "the largest of all, as a new item's is until it is replayed" if new else "|TD error| when last replayed"
    table.add_row("signal", f"{law['signal']:.4g}", told)
    table.add_row("age", f"{law['age']:,}", f"gradient steps; decay factor {law['decay']:.3g}")
    unscored = "not scored yet" if ruleset.rules else "nothing scores it"
    scored = unscored if law["version"] < 0 else f"score of rules version {law['version']}"
    table.add_row("relevance", f"{law['relevance']:.3f}", scored)
    table.add_row("rule factor", f"{law['rule_factor']:.3f}", "what the rules multiply its priority by")
    times = law["probability"] / found.uniform
    owed = percent(law["rule_share"], 0)
    table.add_row(
        "probability", f"{law['probability']:.3g}", f"{times:.2f} × a uniform draw; {owed} of it owed to rules"
    )
    table.add_row("weight", f"{law['weight']:.3g}", "of its loss, before the batch is normalised")
    out.print(table)
    if ruleset.rules and law["version"] >= 0 and law["version"] != ruleset.version:
        err.print(f"note: the run scored it by version {law['version']}; the rules below are version {ruleset.version}")


def _print_row(found: RowExplanation) -> None:
    place = f"step {found.step} of episode {found.episode}"
    out.print(f"[bold]row {found.row}[/]  {place}, action {found.action}, reward {found.reward:g}")
    _print_facts(found.facts)


def _print_facts(facts: dict[str, float]) -> None:
    told = "  ".join(f"{name} {value:g}" for name, value in facts.items() if value)
    zero = sum(not value for value in facts.values())
    rest = f"{'  ' if told else ''}{counted(zero, 'other number is', 'other numbers are')} 0" if zero else ""
    out.print(f"[dim]{escape(told)}{rest}[/]")


def _print_firings(found: TransitionExplanation | RowExplanation, everything: bool) -> None:
    shown = [firing for firing in found.firings if everything or firing.contribution > SHOWN]
    out.print(f"\n[bold]score {found.score:.3f}[/] from {len(shown)} of {counted(len(found.firings), 'rule')}")
    for firing in shown:
        out.print(
            f"  [bold]{firing.rule}[/]  body {firing.body:.2f} × head {firing.head:.2f} × weight {firing.weight:.2f} "
            f"= {firing.contribution:.3f}"
        )
        for literal, degree in firing.literals:
            colour = "green" if degree > 0.5 else "red"
            out.print(f"      [{colour}]{degree:5.2f}[/]  {escape(literal)}")
