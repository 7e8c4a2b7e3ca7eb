from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nser.induce.proposing import NoProposer
from nser.induce.symbolic import SymbolicProposer
from nser.rules.ruleset import RuleSet
from nser.runs.session import Streams
from nser.runs.settings import RunSettings
from nser.study.beforehand import rules_beforehand
from nser.study.cells import ROW, Row
from nser.study.conditions import condition_of
from nser.study.errors import StudyError
from nser.study.member import Member
from nser.study.settings import StudySettings, study_settings
from nser.study.stack import Stack, StackJob
from nser.study.world import World
from tests.parts import PARTS
from tests.pixels import PIXELS

DOORKEY = "MiniGrid-DoorKey-5x5-v0"


def small(env: str = DOORKEY, **values: Any) -> StudySettings:
    return study_settings(
        {
            "env": env, "steps": 600, "eval_every": 300, "eval_episodes": 3, "learning_starts": 100, "net_arch": (16,),
            "target_every": 20, **values,
        }
    )  # fmt: skip


def stack(condition: str, seeds: tuple[int, ...], settings: StudySettings | None = None, ratio: float = 0.25) -> Stack:
    return Stack(settings or small(), StackJob(condition_of(condition), ratio, seeds), SymbolicProposer())


def trained(
    condition: str, seeds: tuple[int, ...], settings: StudySettings | None = None, ratio: float = 0.25
) -> Stack:
    found = stack(condition, seeds, settings, ratio)
    found.run(lambda step: None)
    return found


def of_seed(rows: list[Row], seed: int) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k != "cpu_seconds"} for row in rows if row["seed"] == seed]


def test_a_seed_does_the_same_whoever_else_is_in_its_stack() -> None:
    """Every action of 600 steps, bit for bit; and so every transition, reward and figure."""
    many, few = trained("hand+explore", (0, 1, 2, 3, 4, 5)), trained("hand+explore", (3, 9))
    assert (many.ring.actions[3] == few.ring.actions[0]).all()
    assert (many.ring.observations[3] == few.ring.observations[0]).all()
    assert of_seed(many.rows, 3) == of_seed(few.rows, 3)
    assert np.allclose(many.learner.online.flat[3], few.learner.online.flat[0], atol=1e-5)


def test_the_same_seed_gives_the_same_rows_and_another_gives_others() -> None:
    one, again = trained("per", (1, 2)), trained("per", (1, 2))
    assert of_seed(one.rows, 1) == of_seed(again.rows, 1)
    assert (one.ring.actions[0] == again.ring.actions[0]).all()
    assert (one.ring.actions[0] != one.ring.actions[1]).any()


def test_seeds_are_paired_over_conditions() -> None:
    """Until the first update conditions differ in nothing; layouts of episodes and of evaluations stay the same."""
    settings = small(learning_starts=400)
    plain, rules = trained("uniform", (5,), settings), trained("hand:audit=off", (5,), settings)
    assert (plain.ring.actions[0, :400] == rules.ring.actions[0, :400]).all()
    assert (plain.ring.actions[0] != rules.ring.actions[0]).any()
    assert len(set(vars(Streams.of(5)).values())) == 6
    first = [int(np.flatnonzero(s.ring.episodes[0] == e)[0]) for s in (plain, rules) for e in (1, 2)]
    for episode in (0, 1):
        starts = [s.ring.observations[0, first[2 * i + episode]] for i, s in enumerate((plain, rules))]
        assert (starts[0] == starts[1]).all()


def test_rows_have_the_keys_of_the_schema_and_add_up() -> None:
    rows = trained("hand", (0, 1)).rows
    assert [(row["step"], row["seed"]) for row in rows] == [(300, 0), (300, 1), (600, 0), (600, 1)]
    for row in rows:
        assert tuple(row) == ROW
        assert 0 <= row["success"] <= 1
        assert row["train_success"] is None or 0 <= row["train_success"] <= 1
        assert row["rules"] == 5
        assert 0 < row["rule_share"] <= 0.5
    assert rows[2]["updates"] == 500 // 4
    found = trained("hand", (0, 1))
    assert sum(row["train_episodes"] for row in of_seed(found.rows, 0)) == found.ring.finished[0].sum()


@pytest.mark.parametrize(("ratio", "updates"), [(0.125, 63), (0.3, 150), (1.0, 500), (2.0, 1000)])
def test_ratios_are_kept(ratio: float, updates: int) -> None:
    found = stack("uniform", (0,), small(eval_episodes=1, eval_every=600), ratio)
    found.run(lambda step: None)
    assert abs(found.learner.updates - updates) <= 1
    assert found.members[0].index.clock == found.learner.updates


def test_epsilon_is_that_of_train() -> None:
    """From 1 to .1 over 40 % of the steps, and 1 during the warm-up, as `RunSettings` has it."""
    defaults = RunSettings(env="any")
    settings = small(steps=1000, learning_starts=100)
    assert (settings.exploration_fraction, settings.exploration_final_eps) == (
        defaults.exploration_fraction,
        defaults.exploration_final_eps,
    )
    found = stack("uniform", (0,), settings)
    assert [found.epsilon(step) for step in (1, 100)] == [1.0, 1.0]
    assert found.epsilon(201) == pytest.approx(1 - 0.9 * 200 / 400)
    assert found.epsilon(401) == pytest.approx(0.1) == found.epsilon(1000)


