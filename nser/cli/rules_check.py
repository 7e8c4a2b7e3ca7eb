"""`nser rules check`: what is wrong with the rules of a file, each fault with its line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from nser.cli.console import counted, err, out, print_json
from nser.cli.inputs import AsJson, Env, InputError, OptionalData, RuleFile, Vocab, load_data, rule_path, vocabulary_for
from nser.rules.checks.pipeline import Checked, check_file, check_reply
from nser.rules.store import read_text
from nser.rules.verdict import Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from nser.grounding.vocabulary import Vocabulary

SHOWN = 50


def command(
    file: RuleFile,
    data: OptionalData = None,
    env: Env = None,
    vocab: Vocab = None,
    reply: Annotated[bool, typer.Option(help="The file is a model's answer: prose, fences and all.")] = False,
    strict: Annotated[bool, typer.Option(help="Exit 1 for notes, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check rules: text, names (with --env or --vocab), logic, each other, and data where there are some.

    Exit code 1 where a rule is refused.
    """
    path = rule_path(file)
    vocabulary = vocabulary_for(env, vocab, file, data)
    text = read_text(path)
    signature = vocabulary.signature if vocabulary else None
    checked = check_reply(text, signature) if reply else check_file(text, signature)
    verdicts = [*checked.verdicts]
    if data is not None:
        verdicts += judged_by_data(checked, vocabulary, data)
    problems = [verdict for verdict in verdicts if not verdict.kept]
    notes = [verdict for verdict in verdicts if verdict.note]
    if as_json:
        refused = {verdict.rule for verdict in problems if verdict.code.startswith("D")}
        kept = [rule.name for rule in checked.rules if rule.name not in refused]
        print_json({"kept": kept, "refused": len(problems), "verdicts": [verdict.as_dict() for verdict in verdicts]})
    else:
        print_verdicts([*problems, *notes])
        _summary(len(checked.rules), problems, notes, vocabulary)
    if problems or (strict and notes):
        raise typer.Exit(1)


def judged_by_data(checked: Checked, vocabulary: Vocabulary | None, data: Path) -> list[Verdict]:
    """What recorded episodes say of rules that passed so far. Raises `InputError` without a vocabulary."""
    if vocabulary is None:
        raise InputError("found data but no vocabulary, expected --env ENV or --vocab MODULE:NAME to read them with")
    from nser.induce.choose import choose
    from nser.induce.evidence import Evidence
    from nser.induce.settings import InductionSettings

    trajectories = load_data(data)
    if not trajectories.complete.any():
        raise InputError(f"found no complete episode in {data}, expected some: outcomes are told at their ends")
    evidence = Evidence.from_trajectories(trajectories, vocabulary, InductionSettings(max_rules=1000))
    return choose(checked.rules, evidence).verdicts


def print_verdicts(verdicts: Sequence[Verdict]) -> None:
    """Each verdict with its line, a caret and the way out; the first SHOWN of them."""
    for verdict in verdicts[:SHOWN]:
        colour = "yellow" if verdict.kept else "red"
        where = f"line {verdict.position.line}, column {verdict.position.column}: " if verdict.position else ""
        name = f"[bold]{escape(verdict.rule)}[/]: " if verdict.rule else ""
        out.print(f"[{colour}]{verdict.code}[/] {where}{name}{escape(verdict.sentence)}")
        if lines := verdict.pointed():
            line, caret = lines.split("\n")
            out.print(f"    {escape(line)}", style="dim", soft_wrap=True)
            out.print(f"    [{colour}]{caret}[/]", soft_wrap=True)
        if verdict.suggestion:
            out.print(f"    {escape(verdict.suggestion)}", style="green")
        for witness in verdict.witnesses:
            out.print(f"    {escape(str(witness))}", style="dim")
    if len(verdicts) > SHOWN:
        out.print(f"… and {len(verdicts) - SHOWN} more; --json shows all")


def _summary(rules: int, problems: Sequence[Verdict], notes: Sequence[Verdict], vocabulary: Vocabulary | None) -> None:
    fine = rules - len({v.rule for v in problems if v.rule and v.code.startswith("D")})
    refused = len({v.rule for v in problems if v.rule}) + sum(not v.rule for v in problems)
    told = f"{counted(fine, 'rule')} fine, {refused} refused"
    told += f" for {counted(len(problems), 'fault')}" if len(problems) > refused else ""
    told += f", {counted(len(notes), 'note')}" if notes else ""
    out.print(f"[bold]{told}[/]")
    if vocabulary is None:
        err.print("note: names were not checked; --env ENV or --vocab MODULE:NAME checks them, too")
