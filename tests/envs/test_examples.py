from __future__ import annotations

import pytest

from nser.envs.check import random_steps
from nser.envs.make import make_env, vocabulary_of
from nser.envs.symbolic import usual_ids
from nser.grounding.evaluator import Evaluator
from nser.rules.parse import parse_rule

TOYS = ("FrozenLake-v1", "CliffWalking-v1", "Taxi-v4", "CartPole-v1")


@pytest.mark.parametrize("env_id", [*usual_ids(), *TOYS])
def test_every_example_is_the_body_of_a_rule_that_can_be_evaluated(env_id: str) -> None:
    env = make_env(env_id)
    vocabulary = vocabulary_of(env)
    steps = random_steps(env, 50)
    for name, example in vocabulary.examples.items():
        rule = parse_rule(f"rule {name}: forall t in step: {example} -> good(t)")
        degrees = Evaluator([rule], vocabulary).score(steps)
        assert degrees.shape == (50,)
        assert bool(((degrees >= 0) & (degrees <= 1)).all())


def test_a_rule_may_speak_of_the_way_that_was_gone() -> None:
    env = make_env("FrozenLake-v1", is_slippery=False)
    vocabulary = vocabulary_of(env)
    steps = random_steps(env, 300)
    text = "rule fall: forall t in step: exists a in action: hole_ahead(t, a) & action_is(t, a) -> good(t)"
    found = Evaluator([parse_rule(text)], vocabulary).score(steps) > 0.5
    cells = "".join(cell.decode() for row in env.unwrapped.desc for cell in row)  # type: ignore[attr-defined]
    moves = {0: -1, 1: 4, 2: 1, 3: -4}
    for state, action, falls in zip(steps.observations[:, 0], steps.actions, found, strict=True):
        row, column = divmod(int(state), 4)
        step = {0: (0, -1), 1: (1, 0), 2: (0, 1), 3: (-1, 0)}[int(action)]
        inside = 0 <= row + step[0] < 4 and 0 <= column + step[1] < 4
        assert bool(falls) == (inside and cells[int(state) + moves[int(action)]] == "H")
