"""Rollout replay and rules inside TRL's GRPOTrainer, on one CPU thread, with a tiny local model.

    python examples/trl_grpo_replay.py                    # half a minute; needs: pip install nser[trl]
    python examples/trl_grpo_replay.py --replay none      # the same without replay

The model (85 thousand parameters, fresh weights) is to emit the digit that the prompt names. Lines marked (*) are
what you change in your own script.
"""

import argparse
import tempfile

import torch
from transformers import PrinterCallback
from trl import GRPOConfig

from nser.rules.parse import parse_rules
from nser.scorers.rollouts import RolloutScorer
from nser.trainers import digits
from nser.trainers.trl import ReplayGRPOTrainer, RolloutReplay  # (*) was: from trl import GRPOTrainer

# What a person knows of an answer's form, without knowing the answer: no letters.
LETTERS = " & ".join(f'~contains(r, "{letter}")' for letter in "abcdefgh")
RULE = f"rule form: forall r in rollout: {LETTERS} -> good(r)"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--replay", default="nser", help="nser, rollout-grpo, freshper, uniform, none")
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    torch.set_num_threads(1)
    scorer = RolloutScorer(parse_rules(RULE).rules)
    with tempfile.TemporaryDirectory() as output:
        trainer = ReplayGRPOTrainer(
            digits.model(wanted.seed),
            digits.reward,
            args=GRPOConfig(
                output,
                per_device_train_batch_size=16,
                num_generations=4,
                max_completion_length=digits.LENGTH,
                max_steps=wanted.steps,
                learning_rate=1e-3,
                lr_scheduler_type="constant",
                logging_steps=max(1, wanted.steps // 5),
                save_strategy="no",
                report_to=[],
                use_cpu=True,
                bf16=False,
                disable_tqdm=True,
                seed=wanted.seed,
            ),
            train_dataset=digits.prompts(400),
            processing_class=digits.tokenizer(),
            replay=RolloutReplay(store=wanted.replay, scorer=scorer.score, task="digit"),  # (*)
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    for logged in trainer.state.log_history[:-1]:
        rows, age = logged.get("replay/rows", 0), logged.get("replay/age", 0)
        print(f"step {logged['step']:>4}: reward {logged['reward']:.2f}, {rows:.0f} replayed rows {age:.1f} steps old")
    figures = trainer.rollout_store.metrics()
    print(f"{figures.drawn} rollouts replayed; {figures.rule_share:.0%} of the draws owed to the rule")


if __name__ == "__main__":
    main()
