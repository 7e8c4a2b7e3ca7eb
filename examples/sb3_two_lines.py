"""Prioritised replay in a Stable-Baselines3 script: two lines changed.

Any off-policy algorithm of SB3 takes the buffer; then draws follow age and rules, and the statistics of the index go
to SB3's logger. The agents of `nser.agents` feed their errors back as well: that is the second way below.

    python examples/sb3_two_lines.py --steps 10000
"""

from __future__ import annotations

import argparse

from sb3_contrib import TQC
from stable_baselines3.common.evaluation import evaluate_policy

from nser.agents.feedback import ReplayStatistics
from nser.agents.replay_buffer import IndexedReplayBuffer
from nser.agents.sac import SAC


def stock(steps: int, verbose: int) -> TQC:
    """An algorithm of SB3's own: two arguments more. Old transitions fade, none is ever lost at once."""
    model = TQC(
        "MlpPolicy",
        "Pendulum-v1",
        replay_buffer_class=IndexedReplayBuffer,  # changed
        replay_buffer_kwargs={"law": "freshper", "seed": 1},  # changed
        learning_starts=100,
        verbose=verbose,
    )
    return model.learn(steps, callback=ReplayStatistics(every=1000))


def with_feedback(steps: int, verbose: int) -> SAC:
    """The same library's SAC with errors fed back: another import, and the law."""
    model = SAC("MlpPolicy", "Pendulum-v1", law="per", learning_starts=100, n_steps=3, verbose=verbose)
    return model.learn(steps)


def main() -> None:
    """Train both and print what they reach."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=5000, help="of the environment, for each agent")
    parser.add_argument("--verbose", type=int, default=0, help="1 prints SB3's log")
    arguments = parser.parse_args()
    for name, train in (("TQC, freshper", stock), ("SAC with feedback, PER", with_feedback)):
        model = train(arguments.steps, arguments.verbose)
        reward, _ = evaluate_policy(model, model.get_env(), n_eval_episodes=3, warn=False)
        stats = model.replay_buffer.index.stats()
        print(f"{name:<24} return {reward:8.1f}   items {stats.eligible}   effective {stats.effective_size:.0f}")


if __name__ == "__main__":
    main()
