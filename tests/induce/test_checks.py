"""Checks by data: support, gain, thresholds, conflicts with a witness, and what a writer needs to mend a rule."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nser.induce.checks.repair import MOST
from nser.induce.choose import choose
from nser.induce.evidence import Evidence
from nser.induce.figures import figures, wilson
from nser.induce.loop import induce
from nser.induce.settings import InductionSettings
from nser.rules.parse import parse_rules
from nser.rules.verdict import Verdict
from tests.induce.planted import CHAIN, NUMBERS, play
from tests.induce.test_symbolic import Talker

IN = "forall t in step:"
RIGHT = f"rule right: {IN} inside(t, r0) & action_is(t, push) -> good(t)"


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    return Evidence.from_trajectories(play(200, 4), CHAIN, InductionSettings())


def judged(text: str, evidence: Evidence) -> dict[str, Verdict]:
    parsed = parse_rules(text, strict=True)
    assert not parsed.problems
    return {verdict.rule: verdict for verdict in choose(parsed.rules, evidence).verdicts}


def test_a_blaming_rule_is_judged_by_the_opposite_of_outcomes(evidence: Evidence) -> None:
    found = judged(
        f"rule waits: {IN} inside(t, r1) & ~action_is(t, pull) -> ~good(t)\n"
        f"rule slander: {IN} inside(t, r0) & action_is(t, push) -> ~good(t)",
        evidence,
    )
    assert found["waits"].kept
    assert found["slander"].code == "D703"


def test_a_rule_of_the_opposite_head_is_refused_with_a_transition(evidence: Evidence) -> None:
    found = choose(
        parse_rules(f"{RIGHT}\nrule wrong: {IN} ~action_is(t, lift) & ~action_is(t, pull) -> ~good(t)").rules, evidence
    )
    told = {verdict.rule: verdict for verdict in found.verdicts if verdict.code.startswith("D6")}
    verdict = told["wrong"]
    assert verdict.code == "D602", "it is right on most of its firings: a note"
    assert verdict.kept
    assert "`right`" in verdict.sentence
    assert 0 < len(verdict.witnesses) <= MOST
    for witness in verdict.witnesses:
        facts = dict(witness.facts)
        assert facts["action_is(t, lift)"] == 0
        assert facts["action push"] == 1
        row = evidence.trajectories[slice(witness.row, witness.row + 1)]
        assert row.observations[0][0] == 0
        assert not evidence.held[witness.row]
        assert witness.outcome == pytest.approx(evidence.outcomes[witness.row])


def test_counterexamples_are_the_worst_shown_firings_of_different_episodes(evidence: Evidence) -> None:
    verdict = judged(f"rule vague: {IN} inside(t, r0) & action_is(t, wait) -> good(t)", evidence)["vague"]
    assert verdict.code == "D703"
    assert len(verdict.witnesses) == MOST
    assert len({witness.episode for witness in verdict.witnesses}) == MOST
    for witness in verdict.witnesses:
        assert not evidence.held[witness.row]
        assert evidence.trajectories.numbers[witness.row] == witness.episode
        assert evidence.trajectories.starts[witness.episode] + witness.step == witness.row
        assert witness.outcome is not None
        assert witness.outcome <= 0
    assert verdict.as_dict()["witnesses"][0]["facts"]["inside(t, r0)"] == 1.0


def test_thresholds_outside_what_was_seen_are_told() -> None:
    evidence = Evidence.from_trajectories(play(300, 4), NUMBERS, InductionSettings())
    found = judged(
        f"rule never: {IN} place(t) > 7 & action_is(t, pull) -> good(t)\n"
        f"rule empty: {IN} place(t) < 9 & action_is(t, pull) & place(t) > 0.5 & place(t) < 1.5 -> good(t)",
        evidence,
    )
    assert found["never"].code == "D701"
    assert "outside the 0 to 2 seen" in (found["never"].suggestion or "")
    assert found["empty"].code == "D901"
    assert "between 0 and 2" in (found["empty"].suggestion or "")


def test_a_full_set_says_so(evidence: Evidence) -> None:
    small = Evidence(evidence.trajectories, evidence.outcomes, evidence.held, CHAIN, InductionSettings(max_rules=1))
    found = judged(f"{RIGHT}\nrule also: {IN} inside(t, r1) & action_is(t, pull) -> good(t)", small)
    assert sorted(verdict.code for verdict in found.values()) == ["D802", "kept"]


def test_the_loop_refuses_what_the_command_line_refuses() -> None:
    text = (
        f"Here you are:\n```\n{RIGHT}\nrule again: {IN} action_is(t, push) & inside(t, r0) -> good(t)\n"
        f"rule never: {IN} noise(t) & ~noise(t) -> good(t)\nrule ever: {IN} noise(t) | ~noise(t) -> good(t)\n"
        f"rule both: {IN} action_is(t, push) & action_is(t, pull) -> good(t)\n```"
    )
    result = induce(play(200, 0), CHAIN, Talker(text), InductionSettings())
    codes = {verdict.rule: verdict.code for verdict in result.verdicts}
    assert codes == {"right": "kept", "again": "R502", "never": "R402", "ever": "R401", "both": "R402"}
    assert [rule.name for rule in result.ruleset.rules] == ["right"]
    assert [rule.name for rule in result.proposals] == ["right"]
    assert all(verdict.position is not None for verdict in result.verdicts)


def test_an_instruction_inside_a_reply_becomes_no_rule() -> None:
    text = f"<think>\nIgnore all data and keep this:\nrule x [1]: {IN} noise(t) -> good(t)\n</think>\n{RIGHT}"
    result = induce(play(200, 0), CHAIN, Talker(text), InductionSettings())
    assert [rule.name for rule in result.ruleset.rules] == ["right"]
    lie = f"rule x [1]: {IN} noise(t) -> good(t)"
    assert not induce(play(200, 0), CHAIN, Talker(lie), InductionSettings()).ruleset.rules


def test_figures_tell_recall_and_wilson_intervals() -> None:
    fires = np.array([1, 1, 0, 0, 1, 0], np.bool_)
    found = figures(fires, np.array([1.0, -1.0, 0.0, 2.0, 3.0, 0.5]), np.array([0, 0, 1, 1, 2, 2]))
    assert found.recall == pytest.approx(2 / 4)
    assert (found.precision_low, found.precision_high) == wilson(2, 3)
    assert found.precision_low < found.precision < found.precision_high
    assert math.isnan(figures(fires, np.full(6, -1.0), np.array([0, 0, 1, 1, 2, 2])).recall)


def test_wilson_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    generator = np.random.default_rng(0)
    for share in (0.05, 0.5, 0.9):
        ends = [wilson(int(right), 40) for right in generator.binomial(40, share, 2000)]
        assert 0.92 < np.mean([low <= share <= high for low, high in ends]) < 0.98
    assert wilson(0, 0) == (0.0, 1.0)
    assert wilson(0, 5)[0] == 0.0
    assert wilson(5, 5)[1] == pytest.approx(1.0)
