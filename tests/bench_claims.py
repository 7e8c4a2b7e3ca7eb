"""Do the two papers' claims about old rollouts hold where the policy drifts fast? Five seeds each, a table.

    python -m tests.bench_claims        # a minute of one CPU thread

1. arXiv 2604.16918: PER without age decay falls below on-policy training or below FreshPER.
2. arXiv 2606.04560: evicting by age, a small τ_max beats a large one.

The toy: name a number of 4 digits for each of ten prompts; a digit earns 1 − distance/9, and every digit of the
truth moves by one now and then, so that the policy never comes to rest: a rollout that was good is bad some versions
later, and its advantage, frozen at birth, keeps on praising it. The policy has free logits for every prompt, place
and digit, which shrink a little at every version so that it keeps exploring. PPO's clipped objective on log-probs of
the policy that generated, as in both papers, and plain gradient steps. Of three settings that were tried this is the
one where stale rollouts hurt: with a truth at rest, or with steps three times as large, no condition differs by much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import mean, stdev

import numpy as np
from numpy.typing import NDArray

from nser.replay import Law
from nser.rollouts import Rollout, RolloutStore, StoreSettings, group_advantages, pad_batch, plan, store_preset

PROMPTS, PLACES, DIGITS = 10, 4, 10
GROUPS, GROUP = 4, 8
STEPS, SEEDS = 300, 5
RATE = 20.0
MOVES = 0.03
"""Chance that a digit of the truth moves in a version."""
FORGETTING = 0.97
"""What is left of the logits after a version."""


class Policy:
    """Digits independent of each other: logits [prompt, place, digit], all 0 at the beginning."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.logits = np.zeros((PROMPTS, PLACES, DIGITS))
        self.rng = rng

    def probabilities(self) -> NDArray:
        """[prompt, place, digit]."""
        powers = np.exp(self.logits - self.logits.max(-1, keepdims=True))
        return np.asarray(powers / powers.sum(-1, keepdims=True))

    def learn(self, rollouts: Sequence[Rollout], settings: StoreSettings) -> None:
        """One gradient step on the clipped objective, mean over the rollouts."""
        if not rollouts:
            return
        batch = pad_batch(rollouts, pad_id=0)
        prompt, said, places = batch.prompt_ids[:, 0], batch.response_ids, np.arange(PLACES)
        limit = settings.advantage_clip or np.inf
        advantage = batch.advantages.clip(-limit, limit)[:, None]  # [n, 1]
        now = self.probabilities()[prompt]  # [n, place, digit]
        ratio = now[np.arange(len(rollouts))[:, None], places, said] / np.exp(batch.behavior_logps)
        is_open = np.where(advantage > 0, ratio <= 1 + settings.clip_high, ratio >= 1 - settings.clip_low)
        coefficient = advantage * ratio * is_open  # [n, place]
        step = np.zeros_like(self.logits)
        np.add.at(step, prompt, -coefficient[:, :, None] * now)
        np.add.at(step, (prompt[:, None], places, said), coefficient)
        self.logits += RATE * step / len(rollouts) / PLACES


def generated(policy: Policy, targets: NDArray, version: int) -> list[Rollout]:
    """Groups of rollouts of the present policy."""
    rollouts, now = [], policy.probabilities()
    for group, prompt in enumerate(policy.rng.choice(PROMPTS, GROUPS, replace=False)):
        chances = now[prompt].cumsum(-1)  # [place, digit]
        said = (policy.rng.random((GROUP, PLACES, 1)) > chances).sum(-1).clip(max=DIGITS - 1)  # [rollout, place]
        rewards = (1 - np.abs(said - targets[prompt]) / 9).mean(1)
        advantages = group_advantages(rewards, [str(group)] * GROUP).values
        rollouts += [
            Rollout(
                prompt_ids=np.array([prompt], np.int32),
                response_ids=said[row].astype(np.int32),
                response_mask=np.ones(PLACES, np.bool_),
                behavior_logps=np.log(now[prompt, np.arange(PLACES), said[row]]).astype(np.float32),
                advantage=float(advantages[row]),
                reward=float(rewards[row]),
                policy_version=(version, version),
                group=f"{version}.{group}.{row}",
            )
            for row in range(GROUP)
        ]
    return rollouts


def final_reward(settings: StoreSettings, seed: int) -> float:
    """Mean reward of what the policy generates in the last third of a run."""
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, DIGITS, (PROMPTS, PLACES))
    policy, store, seen = Policy(rng), RolloutStore(settings, seed), []
    for version in range(STEPS):
        store.advance(version)
        moved = rng.choice([-1, 0, 1], targets.shape, p=[MOVES / 2, 1 - MOVES, MOVES / 2])
        targets = (targets + moved).clip(0, DIGITS - 1)
        policy.logits *= FORGETTING
        fresh = generated(policy, targets, version)
        seen.append(mean(rollout.reward for rollout in fresh))
        for update in plan(store, fresh).updates:
            policy.learn(update.rollouts, settings)
    return mean(seen[-STEPS // 3 :])


def freshper(tau: float) -> StoreSettings:
    """The preset with another τ; advantages unclipped, as on-policy training has them."""
    preset = store_preset("freshper")
    return replace(preset, law=replace(preset.law, tau=tau), advantage_clip=None)


def evicting(max_age: int) -> StoreSettings:
    """The preset with another τ_max and as little warm-up as the toy needs."""
    preset = store_preset("rollout-grpo", warm_up=0)
    return replace(preset, law=replace(preset.law, max_age=max_age))


CONDITIONS = {
    "on-policy": store_preset("none"),
    "PER, no decay": freshper(Law().tau),
    "FreshPER, τ = 500": freshper(500.0),
    "FreshPER, τ = 50": freshper(50.0),
    "FreshPER, τ = 5": freshper(5.0),
    **{f"|A|, τ_max = {age}": evicting(age) for age in (3, 10, 30, 100, 300)},
}


def main() -> None:
    """Print a line for each condition."""
    print(f"{'condition':<20} reward of the last {STEPS // 3} of {STEPS} steps, mean ± SD over {SEEDS} seeds")
    for name, settings in CONDITIONS.items():
        found = [final_reward(settings, seed) for seed in range(SEEDS)]
        print(
            f"{name:<20} {mean(found):.3f} ± {stdev(found):.3f}   {' '.join(f'{value:.3f}' for value in found)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
