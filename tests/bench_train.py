"""What rules in replay cost a whole run: CPU time an environment step, against SB3's own DQN.

`python -m tests.bench_train`. All agents learn DoorKey-5x5 with the same network, batch, update ratio and
exploration, in turns of 1,000 steps in one process, so that a machine that slows down slows all of them. Ours
does all that `nser train` does between evaluations: induction, scoring, logging.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from stable_baselines3 import DQN as StockDQN
from stable_baselines3.common.vec_env import DummyVecEnv

from nser.runs.callback import RunCallback, Silent
from nser.runs.directory import MetricsLog, RunDirectory
from nser.runs.environment import training_env
from nser.runs.session import Session
from nser.runs.settings import RunSettings

ENV = "MiniGrid-DoorKey-5x5-v0"
TURN, WARM, TURNS = 1_000, 4, 16
NEVER = 1_000_000_000


def settings(**changes: Any) -> RunSettings:
    """The defaults of `nser train`, with exploration that comes to its end early."""
    given = {"env": ENV, "steps": TURN * (WARM + TURNS), "exploration_fraction": 0.2, "eval_every": NEVER}
    return RunSettings(**{**given, "checkpoint_every": NEVER, **changes})


def stock() -> Callable[[], None]:
    """SB3's own agent and buffer on the same environment."""
    s = settings()
    model = StockDQN(
        "MlpPolicy",
        DummyVecEnv([lambda: training_env(ENV, 0)]),
        learning_rate=s.learning_rate,
        gamma=s.gamma,
        batch_size=s.batch_size,
        buffer_size=s.buffer_size,
        learning_starts=s.learning_starts,
        train_freq=s.train_freq,
        gradient_steps=s.gradient_steps,
        target_update_interval=s.target_update_interval,
        exploration_fraction=s.exploration_fraction,
        exploration_final_eps=s.exploration_final_eps,
        policy_kwargs={"net_arch": list(s.net_arch)},
        seed=0,
        device="cpu",
    )
    return lambda: take_turn(model, None)


def ours(folder: Path, **changes: Any) -> Callable[[], None]:
    """The agent of `nser train` with its callback."""
    given = settings(**changes)
    session = Session(given)
    run = RunDirectory.create(folder, given)
    callback = RunCallback(session, run, MetricsLog(run.metrics), Silent())
    return lambda: take_turn(session.agent, callback)


def take_turn(model: Any, callback: Any) -> None:
    # A whole run's schedule, one turn at a time.
    model.learn(TURN, callback, NEVER, reset_num_timesteps=model.num_timesteps == 0)


def run() -> dict[str, float]:
    """CPU µs an environment step of each agent, and the median ratio to SB3's own in the same turn."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        agents = {
            "SB3 DQN, uniform": stock(),
            "nser DQN, uniform": ours(Path(folder) / "uniform", replay="uniform", double_q=False),
            "nser DQN, per": ours(Path(folder) / "per", replay="per", double_q=False),
            "nser DQN, nser": ours(Path(folder) / "nser", double_q=False),
            "nser DQN, nser, double-Q": ours(Path(folder) / "double"),
            "nser DQN, nser, double-Q, explore rules": ours(Path(folder) / "explore", explore="rules"),
        }
        taken: dict[str, list[float]] = {name: [] for name in agents}
        for turn in range(WARM + TURNS):
            for name, play in agents.items():
                began = time.process_time()
                play()
                if turn >= WARM:
                    taken[name].append((time.process_time() - began) / TURN * 1e6)
        with (Path(folder) / "nser" / "metrics.jsonl").open() as lines:
            assert any('"kind": "rules"' in line for line in lines), "no rules were found: the figure would flatter"
    base = taken["SB3 DQN, uniform"]
    figures = {f"{name}, µs a step": statistics.median(times) for name, times in taken.items()}
    for name, times in taken.items():
        if times is not base:
            ratio = statistics.median(a / b for a, b in zip(times, base, strict=True))
            figures[f"{name}, against SB3"] = ratio
    return figures


def main() -> None:
    """Print the figures."""
    figures = run()
    for name in [n for n in figures if n.endswith("µs a step")]:
        agent = name.removesuffix(", µs a step")
        ratio = figures.get(f"{agent}, against SB3")
        print(f"{agent:44s} {figures[name]:8.0f} µs a step{f'   {ratio:5.2f} × SB3' if ratio else ''}")


if __name__ == "__main__":
    main()
