"""Rules from a language model during training: late, in the background, and never at the learner's cost."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from nser.induce.model import ModelError
from nser.induce.proposers import ProposerError
from nser.induce.settings import InductionSettings
from nser.rules.printer import print_rule
from nser.runs.callback import Silent
from nser.runs.inducing import PATIENCE, Inducing
from nser.runs.train import train
from tests.induce.fake_server import Answer, completion, failure, serve
from tests.induce.planted import CHAIN, play
from tests.runs.test_runs import settings, told

RULE = "rule right: forall t in step: inside(t, r0) & action_is(t, push) -> good(t)"


def waited(inducing: Inducing) -> Any:
    assert inducing._background is not None
    assert inducing._background.drain(20)
    return inducing.finished(None)


def test_the_symbolic_learner_answers_at_once() -> None:
    inducing = Inducing(CHAIN, InductionSettings())
    result = inducing.induce(play(100, 0), 500, None)
    assert result is not None
    assert result.ruleset.rules
    assert inducing.finished(None) is None
    inducing.close()


def test_a_model_is_never_waited_for_and_its_answer_comes_later() -> None:
    gate = threading.Event()

    def answer(request: dict[str, Any]) -> Answer:
        assert gate.wait(20)
        return completion("no grammar here" if "zq7" in str(request) else RULE)

    with serve(answer) as server:
        inducing = Inducing(CHAIN, InductionSettings(), f"{server.url}#m")
        assert inducing.induce(play(100, 0), 500, None) is None
        assert inducing.finished(None) is None
        assert inducing.induce(play(100, 0), 1000, None) is None, "one question at a time"
        gate.set()
        result = waited(inducing)
        inducing.close()
    assert [print_rule(rule).split(":")[0] for rule in result.ruleset.rules] == ["rule right"]
    assert result.ruleset.version == 1
    assert result.ruleset.provenance["right"].since == 500
    assert result.ruleset.provenance["right"].proposer == f"{server.url}#m"


def test_a_dead_model_is_warned_of_once_and_asked_again_later() -> None:
    with serve([failure(401, "invalid_api_key", "no")]) as server:
        inducing = Inducing(CHAIN, InductionSettings(), f"{server.url}#m")
        for round_ in range(2):
            assert inducing.induce(play(100, 0), 500, None) is None
            assert waited(inducing) is None
            for _ in range(PATIENCE):
                result = inducing.induce(play(100, 0), 500, None)
                assert result is not None
                assert result.ruleset.provenance
            assert len(inducing.warnings) == 1, f"round {round_}"
        inducing.close()
    assert "symbolic learner proposes meanwhile" in inducing.warnings[0]


class Listener(Silent):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)


LAKE = "rule onward: forall t in step: action_is(t, right) | action_is(t, down) -> good(t)"


def test_training_goes_on_whatever_becomes_of_the_model(tmp_path: Path) -> None:
    listener = Listener()
    with serve([failure(404, "model_not_found", "no such model")]) as server:
        outcome = train(tmp_path / "run", settings(llm=f"{server.url}#m"), observer=listener)
    assert sum("no such model" in message for message in listener.said) == 1
    assert outcome.ruleset is None or all(
        outcome.ruleset.provenance[rule.name].proposer == "symbolic" for rule in outcome.ruleset.rules
    )
    assert told(tmp_path / "run")[-1]["kind"] == "done"


def test_rules_of_a_model_come_into_force_during_training_and_its_calls_are_recorded(tmp_path: Path) -> None:
    with serve([completion(LAKE)]) as server:
        train(tmp_path / "run", settings(llm=f"{server.url}#m", steps=4000))
        asked = len(server.requests)
    assert asked
    lines = [line for line in told(tmp_path / "run") if line["kind"] == "rules"]
    assert lines, "no induction was finished"
    assert list((tmp_path / "run" / "replies").glob("*.json"))


def test_a_proposer_that_cannot_be_had_stops_before_a_folder_is_made(tmp_path: Path) -> None:
    with pytest.raises(ProposerError, match="expected symbolic, openai:MODEL"):
        train(tmp_path / "run", settings(llm="gpt"))
    with pytest.raises(ModelError, match="can't load hf"):
        train(tmp_path / "run", settings(llm=f"hf:{tmp_path}"))
    assert not list(tmp_path.iterdir())
