"""Rollout replay in verl, trainer and batches made up: the lines that you change in your own script are marked.

There `MadeUpTrainer` is verl's `RayPPOTrainer`. With verl's trainer V1 (TransferQueue) only the configuration changes;
see the head of `nser/trainers/verl/sampling.py`.

    python examples/verl_sampler.py --steps 4
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from verl import DataProto

from nser.rollouts import RolloutStore, store_preset
from nser.rules.parse import parse_rule
from nser.scorers.rollouts import RolloutScorer
from nser.trainers.verl import with_replay

WORDS = ["-", "2", "+", "3", "=", "5", "6", "check", "guess"]
RULE = 'rule checks [0.8]: forall r in rollout: contains(r, "check") -> good(r)'


class MadeUpTrainer:
    """What replay meets of `RayPPOTrainer`: an update, and log-probs under a policy that moves with every step."""

    global_steps = 0

    def _update_actor(self, batch: DataProto) -> DataProto:
        print(f"step {self.global_steps}: the actor's update gets {len(batch)} rows")
        return DataProto.from_single_dict({}, meta_info={"metrics": {}})

    def _compute_old_log_prob(self, batch: DataProto) -> tuple[DataProto, float]:
        logps = -0.5 - 0.1 * self.global_steps * torch.ones_like(batch.batch["old_log_probs"])
        return DataProto.from_dict({"old_log_probs": logps * batch.batch["response_mask"]}), 0.0


def generate(step: int) -> DataProto:
    """Eight answers to 2 + 3 =, right or wrong, checked or guessed; group advantages computed."""
    rng = np.random.default_rng(step)
    how, what = rng.integers(7, 9, 8), rng.integers(5, 7, 8)
    prompts, responses = torch.tensor([[1, 2, 3, 4]] * 8), torch.from_numpy(np.stack((how, what), 1))
    ids, right = torch.cat((prompts, responses), 1), torch.from_numpy(what == 5).float()
    mask, advantages = torch.ones(8, 2), (right - right.mean()) / (right.std() + 1e-6)
    tensors = {"prompts": prompts, "responses": responses, "input_ids": ids, "attention_mask": torch.ones_like(ids)}
    tensors |= {"position_ids": torch.arange(6).expand(8, 6).clone(), "response_mask": mask}
    tensors |= {"old_log_probs": -0.5 * mask, "advantages": advantages.unsqueeze(1) * mask}
    tensors["token_level_scores"] = torch.stack((torch.zeros(8), right), 1)
    return DataProto.from_dict(tensors, {"uid": np.array([f"sum {step}"] * 8, object)})


def decode(ids: list[int]) -> str:  # your tokenizer's
    return " ".join(WORDS[token] for token in ids)


def main() -> None:
    """Train a few steps and say what was replayed, and why."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=4)
    arguments = parser.parse_args()
    # The lines to change are these three, with your trainer's class and your tokenizer's decode.
    store = RolloutStore(store_preset("nser", ratio=0.5))
    score = RolloutScorer([parse_rule(RULE)], decode=decode).score  # or None: |advantage| and age alone
    trainer = with_replay(MadeUpTrainer, store, score)()
    for step in range(1, arguments.steps + 1):
        trainer.global_steps = step
        trainer._update_actor(generate(step))
    why = store.explain(store.live_slots())
    print("text             replayed  age  |A|   decay  rules  share of draws")
    for row in np.argsort(-why.probability, kind="stable")[::4]:
        (old,) = store.rollouts(why.slots[[row]])
        print(f"{decode(old.response_ids.tolist()):<17}{old.uses:>8}  {why.age[row]:>3}  {old.signal:.2f}", end="  ")
        print(f"{why.decay[row]:.2f}   {why.rule_factor[row]:.2f}   {100 * why.probability[row]:5.2f} %")


if __name__ == "__main__":
    main()