def test_rules_are_induced_scored_and_explored_by() -> None:
    settings = small("MiniGrid-LavaGapS5-v0", steps=2000, eval_every=2000, eval_episodes=1, learning_starts=1000)
    found = trained("induced+explore:induce_every=500", (0, 1), settings)
    learnt = [member for member in found.members if member.ruleset is not None]
    assert learnt
    for member in learnt:
        assert member.ruleset is not None
        assert 0 < member.rule_share() <= 0.5
        explained = member.index.explain(member.index.live_slots())
        assert explained.version[-1] == member.ruleset.version
        assert explained.relevance.max() > 0
        assert member.explorer.state()["guided"] > 0


def test_scores_in_the_index_are_those_of_the_rules() -> None:
    """Scored in blocks as they come; the slow twin scores all at once."""
    found = trained("hand:audit=off", (4,))
    (member,) = found.members
    assert member.scorer is not None
    slots = found.ring.slots()
    expected = member.scorer.relevance(found.ring.steps(0, slots))
    assert np.allclose(member.index.explain(slots).relevance, expected)
    assert (expected > 0.5).any()


def test_events_are_scored_once_their_future_is_known() -> None:
    found = trained("vlm-rb", (4,))
    (member,) = found.members
    assert member.scorer is not None
    slots = found.ring.slots()
    expected = member.scorer.relevance(found.ring.steps(0, slots))
    told = member.index.explain(slots).relevance
    # The newest 31 of the block before the last may still wait for what follows; all else is final.
    assert (told[:500] == expected[:500]).all()
    assert 0 < expected.mean() < 1


def test_the_placebo_boosts_as_much_as_the_rules_do() -> None:
    found = stack("placebo", (0,))
    rules, (member,) = stack("hand", (0,)), found.members
    ruleset = rules_beforehand(found.world.vocabulary, "hand")
    found.run(lambda step: None)
    rules.run(lambda step: None)
    member.put_in_force(RuleSet(ruleset.rules, version=9))
    slots = found.ring.slots()
    given = member.index.explain(slots).relevance
    meant = member.scorer.rules.relevance(found.ring.steps(0, slots))  # type: ignore[union-attr]
    assert np.allclose(np.sort(given), np.sort(meant), atol=1e-6)
    assert not np.allclose(given, meant)


def test_wrong_rules_are_held_by_the_guard_unless_it_is_off() -> None:
    guarded, free = (trained(name, (0,)).rows[-1]["rule_share"] for name in ("wrong", "wrong-unguarded"))
    assert guarded <= 0.5
    assert free > guarded


def test_rules_known_beforehand_leave_when_data_refute_them() -> None:
    """To walk into holes is bad; to walk at walls is no worse than to walk elsewhere on slippery ice."""
    settings = small("FrozenLake-v1", steps=12_000, eval_every=12_000)
    audited, free = (
        Stack(settings, StackJob(condition_of(name), 0.25, (0, 1)), NoProposer())
        for name in ("wrong", "wrong:audit=off")
    )
    for one in (audited, free):
        one.run(lambda step: None)
    assert [_names(member) for member in free.members] == [["dive", "bump"]] * 2
    assert [_names(member) for member in audited.members] == [["bump"]] * 2


def _names(member: Member) -> list[str]:
    assert member.ruleset is not None
    return [rule.name for rule in member.ruleset.rules]


def test_what_a_network_does_not_see_rules_do() -> None:
    world = World.of(DOORKEY, ("facing_*", "past_door"))
    assert (world.width, world.inputs) == (22, 16)
    seen = world.encode(np.arange(44, dtype=np.float32).reshape(2, 22))
    names = [world.vocabulary.features[int(column)] for column in seen[0]]
    assert "carrying" in names
    assert not any(name.startswith("facing") or name == "past_door" for name in names)
    found = trained("hand", (0,), small(unseen=["facing_*", "past_door"]))
    assert found.learner.online.sizes[0] == 16
    assert found.rows[-1]["rule_share"] > 0
    with pytest.raises(StudyError, match=r"found unseen='facings', which names no feature"):
        World.of(DOORKEY, ("facings",))
    with pytest.raises(StudyError, match="leaves the network nothing to see"):
        World.of(DOORKEY, ("*",))
    with pytest.raises(StudyError, match="expected --agent stacked"):
        small(unseen=["facing_*"], agent="sb3")


@pytest.mark.parametrize("env", ["CartPole-v1", "CliffWalking-v1", "nser/Sokoban-6x6-1-v0"])
def test_other_worlds_train_too(env: str) -> None:
    found = trained("hand", (0, 1), small(env, steps=300, eval_every=300, eval_episodes=2))
    assert all(np.isfinite(row["return"]) for row in found.rows)
    assert found.rows[0]["rule_share"] > 0


def test_discrete_observations_are_stored_as_one_number_and_read_one_hot() -> None:
    world = World.of("FrozenLake-v1")
    assert (world.width, world.inputs) == (1, 16)
    encoded = world.encode(np.array([[3.0], [15.0]], np.float32))
    assert encoded.argmax(1).tolist() == [3, 15]
    assert encoded.sum() == 2


def test_spaces_that_a_stack_cannot_take_are_refused() -> None:
    with pytest.raises(StudyError, match=r"found action space Box.*expected Discrete"):
        World.of("Pendulum-v1")
    with pytest.raises(StudyError, match=r"found observation space Box.*uint8.*expected a Box of floats or Discrete"):
        World.of(PIXELS)


def test_observations_of_several_parts_are_one_row_and_unseen_ones_have_names() -> None:
    found = trained("induced", (0, 1), small(PARTS, steps=300, eval_every=300, eval_episodes=2))
    assert all(np.isfinite(row["return"]) for row in found.rows)
    world = World.of(PARTS, ("light=*", "heat1"))
    assert (world.width, world.inputs) == (7, 4)
    seen = world.encode(np.arange(7, dtype=np.float32)[None])
    assert seen.tolist() == [[0, 4, 5, 6]]
