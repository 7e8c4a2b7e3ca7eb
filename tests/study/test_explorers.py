from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from nser.agents.explore import RuleExplorer, UniformExplorer
from nser.envs.make import make_env, vocabulary_of
from nser.study.beforehand import rules_beforehand
from nser.study.conditions import condition_of
from nser.study.errors import StudyError
from nser.study.explorers import LessExplorer, TableExplorer, explorer_of

DOORKEY = make_env("MiniGrid-DoorKey-5x5-v0")
VOCABULARY = vocabulary_of(DOORKEY)


def states(count: int) -> np.ndarray:
    env = make_env("MiniGrid-DoorKey-5x5-v0")
    rng = np.random.default_rng(0)
    found = [env.reset(seed=0)[0]]
    while len(found) < count:
        found.append(env.step(rng.integers(7))[0])
    return np.stack(found)


def test_the_table_gives_its_share_and_the_rest_is_uniform() -> None:
    """With share q an action that the table names has probability q + (1 − q)/7, every other (1 − q)/7."""
    explorer = TableExplorer(VOCABULARY, 0.5, seed=4)
    state = states(1)
    counts = np.bincount(explorer.actions(np.repeat(state, 7000, 0)), minlength=7)
    (named,) = explorer._table.values()
    expected = np.full(7, 0.5 / 7)
    expected[named] += 0.5
    assert chisquare(counts, expected * 7000).pvalue > 0.01


def test_the_table_stays_and_knows_kinds_of_states_only() -> None:
    explorer = TableExplorer(VOCABULARY, 1.0, seed=4)
    seen = states(300)
    chosen = explorer.actions(seen)
    assert (explorer.actions(seen) == chosen).all()
    assert 2 <= len(explorer._table) < len(np.unique(seen, axis=0))
    assert (TableExplorer(VOCABULARY, 1.0, seed=5).actions(seen) != chosen).any()


def test_a_table_needs_truth_predicates() -> None:
    with pytest.raises(StudyError, match="cartpole without truth predicates"):
        TableExplorer(vocabulary_of(make_env("CartPole-v1")), 0.5, 0)


def test_less_epsilon_explores_less_often_and_as_uniformly() -> None:
    explorer = LessExplorer(7, 0.5, seed=1)
    explored = np.count_nonzero(explorer.explores(20_000, 0.6))
    assert chisquare([explored, 20_000 - explored], [6_000, 14_000]).pvalue > 0.01
    counts = np.bincount(explorer.actions(np.zeros((7000, 2))), minlength=7)
    assert chisquare(counts).pvalue > 0.01


def test_rules_give_their_share() -> None:
    """Before the key, the one rule in force there names `pickup`."""
    explorer = explorer_of(condition_of("hand+explore"), VOCABULARY, 7, 3)
    assert isinstance(explorer, RuleExplorer)
    explorer.set_rules(rules_beforehand(VOCABULARY, "hand").rules)
    column = VOCABULARY.features.index("facing_key")
    before_key = next(
        state for state in states(500) if state[column] == 1 and not state[VOCABULARY.features.index("carrying")]
    )
    counts = np.bincount(explorer.actions(np.repeat(before_key[None], 7000, 0)), minlength=7)
    expected = np.full(7, 0.5 / 7)
    expected[VOCABULARY.actions.index("pickup")] += 0.5
    assert chisquare(counts, expected * 7000).pvalue > 0.01


def test_every_condition_gets_its_explorer() -> None:
    kinds = {"per": UniformExplorer, "per+random-table": TableExplorer, "per+less-epsilon": LessExplorer}
    for name, kind in kinds.items():
        assert type(explorer_of(condition_of(name), VOCABULARY, 7, 0)) is kind
