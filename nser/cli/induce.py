"""`nser induce`: rules from recorded trajectories or rollouts, with what became of every proposal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from nser.cli.console import counted, err, number, out, percent, print_json
from nser.cli.inputs import AsJson, Env, InputError, Vocab, load_data, required_vocabulary
from nser.cli.rollout_inputs import holds_rollouts, iterate_texts, rollout_vocabulary
from nser.cli.rules_table import rules_table
from nser.cli.waiting import asked_model, waiting
from nser.rules.printer import print_formula
from nser.rules.store import save_rules
from nser.rules.verdict import KEPT

if TYPE_CHECKING:
    from nser.induce.evidence import Evidence
    from nser.induce.loop import Induction
    from nser.induce.proposing import Proposer
    from nser.induce.settings import InductionSettings

SORTS = ("rollout", "turn")


def command(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="Trajectories (.npz, .jsonl, Minari), a run, or rollouts: .jsonl of messages and rewards.",
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the kept rules to this .rules file.")
    ] = None,
    env: Env = None,
    vocab: Vocab = None,
    llm: Annotated[
        str,
        typer.Option(
            help="symbolic, openai:MODEL, http://HOST:PORT/v1#MODEL, hf:FOLDER, recorded:FILE, or both:ONE OF THESE."
        ),
    ] = "symbolic",
    show_prompt: Annotated[
        bool, typer.Option("--show-prompt", help="Print what a language model would be asked, and ask nobody.")
    ] = False,
    replies: Annotated[
        Path | None, typer.Option(help="Folder of recorded calls: what stands there is not asked again.")
    ] = None,
    redact: Annotated[
        list[str] | None, typer.Option(help="Regular expression; what it matches is not recorded in clear.")
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Answers asked for in the first round.")] = 1,
    repairs: Annotated[int, typer.Option(min=0, max=2, help="Rounds in which refused rules go back.")] = 2,
    episode_tokens: Annotated[int, typer.Option(min=1, help="Tokens of episodes in the prompt.")] = 3_000,
    answer_tokens: Annotated[int, typer.Option(min=1, help="Tokens of one answer at the most.")] = 800,
    label: Annotated[
        str, typer.Option(help="Worth of a transition: progress, return, success, advantage, novelty.")
    ] = "progress",
    gamma: Annotated[float, typer.Option(help="Discount, in (0, 1].")] = 0.99,
    max_rules: Annotated[int, typer.Option(min=1, help="Rules kept at the most.")] = 12,
    about: Annotated[str, typer.Option(help="Of rollouts: what rules are over, rollout or turn.")] = "rollout",
    as_json: AsJson = False,
) -> None:
    """Propose rules from recorded episodes and keep those that held-out episodes support.

    A rollout is worth its advantage, or its reward beside its group or task; whole groups are held out. Exit code 1
    where none is kept.
    """
    from dataclasses import asdict

    from nser.induce.cassette import Cassette
    from nser.induce.chat import ChatSettings
    from nser.induce.loop import induce_from
    from nser.induce.prompt import induction_messages
    from nser.induce.proposers import proposer_of
    from nser.induce.settings import InductionSettings

    if output is not None and output.suffix != ".rules":
        raise InputError(f"found -o {output}, expected a name that ends in .rules")
    if about not in SORTS:
        raise InputError(f"found --about {about}, expected {' or '.join(SORTS)}")
    try:
        settings = InductionSettings(label=label, gamma=gamma, max_rules=max_rules)  # type: ignore[arg-type]
    except ValueError as error:
        raise InputError(str(error)) from error
    if holds_rollouts(data):
        evidence = _rollout_evidence(data, vocab, settings, about)
    else:
        evidence = _evidence(data, env, vocab, settings)
    chat = ChatSettings(samples=samples, repairs=repairs, episode_tokens=episode_tokens, max_tokens=answer_tokens)
    if show_prompt:
        for message in induction_messages(evidence, chat.wanted, budget=chat.episode_tokens):
            print(message["content"])
        return
    proposer = proposer_of(llm, Cassette(replies, redact or ()) if replies else None, chat)
    with waiting(proposer, err):
        found = induce_from(evidence, proposer)
    if output is not None and found.ruleset.rules:
        save_rules(output, found.ruleset)
    if as_json:
        verdicts = [verdict.as_dict() for verdict in found.verdicts]
        fits = [asdict(one) for one in found.fits]
        print_json({"kept": [rule.name for rule in found.ruleset.rules], "verdicts": verdicts, "fits": fits})
    else:
        _print(found)
        _print_cost(proposer)
        if output is not None and found.ruleset.rules:
            err.print(f"written to {output}", soft_wrap=True)
    if not found.ruleset.rules:
        raise typer.Exit(1)


def _evidence(data: Path, env: str | None, vocab: str | None, settings: InductionSettings) -> Evidence:
    """Labelled episodes of numbers. Raises `InputError` where no vocabulary is named or nothing can be learnt."""
    from nser.induce.evidence import LEAST_EPISODES, Evidence, label_for

    vocabulary = required_vocabulary(env, vocab, data)
    trajectories = load_data(data)
    if label_for(trajectories, settings) is None:
        wanted = (
            f"complete episodes, {LEAST_EPISODES} at least; record more"
            if settings.label == "novelty"
            else "complete episodes, two good and two bad ones at least; record more, or judge by --label novelty"
        )
        raise InputError(f"found no contrast in {data}, expected {wanted}")
    return Evidence.from_trajectories(trajectories, vocabulary, settings)


def _rollout_evidence(data: Path, vocab: str | None, settings: InductionSettings, sort: str) -> Evidence:
    """Labelled rollouts of a file of messages and rewards."""
    from nser.induce.rollouts import rollout_evidence

    vocabulary = rollout_vocabulary(vocab)
    rollouts = [text for _, text in iterate_texts(data)]
    return rollout_evidence(rollouts, vocabulary, settings, sort)  # type: ignore[arg-type]


def _print_cost(proposer: Proposer) -> None:
    """What a language model has cost, and what went wrong with single calls."""
    from nser.induce.joining import Competing

    asked = asked_model(proposer)
    if asked is not None:
        spent = asked.spent
        out.print(
            f"{counted(spent.calls, 'call')} and {spent.cached} recorded ones of {asked.name}: "
            f"{spent.prompt_tokens:,} tokens in, {spent.completion_tokens:,} out, {spent.seconds:.1f} s",
            soft_wrap=True,
        )
        for failure in asked.failures:
            err.print(f"warning: {failure}", soft_wrap=True)
    if isinstance(proposer, Competing) and proposer.last_error is not None:
        err.print(f"warning: {proposer.last_error}; the symbolic learner proposed alone", soft_wrap=True)


def _print(found: Induction) -> None:
    """Every proposal with its verdict, then the rules that were kept."""
    bodies = {rule.name: print_formula(rule.body) for rule in found.proposals}
    out.print(f"[bold]{counted(len(found.verdicts), 'verdict')} on {counted(len(found.proposals), 'proposal')}[/]")
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for verdict in found.verdicts:
        colour = "green" if verdict.code == KEPT else "yellow" if verdict.kept else "red"
        body = f"\n{bodies[verdict.rule]}" if verdict.rule in bodies and not verdict.kept else ""
        told = (
            Text(verdict.rule, style="bold").append(f"  {verdict.sentence}", style="not bold").append(body, style="dim")
        )
        table.add_row(Text(verdict.code, style=colour), told)
    out.print(table)
    out.print()
    out.print(rules_table(found.ruleset))
    best = max(found.ruleset.provenance.values(), key=lambda known: known.lift or 0.0, default=None)
    if best is not None:
        ends = f"{percent(best.precision_low)} to {percent(best.precision_high)}"
        out.print(f"best lift {number(best.lift)}, precision {percent(best.precision)} ({ends}) on held-out episodes")
