"""What a slow model beside the learner costs: throughput with it, against the same run without.

`python -m tests.bench_background`. Real HTTP servers on 127.0.0.1 answer after a pause: 2 s for rules, 200 ms for the
verdict on a clip. Each pair learns the same world in turns of 250 steps in one process; wall-clock time counts, for
waiting is what must not happen. The goal is 0.95 of the speed with rules from a model, 0.88 with clips.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from nser.rules.parse import parse_rules
from nser.rules.ruleset import RuleSet
from nser.runs.callback import RunCallback, Silent
from nser.runs.directory import MetricsLog, RunDirectory
from nser.runs.session import Session
from nser.runs.settings import RunSettings
from tests.bench_train import NEVER, TURN, settings, take_turn
from tests.induce.fake_server import Answer, completion, serve

WARM, TURNS = 12, 48
ENV = "MiniGrid-DoorKey-5x5-v0"
EASY = "CartPole-v1"  # episodes differ from the first minute on, so that there is something to ask
RULES = "rule lean: forall t in step: pole_angle(t) > ?0.02 & action_is(t, right) -> good(t)"
NOTHING = "events:carrying(t) & ~carrying(t)"


def player(folder: Path, given: RunSettings) -> tuple[Callable[[], None], Session]:
    """One run's turns."""
    session = Session(given, folder / "replies")
    run = RunDirectory.create(folder, given)
    callback = RunCallback(session, run, MetricsLog(run.metrics), Silent())
    return lambda: take_turn(session.agent, callback), session


def speed_ratio(folder: Path, off: RunSettings, on: RunSettings, rules: str = "") -> tuple[float, Session]:
    """Median over turns of the speed with over the speed without; both begin with `rules` in force."""
    plain, first = player(folder / "off", off)
    loaded, second = player(folder / "on", on)
    for session in (first, second):
        if rules:
            session.put_in_force(RuleSet(parse_rules(rules).rules, 1))
    ratios = []
    for turn in range(WARM + TURNS):
        times = []
        for play in (plain, loaded):
            began = time.perf_counter()
            play()
            times.append(time.perf_counter() - began)
        if turn >= WARM:
            ratios.append(times[0] / times[1])
    first.close()
    second.close()
    return statistics.median(ratios), second


def run() -> dict[str, float]:
    """Speed with each slow model over the speed without it, and how much the model got done."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def slow_rules(request: dict[str, object]) -> Answer:
            answer = completion("hello" if "zq7" in str(request) else RULES)
            answer.wait = 2.0
            return answer

        with serve(slow_rules) as server:
            off = settings(env=EASY, induce_every=NEVER)
            on = settings(env=EASY, llm=f"{server.url}#m")
            rules, _ = speed_ratio(folder / "rules", off, on, RULES)
            asked = len(server.requests)
            assert asked, "the model was never asked: the figure would flatter"
        answer = completion("yes")
        answer.wait = 0.2
        with serve([answer]) as server:
            off = settings(env=ENV, replay="vlm-rb", vlm=NOTHING, vlm_task="Reach the goal.")
            on = settings(env=ENV, replay="vlm-rb", vlm=f"{server.url}#m", vlm_task="Reach the goal.")
            clips, session = speed_ratio(folder / "clips", off, on)
        assert session.watching is not None
        figures = session.watching.scorer.figures()
    return {
        f"speed with rules from a model that takes 2 s ({TURN * TURNS} steps)": rules,
        "  calls it answered": float(asked),
        "speed with clips judged in 200 ms": clips,
        "  clips judged": float(figures.work.done),
        "  clips skipped, not rendered": float(figures.skipped),
    }


if __name__ == "__main__":
    for what, value in run().items():
        print(f"{what:64}{value:10.2f}")
