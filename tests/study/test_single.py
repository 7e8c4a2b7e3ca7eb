from __future__ import annotations

import numpy as np
import pytest

from nser.induce.symbolic import SymbolicProposer
from nser.replay.presets import PRESETS
from nser.study.cells import ROW
from nser.study.conditions import condition_of
from nser.study.dealt import DealtScorer
from nser.study.explorers import LessExplorer, TableExplorer
from nser.study.settings import study_settings
from nser.study.single import SingleRun
from nser.study.stack import StackJob

SETTINGS = study_settings(
    {
        "env": "MiniGrid-DoorKey-5x5-v0", "steps": 400, "eval_every": 150, "eval_episodes": 1, "learning_starts": 100,
        "net_arch": (8,), "agent": "sb3",
    }
)  # fmt: skip


def single(condition: str, ratio: float = 0.25, seed: int = 3) -> SingleRun:
    return SingleRun(SETTINGS, StackJob(condition_of(condition), ratio, (seed,)), SymbolicProposer())


@pytest.mark.parametrize("condition", ["per", "hand+explore", "vlm-rb"])
def test_rows_are_those_of_a_stack(condition: str) -> None:
    told: list[int] = []
    rows = single(condition).run(told.append)
    assert [row["step"] for row in rows] == told == [150, 300, 400]
    for row in rows:
        assert tuple(row) == ROW
        assert (row["condition"], row["seed"], row["ratio"]) == (condition, 3, 0.25)
    assert abs(rows[-1]["updates"] - 300 // 4) <= 1
    assert rows[-1]["rules"] == (5 if "hand" in condition else 0)


def test_conditions_reach_the_agent() -> None:
    assert single("uniform").buffer.index.law == PRESETS["uniform"]
    assert single("induced:eta=2").buffer.index.law.eta == 2
    assert not single("vlm-rb").buffer.feedback
    assert isinstance(single("per+random-table").session.agent.explorer, TableExplorer)
    assert isinstance(single("per+less-epsilon").session.agent.explorer, LessExplorer)
    wrong = single("wrong-unguarded")
    assert wrong.buffer.index.law.max_rule_share == 1
    assert wrong.session.ruleset is not None


def test_ratios_become_whole_numbers_of_steps_and_updates() -> None:
    agent = single("per", 0.75).session.agent
    assert (agent.train_freq.frequency, agent.gradient_steps) == (4, 3)  # type: ignore[union-attr]
    assert agent.target_update_interval == round(200 / 0.75)


def test_the_placebo_deals_out_the_scores_of_rules() -> None:
    cell = single("placebo")
    cell.run(lambda step: None)
    ruleset = single("hand").session.ruleset
    assert ruleset is not None
    cell.put_in_force(ruleset)
    scorer = cell.buffer.scorer
    assert isinstance(scorer, DealtScorer)
    slots = cell.buffer.stored_rows()
    meant = scorer.rules.relevance(cell.buffer.steps_of(slots))
    given = cell.buffer.index.explain(slots).relevance
    assert np.allclose(np.sort(given), np.sort(meant), atol=1e-6)
    assert not np.allclose(given, meant)
