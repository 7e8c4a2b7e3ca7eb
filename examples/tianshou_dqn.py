"""Prioritised replay in tianshou: one line changed. Needs `nser[tianshou]`.

tianshou's algorithms weigh their loss by the buffer's weights and hand their errors back by themselves, so the
buffer is all there is to change.

    python examples/tianshou_dqn.py --epochs 5
"""

from __future__ import annotations

import argparse

import gymnasium
from tianshou.algorithm.modelfree.dqn import DQN, DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

from nser.trainers.tianshou import IndexedVectorReplayBuffer

ENVS = 4


def main() -> None:
    """Train on CartPole and print the best return."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5000, help="of the environments, in an epoch")
    parser.add_argument("--law", default="per", help="uniform, per, freshper, …")
    arguments = parser.parse_args()
    train_envs = DummyVectorEnv([lambda: gymnasium.make("CartPole-v1") for _ in range(ENVS)])
    test_envs = DummyVectorEnv([lambda: gymnasium.make("CartPole-v1") for _ in range(ENVS)])
    policy = DiscreteQLearningPolicy(
        model=Net(state_shape=(4,), action_shape=2, hidden_sizes=[64, 64]),
        action_space=gymnasium.spaces.Discrete(2),
        eps_training=0.1,
        eps_inference=0.0,
    )
    agent = DQN(
        policy=policy,
        optim=AdamOptimizerFactory(lr=1e-3),
        gamma=0.99,
        n_step_return_horizon=3,
        target_update_freq=300,
    )
    buffer = IndexedVectorReplayBuffer(
        20_000, ENVS, law=arguments.law
    )  # PrioritizedVectorReplayBuffer(20_000, ENVS, …)
    training = Collector(agent, train_envs, buffer, exploration_noise=True)
    result = agent.run_training(
        OffPolicyTrainerParams(
            training_collector=training,
            test_collector=Collector(agent, test_envs),
            max_epochs=arguments.epochs,
            epoch_num_steps=arguments.steps,
            collection_step_num_env_steps=40,
            update_step_num_gradient_steps_per_sample=0.1,
            batch_size=64,
            test_step_num_episodes=ENVS,
            show_progress=False,
        )
    )
    stats = buffer.index.stats()
    print(f"best return {result.best_reward:.0f}   items {stats.eligible}   effective {stats.effective_size:.0f}")


if __name__ == "__main__":
    main()
