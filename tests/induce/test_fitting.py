"""Guessed thresholds: fitted on shown episodes before they are judged, told before and after, never out of range."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nser.induce.evidence import Evidence
from nser.induce.fitting import FITTED, fit_guesses
from nser.induce.loop import Induction, induce
from nser.induce.settings import InductionSettings
from nser.rules.parse import parse_rule, parse_rules
from nser.rules.ruleset import RuleSet, skeleton
from nser.rules.syntax import Comparison, Rule
from nser.rules.walk import nodes
from tests.induce.planted import NUMBERS, play
from tests.induce.test_symbolic import Talker

# Only `pull` leaves room 1; nothing lies between 1.5 and 1.9.
POOR = "rule narrow: forall t in step: place(t) > ?1.5 & place(t) < ?1.9 & action_is(t, pull) -> good(t)"
FIXED = POOR.replace("?", "")
EVIDENCE = Evidence.from_trajectories(play(300, 4), NUMBERS, InductionSettings())


def run(text: str, guesses: bool, previous: RuleSet | None = None, step: int = 0) -> Induction:
    talker = Talker(text)
    talker.guesses = guesses
    return induce(play(300, 4), NUMBERS, talker, InductionSettings(), previous=previous, step=step)


def cuts(rule: Rule) -> list[float]:
    return [node.threshold.value for node in nodes(rule.body) if isinstance(node, Comparison)]


def test_a_rule_with_a_poor_guess_is_kept_only_because_it_is_fitted() -> None:
    for refused in (run(POOR, guesses=False), run(FIXED, guesses=True)):
        assert refused.ruleset.rules == ()
        assert [verdict.code for verdict in refused.verdicts] == ["D701"]
    found = run(POOR, guesses=True)
    (rule,) = found.ruleset.rules
    assert sorted(cuts(rule)) == pytest.approx([0.5, 1.5], abs=0.5)
    assert found.ruleset.provenance["narrow"].precision == 1.0


def test_what_was_before_and_after_is_told_of_each_rule() -> None:
    found = run(POOR, guesses=True)
    (report,) = found.fits
    assert report.rule == "narrow"
    assert [change.before for change in report.thresholds] == [1.5, 1.9]
    assert report.correlation[1] > 0.3 > report.correlation[0] == 0
    assert report.support[1] > report.support[0] == 0
    note, kept = found.verdicts
    assert (note.code, note.note, kept.code) == (FITTED, True, "kept")
    assert "`place(t) > ?1.5` became" in note.sentence
    assert "m (seen 0 to 2)" in note.sentence


def test_held_out_episodes_take_no_part() -> None:
    rules = parse_rules(POOR).rules
    blind = Evidence(
        EVIDENCE.trajectories,
        np.where(EVIDENCE.held, -EVIDENCE.outcomes, EVIDENCE.outcomes),
        EVIDENCE.held,
        NUMBERS,
        EVIDENCE.settings,
    )
    assert fit_guesses(rules, blind).rules == fit_guesses(rules, EVIDENCE).rules


@settings(max_examples=10, deadline=None)
@given(
    st.floats(-50, 50), st.floats(-50, 50), st.sampled_from(["good(t)", "~good(t)"]), st.sampled_from(["pull", "wait"])
)
def test_fitting_keeps_the_rule_and_the_range_and_makes_nothing_worse(
    low: float, high: float, head: str, action: str
) -> None:
    text = (
        f"rule r: forall t in step: place(t) > ?{low:.3f} & place(t) < ?{high:.3f} & action_is(t, {action}) -> {head}"
    )
    rule = parse_rule(text)
    found = fit_guesses([rule], EVIDENCE)
    (fitted,), (report,) = found.rules, found.reports
    assert skeleton(fitted) == skeleton(rule)
    if fitted != rule:
        assert all(0 <= cut <= 2 for cut in cuts(fitted))
        sign = -1 if head.startswith("~") else 1
        assert sign * report.correlation[1] >= sign * report.correlation[0]
    assert bool(found.notes) == (report.retired is None)


def test_rules_without_a_guess_and_heads_that_nobody_judges_are_left_alone() -> None:
    texts = ("place(t) < 1.5 & action_is(t, pull) -> good(t)", "place(t) < ?1.5 -> action_is(t, pull)")
    rules = parse_rules("\n".join(f"rule r{i}: forall t in step: {text}" for i, text in enumerate(texts))).rules
    found = fit_guesses(rules, EVIDENCE)
    assert (found.rules, found.reports, found.notes) == (rules, (), ())
    assert fit_guesses([], EVIDENCE).rules == ()


def test_outcomes_that_are_all_alike_teach_nothing() -> None:
    rules = parse_rules(POOR).rules
    flat = Evidence(EVIDENCE.trajectories, np.zeros(len(EVIDENCE.outcomes)), EVIDENCE.held, NUMBERS, EVIDENCE.settings)
    assert fit_guesses(rules, flat).rules == rules


def test_a_rule_whose_threshold_moves_is_as_old_as_it_was() -> None:
    first = run(POOR, guesses=True, step=100)
    again = run(POOR.replace("?1.5", "?0.2"), guesses=True, previous=first.ruleset, step=900)
    assert again.ruleset.provenance["narrow"].since == 100
