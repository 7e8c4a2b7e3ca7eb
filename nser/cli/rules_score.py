"""`nser rules score`: what a rule set says of every recorded transition."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from nser.cli.console import number, out, percent, print_json
from nser.cli.inputs import (
    AsJson,
    Data,
    Env,
    InputError,
    RuleFile,
    Vocab,
    load_data,
    readable_rules,
    required_vocabulary,
)
from nser.cli.scores_file import Scored, check_scores_path, write_scores

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nser.experience.trajectories import Trajectories
    from nser.grounding.evaluator import Evaluator

CHUNK = 16_384
MODES = ("support", "relevance", "violation")


def command(
    file: RuleFile,
    data: Data,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Scores and firings: .npz, .parquet.")] = None,
    env: Env = None,
    vocab: Vocab = None,
    mode: Annotated[str, typer.Option(help="support: body × head; relevance: body; violation: body × not head.")] = (
        "support"
    ),
    as_json: AsJson = False,
) -> None:
    """Score transitions, and tell how often each rule fires, which is to a degree above one half.

    Support is the share of transitions on which it does, episodes that of episodes, mean truth the mean degree.

    `-o` writes them, with every firing, the episode and the step: as arrays (.npz) or as a table (.parquet).
    """
    from nser.grounding.evaluator import Evaluator

    if mode not in MODES:
        raise InputError(f"found --mode {mode}, expected one of {', '.join(MODES)}")
    if output is not None:
        check_scores_path(output)
    ruleset = readable_rules(file)
    vocabulary = required_vocabulary(env, vocab, file, data)
    trajectories = load_data(data)
    evaluator = Evaluator(ruleset.rules, vocabulary, mode=mode).requires_grad_(False)  # type: ignore[arg-type]
    firings, scores = firings_and_scores(evaluator, trajectories)
    rows = per_rule(evaluator, trajectories, firings)
    if output is not None:
        write_scores(output, Scored(trajectories, [rule.name for rule in ruleset.rules], firings, scores))
    if as_json:
        print_json({"transitions": len(scores), "mean_score": float(scores.mean()), "mode": mode, "rules": rows})
        return
    _print(rows, scores, output)


def firings_and_scores(
    evaluator: Evaluator, trajectories: Trajectories
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Firings [N, R] and scores [N], a chunk of rows at a time with the neighbours that temporal rules read."""
    import numpy as np
    import torch

    steps, count = trajectories.steps(), len(trajectories)
    firings = np.zeros((count, len(evaluator.rules)), np.float32)
    scores = np.zeros(count, np.float32)
    with torch.no_grad():
        for start in range(0, count, CHUNK):
            stop, first = min(start + CHUNK, count), max(start - evaluator.past, 0)
            found = evaluator.firings(steps[first : min(stop + evaluator.future, count)])[start - first : stop - first]
            firings[start:stop], scores[start:stop] = found.numpy(), evaluator.combine(found).numpy()
    return firings, scores


def per_rule(evaluator: Evaluator, trajectories: Trajectories, firings: NDArray[np.float32]) -> list[dict[str, Any]]:
    """For each rule: weight, firings above one half, support, coverage of episodes and mean firing."""
    import numpy as np

    fired = firings > 0.5
    rows = []
    for number_, rule in enumerate(evaluator.rules):
        fires = fired[:, number_]
        episodes = np.unique(trajectories.numbers[fires])
        rows.append(
            {
                "rule": rule.name,
                "weight": rule.weight,
                "firings": int(fires.sum()),
                "support": float(fires.mean()),
                "coverage": len(episodes) / max(1, len(trajectories.starts)),
                "mean": float(firings[:, number_].mean()),
            }
        )
    return rows


def _print(rows: list[dict[str, Any]], scores: NDArray[np.float32], output: Path | None) -> None:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("rule", style="bold", no_wrap=True)
    for title in ("weight", "firings", "support", "episodes", "mean truth"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        cells = (number(row["weight"], 2), f"{row['firings']:,}", percent(row["support"]), percent(row["coverage"]))
        table.add_row(Text(row["rule"]), *cells, number(row["mean"], 4))
    out.print(table)
    above = float((scores > 0.5).mean()) if len(scores) else 0.0
    out.print(f"[bold]{len(scores):,} transitions[/], mean score {scores.mean():.4f}, {percent(above)} above one half")
    if output is not None:
        out.print(f"scores written to {output}", soft_wrap=True)
