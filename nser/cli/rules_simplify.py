"""`nser rules simplify`: the same rules, said shorter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from nser.cli.console import out, print_json
from nser.cli.inputs import AsJson, Env, RuleFile, Vocab, readable_rules, vocabulary_for
from nser.rules.printer import print_formula, print_rule
from nser.rules.store import save_rules


def command(
    file: RuleFile,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the simplified rules here.")] = None,
    env: Env = None,
    vocab: Vocab = None,
    seconds: Annotated[float, typer.Option(min=0.1, max=600, help="Time limit for each rule.")] = 10.0,
    as_json: AsJson = False,
) -> None:
    """Say each body with fewer literals where that is possible, and why not where it is not."""
    from nser.rules.simplify import simplify_rule

    ruleset = readable_rules(file)
    vocabulary = vocabulary_for(env, vocab, file)
    found = [simplify_rule(rule, vocabulary.signature if vocabulary else None, seconds) for rule in ruleset.rules]
    if output is not None:
        save_rules(output, replace(ruleset, rules=tuple(rule for rule, _ in found)))
    if as_json:
        told = [
            {"name": rule.name, "text": print_rule(rule), "changed": done.changed, "reason": done.reason}
            for rule, done in found
        ]
        print_json({"rules": told})
        return
    for before, (after, done) in zip(ruleset.rules, found, strict=True):
        out.print(Text(before.name, style="bold").append(f"  {done.reason}", style="green" if done.changed else "dim"))
        if done.changed:
            out.print(Text(f"    - {print_formula(before.body)}", style="red"))
            out.print(Text(f"    + {print_formula(after.body)}", style="green"))
    if output is not None:
        out.print(f"written to {output}", soft_wrap=True)
