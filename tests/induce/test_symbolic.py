from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from nser.induce.evidence import Evidence, label_for
from nser.induce.figures import figures, lower_bound
from nser.induce.literals import candidate_literals
from nser.induce.loop import induce, select
from nser.induce.settings import InductionSettings
from nser.induce.symbolic import SymbolicProposer
from nser.rules.parse import parse_rule, parse_rules
from nser.rules.printer import print_formula, print_rule
from nser.rules.ruleset import RuleSet
from nser.rules.syntax import Rule
from nser.rules.verdict import Verdict
from tests.induce.planted import ACTIONS, CHAIN, LEAVES, NUMBERS, play

PLANTED = [f"inside(t, r{room}) & action_is(t, {ACTIONS[action]})" for room, action in enumerate(LEAVES)]
SETTINGS = InductionSettings()


def bodies(rules: tuple[Rule, ...]) -> list[str]:
    return [print_formula(rule.body) for rule in rules]


def test_the_planted_rules_are_found_and_nothing_else() -> None:
    for seed in range(3):
        result = induce(play(200, seed), CHAIN, SymbolicProposer(), SETTINGS)
        assert sorted(bodies(result.ruleset.rules)) == sorted(PLANTED)


def test_a_few_episodes_are_enough_for_what_is_plain() -> None:
    result = induce(play(40, 5), CHAIN, SymbolicProposer(), SETTINGS)
    assert PLANTED[0] in bodies(result.ruleset.rules)


def test_proposals_do_not_read_held_out_rows() -> None:
    evidence = Evidence.from_trajectories(play(200, 1), CHAIN, SETTINGS)
    before = SymbolicProposer().propose(evidence)
    poisoned = np.where(evidence.held, 1e6, evidence.outcomes)
    assert SymbolicProposer().propose(dataclasses.replace(evidence, outcomes=poisoned)) == before
    assert 0.2 < evidence.held.mean() < 0.5


def test_held_out_episodes_are_whole_and_hold_good_and_bad_ones() -> None:
    evidence = Evidence.from_trajectories(play(60, 2), CHAIN, SETTINGS)
    for episode in np.unique(evidence.trajectories.episodes):
        assert len(set(evidence.held[evidence.trajectories.episodes == episode])) == 1
    held = evidence.trajectories[evidence.held]
    assert {0.0, 1.0} == set(held.returns.tolist())


def test_rules_of_numbers_carry_learnable_thresholds() -> None:
    result = induce(play(400, 3), NUMBERS, SymbolicProposer(), SETTINGS)
    assert result.ruleset.rules
    assert any("place(t) < ?" in body or "place(t) > ?" in body for body in bodies(result.ruleset.rules))


def test_a_lying_rule_is_refused_with_its_reason() -> None:
    evidence = Evidence.from_trajectories(play(200, 4), CHAIN, SETTINGS)
    proposals = parse_rules(
        """
        rule right: forall t in step: inside(t, r0) & action_is(t, push) -> good(t)
        rule wrong: forall t in step: inside(t, r0) & action_is(t, wait) -> good(t)
        rule vague: forall t in step: inside(t, r0) & noise(t) & action_is(t, push) -> good(t)
        rule never: forall t in step: inside(t, r3) -> good(t)
        rule other: forall t in step: inside(t, r0) -> action_is(t, push)
        """
    ).rules
    kept, verdicts = select(proposals, evidence)
    assert [rule.name for rule, _ in kept] == ["right"]
    codes = {verdict.rule: verdict.code for verdict in verdicts}
    assert codes == {"right": "kept", "wrong": "D703", "vague": "D801", "never": "D701", "other": "D700"}


class Talker:
    """Proposes a text that it is given."""

    name = "talker"
    rounds = 0
    guesses = False

    def __init__(self, text: str) -> None:
        self.text = text

    def propose(self, evidence: Evidence, previous: RuleSet | None = None) -> str:
        del evidence, previous
        return self.text

    def repair(self, evidence: Evidence, refused: Sequence[Verdict], kept: RuleSet | None = None) -> str:
        del evidence, refused, kept
        return ""


def test_text_that_is_no_rule_and_names_that_nobody_knows_are_reported() -> None:
    text = f"Sure! Here you are:\nrule a: forall t in step: {PLANTED[0]} -> good(t)\n"
    text += "rule b: forall t in step: inside(t, r9) -> good(t)\nrule c: forall t in step: (noise(t) -> good(t)\n"
    result = induce(play(200, 0), CHAIN, Talker(text), SETTINGS)
    assert bodies(result.ruleset.rules) == PLANTED[:1]
    refused = {verdict.rule: verdict.code for verdict in result.verdicts if not verdict.kept}
    assert refused["b"] == "R204"
    assert refused["c"] == "R101"


