"""The evaluator against LTNtorch: `python -m tests.bench_evaluator [rows]` prints medians, ratios and peak memory.

20 rules, a body of 3 or 4 literals and a head, over 12 soft predicates sigmoid(k (x − θ)) with learnable θ; one thread.
Both compute the same scores 1 − Π (1 − body · head) from the same inputs, which is checked, and the same gradients to θ
(ours to the rules' weights besides). LTNtorch is used twice: *plain*, where every formula calls its predicates; and
*expert*, where every predicate is computed once and shared by all rules. Whole rounds take turns in one process and
CPU time is taken, so that waiting for a busy machine is nobody's; trust the ratios.

LTNtorch is no dependency: `pip install --no-deps --target DIR LTNtorch`, then PYTHONPATH=DIR. Without it its
figures are left out.
"""

from __future__ import annotations

import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nser.experience.trajectories import Trajectories
from nser.grounding.evaluator import Evaluator
from nser.grounding.steps import Steps, single_steps
from nser.grounding.vocabulary import Predicate, Vocabulary
from nser.induce.evidence import Evidence
from nser.induce.settings import InductionSettings
from nser.induce.symbolic import SymbolicProposer
from nser.rules.parse import parse_rules
from nser.rules.signature import PredicateSignature

ROWS = 1_000_000
PREDICATES, RULES = 12, 20
SHARPNESS = 30.0
ABSENT = (
    "LTNtorch is not installed: no comparison with it (pip install --no-deps --target DIR LTNtorch, PYTHONPATH=DIR)"
)

Literals = list[tuple[int, bool]]


class Above(nn.Module):
    """Predicate `index`: sigmoid(k (x − θ)) with its own θ."""

    def __init__(self, index: int, start: float) -> None:
        super().__init__()
        self.index = index
        self.theta = nn.Parameter(torch.tensor(start))

    def forward(self, rows: Tensor) -> Tensor:
        """[T] degrees of [T, 12] features."""
        return torch.sigmoid(SHARPNESS * (rows[:, self.index] - self.theta))

    def on_steps(self, steps: Steps) -> Tensor:
        """The same for a vocabulary."""
        return self(steps.observations)


def literals() -> list[Literals]:
    """Signed predicates of 20 rules: 3 or 4 of the body and, last, the head."""
    draw = random.Random(0)
    return [
        [(number, draw.random() < 0.6) for number in draw.sample(range(PREDICATES), draw.choice((4, 5)))]
        for _ in range(RULES)
    ]


def predicates() -> list[Above]:
    """12 predicates with thresholds within the features' range, [0, 1]."""
    draw = random.Random(1)
    return [Above(i, draw.random()) for i in range(PREDICATES)]


def shared_thresholds(parts: list[Above]) -> Evaluator:
    """Our evaluator over the 12 predicates."""
    declared = [
        Predicate(PredicateSignature(f"p{i}", doc=f"x{i} is above its threshold"), part.on_steps)
        for i, part in enumerate(parts)
    ]
    text = _text([[("" if sign else "~") + f"p{i}(t)" for i, sign in rule] for rule in literals()])
    return Evaluator(parse_rules(text).rules, Vocabulary("bench", declared))


def own_thresholds() -> Evaluator:
    """The same rules over numbers: every comparison of every rule owns a learnable threshold, as rules in use do."""
    declared = [
        Predicate(PredicateSignature(f"x{i}", kind="number", doc=f"feature {i}", low=0, high=1), _Column(i))
        for i in range(PREDICATES)
    ]
    starts = [part.theta.item() for part in predicates()]
    text = _text([[f"x{i}(t) {'>' if sign else '<'} ?{starts[i]}" for i, sign in rule] for rule in literals()])
    return Evaluator(parse_rules(text).rules, Vocabulary("bench", declared), sharpness=SHARPNESS)


def _text(rules: list[list[str]]) -> str:
    return "\n".join(
        f"rule r{j}: forall t in step: {' & '.join(rule[:-1])} -> {rule[-1]}" for j, rule in enumerate(rules)
    )


class _Column:
    def __init__(self, index: int) -> None:
        self.index = index

    def __call__(self, steps: Steps) -> Tensor:
        return steps.observations[:, self.index]


def ltn_scores(parts: list[Above], rows: Tensor, expert: bool) -> Tensor:
    """[T] the same scores by LTNtorch."""
    import ltn

    both = ltn.Connective(ltn.fuzzy_ops.AndProd())
    either = ltn.Connective(ltn.fuzzy_ops.OrProbSum())
    negate = ltn.Connective(ltn.fuzzy_ops.NotStandard())
    given = [ltn.Predicate(part) for part in parts]
    variable = ltn.Variable("x", rows)
    shared = [p(variable) for p in given] if expert else []
    score: Any = None
    for rule in literals():
        firing: Any = None
        for number, positive in rule:
            literal = shared[number] if expert else given[number](variable)
            literal = literal if positive else negate(literal)
            firing = literal if firing is None else both(firing, literal)
        score = firing if score is None else either(score, firing)
    return score.value


def seconds(call: Callable[[], object]) -> float:
    """One call."""
    began = time.process_time()
    call()
    return time.process_time() - began


