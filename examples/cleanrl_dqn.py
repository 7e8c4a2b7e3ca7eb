"""DQN as one plain loop, on `nser.replay.ArrayBuffer`: prioritised replay for scripts in the style of CleanRL.

Four lines deal with replay; they are marked. The vector environment resets by itself, and what it returns for that
is no transition: `VectorSteps` leaves it out.

    python examples/cleanrl_dqn.py --steps 30000
"""

from __future__ import annotations

import argparse

import gymnasium
import numpy as np
import torch
from torch import nn
from torch.nn.functional import smooth_l1_loss

from nser.replay import ArrayBuffer, VectorSteps

ENVS, BATCH, GAMMA, WARM_UP = 4, 128, 0.99, 500


def network() -> nn.Module:
    """[B, 4] observations → [B, 2] values."""
    return nn.Sequential(nn.Linear(4, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 2))


def main() -> None:
    """Train, and print the mean length of the last episodes now and then."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--law", default="per", help="uniform, per, freshper, …")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    chance = np.random.default_rng(arguments.seed)
    envs = gymnasium.make_vec("CartPole-v1", ENVS, vectorization_mode="sync")
    spaces = envs.single_observation_space, envs.single_action_space
    buffer = ArrayBuffer.for_spaces(10_000, *spaces, law=arguments.law)  # replay
    writer = VectorSteps(buffer, ENVS, envs.metadata["autoreset_mode"])
    online, target = network(), network()
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters(), lr=2.5e-4)
    lengths, running = [0.0], np.zeros(ENVS)
    obs, _ = envs.reset(seed=arguments.seed)
    for step in range(0, arguments.steps, ENVS):
        epsilon = max(0.05, 1 - 2 * step / arguments.steps)
        with torch.no_grad():
            greedy = online(torch.from_numpy(obs)).argmax(1).numpy()
        actions = np.where(chance.random(ENVS) < epsilon, chance.integers(2, size=ENVS), greedy)
        following, rewards, terminated, truncated, infos = envs.step(actions)
        writer.add(obs, actions, rewards, following, terminated, truncated, infos)  # replay
        obs = following
        running += rewards
        for env in np.flatnonzero(terminated | truncated):
            lengths, running[env] = [*lengths[-49:], running[env]], 0
        if step < WARM_UP:
            continue

        batch = buffer.sample(BATCH)  # replay
        weights, reward = torch.from_numpy(batch.weights), torch.from_numpy(batch.rewards)
        with torch.no_grad():
            ahead = target(torch.from_numpy(batch.next_obs)).max(1).values
            goal = reward + GAMMA * ahead * torch.from_numpy(~batch.terminated)
        value = online(torch.from_numpy(batch.obs)).gather(1, torch.from_numpy(batch.actions)[:, None]).squeeze(1)
        loss = (weights * smooth_l1_loss(value, goal, reduction="none")).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        buffer.update(batch.draw, (goal - value).detach().abs().numpy())  # replay
        if step % 1000 == 0:
            target.load_state_dict(online.state_dict())
            print(f"step {step:>6}   mean length {np.mean(lengths):6.1f}   {len(buffer)} transitions")


if __name__ == "__main__":
    main()