def test_weights_are_graded_by_the_bound_and_the_best_has_one() -> None:
    rules = induce(play(300, 6), CHAIN, SymbolicProposer(), SETTINGS).ruleset.rules
    assert max(rule.weight for rule in rules) == 1.0
    assert len({rule.weight for rule in rules}) == len(rules)
    # The last door is worth most: the goal lies behind it.
    assert print_formula(max(rules, key=lambda rule: rule.weight).body) == PLANTED[2]


def test_provenance_says_who_when_and_how_well_and_remembers() -> None:
    first = induce(play(100, 7), CHAIN, SymbolicProposer(), SETTINGS, step=500).ruleset
    second = induce(play(200, 8), CHAIN, SymbolicProposer(), SETTINGS, step=900, previous=first).ruleset
    assert (first.version, second.version) == (1, 2)
    for rule in second.rules:
        found = second.provenance[rule.name]
        known = print_formula(rule.body) in bodies(first.rules)
        assert found.since == (500 if known else 900)
        assert found.proposer == "symbolic"
        assert found.precision == 1.0
        assert found.lift is not None
        assert found.lift_low is not None
        assert found.lift_low <= found.lift
        assert found.lift > 0


def test_induction_is_deterministic_and_prints_what_parses() -> None:
    texts = {SymbolicProposer().propose(Evidence.from_trajectories(play(90, 9), CHAIN, SETTINGS)) for _ in range(2)}
    assert len(texts) == 1
    for line in texts.pop().splitlines():
        assert print_rule(parse_rule(line)) == line


def test_labels_but_novelty_need_good_and_bad_episodes() -> None:
    played = play(100, 0)
    good = np.isin(played.numbers, np.flatnonzero(played.returns > 0))
    assert label_for(played, SETTINGS) == "progress"
    one_good = played[~good | (played.numbers == played.numbers[good][0])]
    for part in (played[good], played[~good], played[:0], one_good):
        assert label_for(part, SETTINGS) is None
    curious = InductionSettings(curious=True)
    assert label_for(played, curious) == "progress"
    assert label_for(one_good, curious) == label_for(one_good, InductionSettings(label="novelty")) == "novelty"
    assert label_for(played[:0], curious) is None
    nine = played[~good | np.isin(played.numbers, np.flatnonzero(played.returns > 0)[:9])]
    assert label_for(nine, curious) == "novelty"
    assert label_for(nine, SETTINGS) == "progress"


def test_nothing_to_learn_from_gives_no_rules() -> None:
    assert not induce(play(1, 0), CHAIN, SymbolicProposer(), SETTINGS).ruleset.rules


def test_literals_are_distinct_and_never_constant() -> None:
    table = candidate_literals(play(100, 0), CHAIN)
    assert len({column.tobytes() for column in table.truth.T}) == len(table.formulas)
    assert not table.truth.all(0).any()
    assert table.truth.any(0).all()


def test_figures_are_those_written_out() -> None:
    fires = np.array([1, 1, 0, 0, 1, 0], np.bool_)
    outcomes = np.array([1.0, -1.0, 0.0, 2.0, 3.0, 0.5])
    found = figures(fires, outcomes, np.array([0, 0, 1, 1, 2, 2]))
    assert (found.firings, found.support) == (3, 0.5)
    assert found.coverage == pytest.approx(2 / 3)
    assert found.precision == pytest.approx(2 / 3)
    assert found.lift == pytest.approx(1.0 - outcomes.mean())
    assert found.lift_low <= found.lift <= found.lift_high
    none = figures(np.zeros(6, np.bool_), outcomes, np.array([0, 0, 1, 1, 2, 2]))
    assert none.firings == 0
    assert np.isnan(none.lift)


def test_lift_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    generator = np.random.default_rng(0)
    covered = 0
    for trial in range(200):
        episodes = np.repeat(np.arange(40), 5)
        shared = generator.normal(size=40)[episodes]  # rows of an episode hang together
        fires = generator.random(200) < 0.3
        outcomes = 0.5 * fires + shared + generator.normal(size=200)
        found = figures(fires, outcomes, episodes, seed=trial)
        covered += found.lift_low <= 0.5 * 0.7 <= found.lift_high
    assert covered >= 176  # 88 %: percentile intervals of 40 clusters are a little narrow


def test_lower_bound() -> None:
    assert lower_bound(np.zeros(0)) == -np.inf
    assert lower_bound(np.array([2.0, 2.0])) == 2.0
    assert lower_bound(np.array([0.0, 2.0])) == pytest.approx(1 - 2 / np.sqrt(2))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"label": "luck"}, "found label"),
        ({"gamma": 0.0}, "discount"),
        ({"held_out": 1.0}, "share"),
        ({"beam": 0}, "beam"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        InductionSettings(**wrong)  # type: ignore[arg-type]
