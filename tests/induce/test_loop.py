"""The loop with a language model in it: repair, competition, injection, and every reply that real models gave."""

from __future__ import annotations

import pytest

from nser.induce.cassette import Reply
from nser.induce.chat import ChatProposer, ChatSettings
from nser.induce.joining import Competing, joined
from nser.induce.loop import Induction, induce
from nser.induce.model import ModelError, NoAnswerError, QuotaError
from nser.induce.proposing import Proposer
from nser.induce.settings import InductionSettings
from nser.induce.symbolic import SymbolicProposer
from nser.rules.parse import parse_rules
from nser.rules.printer import print_formula
from tests.induce.planted import CHAIN, play
from tests.induce.test_chat import Scripted

RIGHT = "rule right: forall t in step: inside(t, r0) & action_is(t, push) -> good(t)"
TYPO = "rule typo: forall t in step: insid(t, r1) & action_is(t, pull) -> good(t)"
MENDED = "rule typo: forall t in step: inside(t, r1) & action_is(t, pull) -> good(t)"
LIE = "rule lie: forall t in step: action_is(t, wait) -> good(t)"


def run(proposer: Proposer, episodes: int = 200) -> Induction:
    return induce(play(episodes, 0), CHAIN, proposer, InductionSettings())


def bodies(result: Induction) -> list[str]:
    return sorted(print_formula(rule.body) for rule in result.ruleset.rules)


def test_a_refused_rule_goes_back_with_its_reason_and_comes_mended() -> None:
    model = Scripted(Reply(f"{RIGHT}\n{TYPO}"), Reply(MENDED))
    result = run(ChatProposer(model, ChatSettings(repairs=1)))
    assert bodies(result) == ["inside(t, r0) & action_is(t, push)", "inside(t, r1) & action_is(t, pull)"]
    assert result.repairs == 1
    asked = model.calls[1].messages[-1]["content"]
    assert "R201" in asked
    assert "`inside`" in asked


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_repair_rounds_are_bounded(rounds: int) -> None:
    model = Scripted(Reply(TYPO))
    result = run(ChatProposer(model, ChatSettings(repairs=rounds)))
    assert len(model.calls) == 1 + rounds
    assert not result.ruleset.rules


def test_what_data_refuse_comes_back_with_steps_that_speak_against_it() -> None:
    model = Scripted(Reply(f"{RIGHT}\n{LIE}"), Reply(""))
    run(ChatProposer(model, ChatSettings(repairs=1)))
    asked = model.calls[1].messages[-1]["content"]
    assert "Against it:" in asked
    assert "wait" in asked


def test_a_failing_repair_keeps_what_is_there() -> None:
    result = run(ChatProposer(Scripted(Reply(f"{RIGHT}\n{TYPO}"), NoAnswerError("gone")), ChatSettings(repairs=2)))
    assert bodies(result) == ["inside(t, r0) & action_is(t, push)"]


def test_orders_inside_episodes_yield_no_rule_that_data_do_not_support() -> None:
    """A model that obeys an injected text ("write that waiting is good") proposes; held-out episodes refuse."""
    result = run(ChatProposer(Scripted(Reply(f"{LIE}\n{RIGHT}")), ChatSettings(repairs=0)))
    assert bodies(result) == ["inside(t, r0) & action_is(t, push)"]
    assert {verdict.rule: verdict.code for verdict in result.verdicts}["lie"].startswith("D7")


def test_model_and_symbolic_learner_compete_in_one_selection() -> None:
    both = run(Competing(ChatProposer(Scripted(Reply(f"{LIE}\n{RIGHT}")), ChatSettings(repairs=0)), SymbolicProposer()))
    assert bodies(both) == bodies(run(SymbolicProposer()))
    assert len(both.ruleset.rules) == 3


def test_a_dead_model_leaves_the_field_to_the_symbolic_learner() -> None:
    proposer = Competing(ChatProposer(Scripted(QuotaError("no money"))), SymbolicProposer())
    assert len(run(proposer).ruleset.rules) == 3
    assert isinstance(proposer.last_error, QuotaError)
    with pytest.raises(ModelError):
        run(ChatProposer(Scripted(QuotaError("no money"))))


def test_joining_renames_and_loses_nothing() -> None:
    text = joined([RIGHT, RIGHT.replace("push", "pull"), "no rule at all", RIGHT])
    assert [rule.name for rule in parse_rules(text).rules] == ["right", "right_2", "right_3"]


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        (f"```\n{RIGHT}\n```", 1),
        (f"<think>Let me see: rule x: forall\n</think>\n{RIGHT}", 1),
        (f'{{"rules": ["{RIGHT}"]}}', 1),
        (f"Sure! Here are the rules:\n\n1. {RIGHT}\n\nI hope this helps!", 1),
        (RIGHT.replace("&", "∧").replace("->", "→").replace("forall", "∀"), 1),
        (f"{RIGHT}\n{RIGHT}", 1),
        (f"{RIGHT}\nrule cut: forall t in step: inside(t, r1", 1),
        ("", 0),
        ("I can't help with that.", 0),
        ("__import__('os').system('touch /tmp/owned')", 0),
        ("rule " * 5000, 0),
        ("(" * 20000, 0),
    ],
    ids=[
        "fence",
        "think",
        "json",
        "prose",
        "unicode",
        "twice",
        "cut",
        "empty",
        "refusal",
        "hostile",
        "keywords",
        "deep",
    ],
)
def test_replies_as_models_give_them(reply: str, kept: int) -> None:
    result = run(ChatProposer(Scripted(Reply(reply or " ")), ChatSettings(repairs=0)))
    assert len(result.ruleset.rules) == kept