def speed(rows: int, rounds: int) -> dict[str, float]:
    """Medians in ms of forward (no gradient) and of forward and backward together; ratios by round."""
    torch.set_num_threads(1)
    data = torch.rand(rows, PREDICATES, generator=torch.Generator().manual_seed(0))
    steps = single_steps(data, torch.zeros(rows, dtype=torch.int64))
    parts = predicates()
    shared, own = shared_thresholds(parts), own_thresholds()
    ways: dict[str, Callable[[], Tensor]] = {
        "nser": lambda: shared(steps),
        "nser, a threshold each": lambda: own(steps),
    }
    if find_spec("ltn"):
        ways["LTNtorch expert"] = lambda: ltn_scores(parts, data, expert=True)
        ways["LTNtorch plain"] = lambda: ltn_scores(parts, data, expert=False)
        torch.testing.assert_close(ways["nser"](), ways["LTNtorch expert"](), atol=5e-3, rtol=0)
    else:
        print(ABSENT)
    taken: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds + 1):
        for name, way in ways.items():
            # What takes tens of milliseconds is taken five times a round: one disturbance is as long as it is.
            turns = 5 if name.startswith("nser") else 1
            with torch.no_grad():
                forward = statistics.median(seconds(way) for _ in range(turns))
            both = statistics.median(seconds(lambda: way().mean().backward()) for _ in range(turns))  # noqa: B023
            taken.setdefault((name, "forward"), []).append(forward)
            taken.setdefault((name, "both"), []).append(both)
    taken = {key: times[1:] for key, times in taken.items()}  # the first round warms up
    figures = {f"{name}, {rows:,} rows, {what}, ms": statistics.median(t) * 1e3 for (name, what), t in taken.items()}
    for rival in ("LTNtorch expert", "LTNtorch plain"):
        for what in ("forward", "both"):
            if (rival, what) in taken:
                pairs = zip(taken[rival, what], taken["nser", what], strict=True)
                figures[f"nser against {rival}, {what}, ratio"] = statistics.median(a / b for a, b in pairs)
    return figures


def small_batches() -> dict[str, float]:
    """Median µs of scoring a replay batch of 1,000, and the 64 and 7 rows that training asks for again and again."""
    evaluator = shared_thresholds(predicates()).requires_grad_(False)
    figures = {}
    for rows in (7, 64, 1_000):
        steps = single_steps(torch.rand(rows, PREDICATES), torch.zeros(rows, dtype=torch.int64))
        times = [seconds(lambda steps=steps: evaluator.score(steps)) for _ in range(500)]  # type: ignore[misc]
        figures[f"nser, {rows:,} rows, forward, µs"] = statistics.median(times[50:]) * 1e6
    return figures


def learning(rows: int = 2_000, literals: int = 30) -> dict[str, float]:
    """Seconds of one search for rules among so many literals, half of them negations, with a rule planted."""
    half = literals // 2
    draw = np.random.default_rng(0)
    table = draw.random((rows, half)) < 0.5
    label = (table[:, 0] & ~table[:, 1] & table[:, 2]) ^ (draw.random(rows) < 0.2)
    observations, episodes = table.astype(np.float32), np.arange(rows) // 10
    outcomes, no = label - label.mean(), np.zeros(rows, np.bool_)
    ends = np.arange(rows) % 10 == 9
    played = Trajectories(observations, np.zeros((rows, 1)), outcomes, observations, no, ends, episodes)
    declared = [Predicate(PredicateSignature(f"p{i}"), _Column(i)) for i in range(half)]
    settings = InductionSettings()
    evidence = Evidence(played, outcomes, episodes % 3 == 0, Vocabulary("bench", declared), settings)
    times = [seconds(lambda: SymbolicProposer().propose(evidence)) for _ in range(7)]
    return {f"symbolic learner, {rows:,} rows × {literals} literals, s": statistics.median(times)}


def peak_memory(rows: int) -> dict[str, float]:
    """MB that forward, and forward with backward, put over the inputs, by the process's resident high-water mark."""
    figures = {}
    for what in ("forward", "both"):
        command = [sys.executable, "-m", "tests.bench_evaluator", "--peak", what, str(rows)]
        said = subprocess.run(command, capture_output=True, text=True, check=True)
        figures[f"nser, {rows:,} rows, {what}, peak over inputs, MB"] = float(said.stdout)
    return figures


def _peak(what: str, rows: int) -> float:
    torch.set_num_threads(1)
    evaluator = shared_thresholds(predicates())
    warm = single_steps(torch.rand(100, PREDICATES), torch.zeros(100, dtype=torch.int64))
    shared_thresholds(predicates())._swept(warm, 50).mean().backward()  # compiles
    evaluator(warm).mean().backward()
    steps = single_steps(torch.rand(rows, PREDICATES), torch.zeros(rows, dtype=torch.int64))
    before = _high_water(reset=True)
    with torch.set_grad_enabled(what == "both"):
        scores = evaluator(steps)
    if what == "both":
        scores.mean().backward()
    return (_high_water() - before) / 2**20


def _high_water(reset: bool = False) -> float:
    """Bytes of the largest resident set so far; on Linux from now on with `reset`."""
    status = Path("/proc/self/status")
    if status.exists():
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        line = next(text for text in status.read_text().splitlines() if text.startswith("VmHWM"))
        return float(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * unit


def run(rows: int = ROWS, rounds: int = 5) -> dict[str, float]:
    """All figures by name."""
    torch.set_num_threads(1)
    return {**speed(rows, rounds), **small_batches(), **peak_memory(rows), **learning()}


def main() -> None:
    """Print the figures; `--peak WHAT ROWS` is what `peak_memory` starts."""
    if sys.argv[1:2] == ["--peak"]:
        print(_peak(sys.argv[2], int(sys.argv[3])))
        return
    for figure, value in run(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS).items():
        print(f"{figure:<64}{value:>12,.2f}")


if __name__ == "__main__":
    main()
