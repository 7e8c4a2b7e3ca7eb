"""Does rollout replay pay inside TRL? "Emit the given digit", an 85k-parameter Llama, mean fresh reward over training.

    python -m tests.bench_trl                 # 6 conditions × 10 seeds × 200 steps: 10 CPU-minutes
    python -m tests.bench_trl --seeds 2 --steps 50

The law's α = 1 and τ_max = 20 were chosen on seeds 0 to 4; the seeds of a run begin at 5.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mean, stdev
from typing import Any

import torch

from nser.replay import Law, preset
from nser.rollouts import Rollout, StoreSettings
from nser.trainers import digits
from nser.trainers.trl import ReplayGRPOTrainer, RolloutReplay

FIRST_SEED = 5
ADVANTAGE = Law(alpha=1.0, max_age=20, beta=0.0, correct="none", stratified=False)
"""P ∝ |A|, ages up to 20, no importance weight."""

RULES = replace(ADVANTAGE, tau=20.0, eta=4.0)


def only_digits(rollouts: Sequence[Rollout]) -> list[float]:
    """The rule of a person who knows the format of an answer and not the answer: nothing but digits."""
    said = [rollout.metadata["messages"][-1]["content"].split() for rollout in rollouts]
    return [float(bool(words) and set(words) <= set(digits.DIGITS)) for words in said]


@dataclass(frozen=True)
class Condition:
    """Fresh rollouts a step, and what is replayed beside them."""

    fresh: int
    replay: RolloutReplay | StoreSettings | str


CONDITIONS = {
    "no replay, 16 fresh": Condition(16, "none"),
    "no replay, 24 fresh": Condition(24, "none"),
    "uniform, decoupled": Condition(16, StoreSettings(law=preset("uniform", max_age=20))),
    "|A|, clip": Condition(16, StoreSettings(law=ADVANTAGE, correction="clip")),
    "|A|, decoupled": Condition(16, StoreSettings(law=ADVANTAGE)),
    "rules × |A| × age, decoupled": Condition(16, RolloutReplay(store=StoreSettings(law=RULES), scorer=only_digits)),
}


def trainer(condition: Condition, seed: int, steps: int, output: str, **settings: Any) -> ReplayGRPOTrainer:
    """A trainer of one run; ``settings`` are further fields of its `GRPOConfig`."""
    from trl import GRPOConfig

    usual: dict[str, Any] = {
        "learning_rate": 1e-3,
        "lr_scheduler_type": "constant",
        "num_generations": 4,
        "max_completion_length": digits.LENGTH,
        "gradient_checkpointing": False,
        "save_strategy": "no",
        "logging_strategy": "no",
    }
    plain: dict[str, Any] = {"use_cpu": True, "bf16": False, "report_to": [], "disable_tqdm": True}
    args = GRPOConfig(
        output, per_device_train_batch_size=condition.fresh, max_steps=steps, seed=seed, **(usual | plain | settings)
    )
    return ReplayGRPOTrainer(
        digits.model(seed),
        digits.reward,
        args=args,
        train_dataset=digits.prompts(400),
        processing_class=digits.tokenizer(),
        replay=condition.replay,
    )


def mean_fresh_reward(condition: Condition, seed: int, steps: int) -> float:
    """Reward of the fresh rollouts of a run, mean over all of its steps."""
    from transformers import PrinterCallback

    seen: list[float] = []

    def reward(completions: list[str], digit: list[str], **_: Any) -> list[float]:
        found = digits.reward(completions, digit)
        seen.append(mean(found))
        return found

    with tempfile.TemporaryDirectory() as output:
        run = trainer(condition, seed, steps, output)
        run.reward_funcs = [reward]
        run.remove_callback(PrinterCallback)
        run.train()
    return mean(seen)


def main() -> None:
    """Print a line for each condition as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=200)
    wanted = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    print(f"{'condition':<30} mean ± SD over {wanted.seeds} seeds of {wanted.steps} steps")
    for name, condition in CONDITIONS.items():
        found = [mean_fresh_reward(condition, FIRST_SEED + seed, wanted.steps) for seed in range(wanted.seeds)]
        spread = stdev(found) if len(found) > 1 else 0.0
        print(
            f"{name:<30} {mean(found):.3f} ± {spread:.3f}   {' '.join(f'{value:.3f}' for value in found)}", flush=True
        )


if __name__ == "__main__":
    main()
