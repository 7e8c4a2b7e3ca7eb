"""Prioritised replay in torchrl: an `IndexSampler` in place of `PrioritizedSampler`. Needs `nser[torchrl]`.

The one-step problem of a row of lights: act by the light that is on. Rewards are rare, so that what is replayed
matters; a scorer calls the rewarded transitions relevant, as a rule would.

    python examples/torchrl_dqn.py --steps 2000
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from tensordict import TensorDict
from torch import nn
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer

from nser.trainers.torchrl import IndexSampler

LIGHTS, BATCH, CAPACITY = 16, 64, 5000


def collect(net: nn.Module, count: int, chance: torch.Generator) -> TensorDict:
    """`count` transitions of random play: the reward is 1 where the action is the light that is on."""
    on = torch.randint(LIGHTS, (count,), generator=chance)
    action = torch.randint(LIGHTS, (count,), generator=chance)
    return TensorDict({"on": on, "action": action, "reward": (on == action).float()}, [count])


def rewarded(data: TensorDict) -> np.ndarray:
    """[n] relevance of stored transitions."""
    relevance: np.ndarray = data["reward"].numpy()
    return relevance


def main() -> None:
    """Train, and print how often the greedy action is right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--law", default="nser", help="uniform, per, nser, …")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    chance = torch.Generator().manual_seed(0)
    net = nn.Embedding(LIGHTS, LIGHTS)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    buffer = TensorDictReplayBuffer(
        storage=LazyTensorStorage(CAPACITY),
        sampler=IndexSampler(CAPACITY, law=arguments.law, scorer=rewarded, version=1),  # changed
        batch_size=BATCH,
    )
    for step in range(arguments.steps):
        buffer.extend(collect(net, 4, chance))
        batch = buffer.sample()
        error = batch["reward"] - net(batch["on"]).gather(1, batch["action"][:, None]).squeeze(1)
        loss = (batch["priority_weight"] * error.square()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        buffer.update_priority(batch["index"], error.detach().abs())  # changed
        if step % 500 == 0 or step == arguments.steps - 1:
            right = (net.weight.argmax(1) == torch.arange(LIGHTS)).float().mean()
            share = buffer.sampler.index.stats().rule_share
            print(f"step {step:>5}   right {right:4.0%}   of the draws owed to the rule {share:4.0%}")


if __name__ == "__main__":
    main()
