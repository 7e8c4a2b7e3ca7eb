"""`nser rollouts weigh`: what rules say of every rollout of a file, and a weight for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from nser.cli.console import err, number, out, percent, print_json
from nser.cli.inputs import AsJson, InputError, Vocab, readable_rules
from nser.cli.rollout_inputs import iterate_texts, rollout_vocabulary
from nser.files import atomic_path

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nser.grounding.transcripts import Transcript
    from nser.scorers.rollouts import RolloutScorer

BATCH = 256
DIGITS = 6  # of scores and weights in the file
WEIGHTS = ("boost", "score")
WRITTEN = ("rule_scores", "rule_score", "weight")

Batch = list[tuple[dict[str, Any], "Transcript"]]


def command(
    file: Annotated[
        Path, typer.Argument(metavar="IN.jsonl", help="Rollouts or chat transcripts, one JSON object a line.")
    ],
    rules: Annotated[
        Path, typer.Option("--rules", metavar="FILE", help="Rules over rollout or turn: a .rules file, or a run.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="OUT.jsonl", help="Where the lines go; may be IN.")],
    weight: Annotated[
        str, typer.Option(help="boost: 1 + η·score, a factor for the loss or the advantage; score: the score itself.")
    ] = "boost",
    eta: Annotated[float, typer.Option(min=0.0, help="η of boost: a rollout with score 1 weighs 1 + η.")] = 1.0,
    over_turns: Annotated[
        str, typer.Option(help="What a rule over turns comes to: max, it fired somewhere; mean, how often.")
    ] = "max",
    vocab: Vocab = None,
    as_json: AsJson = False,
) -> None:
    """Add rule_scores, rule_score and weight to every line; all other fields stay as they are, in their order.

    The file is read line by line and replaced as a whole, or not at all. Rules that blame have a score, and no part in
    rule_score and weight.
    """
    from nser.scorers.rollouts import RolloutScorer

    if weight not in WEIGHTS:
        raise InputError(f"found --weight {weight}, expected {' or '.join(WEIGHTS)}")
    ruleset = readable_rules(rules)
    scorer = RolloutScorer(ruleset, rollout_vocabulary(vocab), over_turns=over_turns)  # type: ignore[arg-type]
    summary = Summary(scorer)
    with atomic_path(output) as beside, beside.open("w", encoding="utf-8") as stream:
        for batch in _batches(file):
            firings = scorer.firings([text for _, text in batch])
            scores = scorer.combine(firings)
            weights = scores if weight == "score" else 1 + eta * scores
            summary.add([text.reward for _, text in batch], firings, weights)
            for (line, _), fired, score, heavy in zip(batch, firings, scores, weights, strict=True):
                stream.write(_weighed(line, scorer.names, fired, score, heavy) + "\n")
    if as_json:
        print_json(summary.as_dict())
        return
    out.print(summary.table())
    out.print(f"[bold]{summary.count:,} rollouts[/], mean weight {number(summary.mean_weight)}")
    err.print(f"written to {output}", soft_wrap=True)


class Summary:
    """Running figures of a file: for each rule the share of rollouts that it fires on, and what these were worth."""

    def __init__(self, scorer: RolloutScorer) -> None:
        import numpy as np

        self.rules = scorer.rules
        self.count, self.reward, self.weight = 0, 0.0, 0.0
        # [2, R]: rollouts on which each rule fires to more than one half, and the sum of their rewards
        self.fired: NDArray[np.float64] = np.zeros((2, len(scorer.rules)))

    def add(self, rewards: list[float], firings: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Take in some rollouts."""
        crisp = firings > 0.5
        self.fired += [crisp.sum(0), rewards @ crisp]
        self.count, self.reward, self.weight = (
            self.count + len(rewards),
            self.reward + sum(rewards),
            self.weight + float(weights.sum()),
        )

    @property
    def mean_weight(self) -> float:
        """0 without rollouts."""
        return self.weight / self.count if self.count else 0.0

    def rows(self) -> list[dict[str, Any]]:
        """Name, weight, rollouts, share and mean reward of the rollouts that each rule fires on, and of the others."""
        found = []
        for rule, fired, reward in zip(self.rules, *self.fired.tolist(), strict=True):
            others = self.count - fired
            found.append(
                {
                    "rule": rule.name,
                    "weight": rule.weight,
                    "rollouts": int(fired),
                    "share": fired / self.count if self.count else 0.0,
                    "reward": reward / fired if fired else None,
                    "reward_elsewhere": (self.reward - reward) / others if others else None,
                }
            )
        return found

    def as_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {"rollouts": self.count, "mean_weight": self.mean_weight, "rules": self.rows()}

    def table(self) -> Table:
        """The rows, for a terminal."""
        table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
        table.add_column("rule", style="bold", no_wrap=True)
        for title in ("weight", "rollouts", "share", "reward", "elsewhere"):
            table.add_column(title, justify="right", no_wrap=True)
        for row in self.rows():
            cells = (number(row["weight"], 2), f"{row['rollouts']:,}", percent(row["share"]))
            table.add_row(Text(row["rule"]), *cells, number(row["reward"]), number(row["reward_elsewhere"]))
        return table


def _batches(file: Path) -> Iterator[Batch]:
    found = iterate_texts(file)
    while batch := list(islice(found, BATCH)):
        yield batch


def _weighed(
    line: dict[str, Any], names: tuple[str, ...], fired: NDArray[np.float64], score: float, weight: float
) -> str:
    """The line with our fields at the end; older ones of the same names are replaced."""
    kept = {name: value for name, value in line.items() if name not in WRITTEN}
    scores = {name: round(degree, DIGITS) for name, degree in zip(names, fired.tolist(), strict=True)}
    ours = (scores, round(float(score), DIGITS), round(float(weight), DIGITS))
    whole = kept | dict(zip(WRITTEN, ours, strict=True))
    text = json.dumps(whole, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can only escape
        return json.dumps(whole)
    return text
