"""What rules in replay cost a whole run: CPU time an environment step, against SB3's own DQN.

`python -m tests.bench_train`. All agents learn DoorKey-5x5 with the same network, batch, update ratio and
exploration, in turns of 250 steps in one process, so that a machine that slows down slows all of them. The
world's resets are not counted, since an agent that solves it has more of them. Ours
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
TURN, WARM, TURNS = 250, 16, 64  # short turns: the machine's speed drifts within seconds
NEVER = 1_000_000_000


def settings(**changes: Any) -> RunSettings:
    """The defaults of `nser train`, with exploration that comes to its end early."""
    given = {"env": ENV, "steps": TURN * (WARM + TURNS), "exploration_fraction": 0.2, "eval_every": NEVER}
    return RunSettings(**{**given, "checkpoint_every": NEVER, **changes})


class Resets:
    """CPU seconds that a world's resets took: an agent that solves it has more of them, and is not to pay for it."""

    def __init__(self, env: Any) -> None:
        self.seconds = 0.0
        self._reset = env.reset
        env.reset = self._timed

    def _timed(self, **options: Any) -> Any:
        began = time.process_time()
        try:
            return self._reset(**options)
        finally:
            self.seconds += time.process_time() - began


Agent = tuple[Callable[[], None], Resets]


def stock() -> Agent:
    """SB3's own agent and buffer on the same environment."""
    s = settings()
    env = training_env(ENV, 0)
    model = StockDQN(
        "MlpPolicy",
        DummyVecEnv([lambda: env]),
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
    return lambda: take_turn(model, None), Resets(env)


def ours(folder: Path, **changes: Any) -> Agent:
    """The agent of `nser train` with its callback."""
    given = settings(**changes)
    session = Session(given)
    run = RunDirectory.create(folder, given)
    callback = RunCallback(session, run, MetricsLog(run.metrics), Silent())
    return lambda: take_turn(session.agent, callback), Resets(session.envs[0])


def take_turn(model: Any, callback: Any) -> None:
    # A whole run's schedule, one turn at a time.
    model.learn(TURN, callback, NEVER, reset_num_timesteps=model.num_timesteps == 0)


def run() -> dict[str, float]:
    """CPU µs an environment step of each agent, and the ratio of its whole time to that of SB3's own."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        agents = {
            "SB3 DQN, uniform": stock(),
            "nser DQN, per": ours(Path(folder) / "per", replay="per", double_q=False),
            "nser DQN, nser": ours(Path(folder) / "nser", double_q=False),
            "nser DQN, nser, double-Q": ours(Path(folder) / "double"),
            "nser DQN, nser, double-Q, explore rules": ours(Path(folder) / "explore", explore="rules"),
        }
        taken: dict[str, list[float]] = {name: [] for name in agents}
        for turn in range(WARM + TURNS):
            for name, (play, resets) in agents.items():
                began = time.process_time() - resets.seconds
                play()
                if turn >= WARM:
                    taken[name].append((time.process_time() - resets.seconds - began) / TURN * 1e6)
        with (Path(folder) / "nser" / "metrics.jsonl").open() as lines:
            assert any('"kind": "rules"' in line for line in lines), "no rules were found: the figure would flatter"
    base = taken["SB3 DQN, uniform"]
    figures = {f"{name}, µs a step": statistics.median(times) for name, times in taken.items()}
    for name, times in taken.items():
        if times is not base:
            figures[f"{name}, against SB3"] = sum(times) / sum(base)
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
