"""`nser induce` on chat transcripts, and what a terminal shows while a model is waited for."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from nser.cli.waiting import waiting
from nser.grounding.rollout_words import ROLLOUTS
from nser.induce.chat import ChatProposer
from nser.induce.endpoint import ChatEndpoint
from nser.induce.joining import Competing
from nser.induce.loop import induce_from
from nser.induce.rollouts import rollout_evidence
from nser.induce.settings import InductionSettings
from nser.induce.symbolic import SymbolicProposer
from nser.rules.store import load_rules
from tests.cli.test_cli import nser
from tests.induce.fake_server import completion, serve
from tests.induce.planted_rollouts import planted, write

RULE = 'rule check: forall r in rollout: contains(r, "let me check") -> good(r)'


@pytest.fixture
def data(tmp_path: Path) -> str:
    return str(write(tmp_path / "rollouts.jsonl", planted()))


def test_rules_are_found_written_and_used(data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, weighed = tmp_path / "found.rules", tmp_path / "weighed.jsonl"
    code, out, err = nser(capsys, "induce", data, "-o", str(rules))
    assert code == 0
    assert "good(r)" in out
    assert "written to" in err
    assert load_rules(rules).problems == ()
    code, out, _ = nser(capsys, "rollouts", "weigh", data, "--rules", str(rules), "-o", str(weighed), "--json")
    assert code == 0
    assert json.loads(out)["mean_weight"] > 1
    assert all(figure["reward"] > figure["reward_elsewhere"] for figure in json.loads(out)["rules"])
    vocab = ["--vocab", "nser.grounding.rollout_words:ROLLOUTS"]
    assert nser(capsys, "rules", "check", str(rules), *vocab)[0] == 0
    code, out, _ = nser(capsys, "rules", "explain", str(rules), *vocab)
    assert code == 0
    assert "the rollout is good" in out


def test_rules_over_turns(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = nser(capsys, "induce", data, "--about", "turn", "--json")
    assert code == 0
    assert json.loads(out)["kept"]
    code, _, err = nser(capsys, "induce", data, "--about", "step")
    assert code == 2
    assert "found --about step, expected rollout or turn" in err


def test_a_server_is_asked_about_rollouts(data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serve([completion("no grammar"), completion("nor here"), completion(RULE)]) as server:
        words = ["induce", data, "--llm", f"{server.url}#m", "-o", str(tmp_path / "x.rules")]
        code, out, _ = nser(capsys, *words)
    assert code == 0
    assert "1 call and 0 recorded ones" in out
    assert [rule.name for rule in load_rules(tmp_path / "x.rules").rules] == ["check"]
    assert "forall r in rollout" in server.requests[-1]["messages"][0]["content"]


def test_the_prompt_of_rollouts_can_be_read(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = nser(capsys, "induce", data, "--show-prompt", "--llm", "openai:nobody")
    assert code == 0
    assert "Better than others of its kind" in out
    assert "tool_calls(r, TOOL)" in out


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (['{"messages": [{"role": "user", "content": "x"}], "reward": 1}'], "found 0 rollouts better"),
        (['{"messages": 3, "reward": 1}'], "line 1: messages: found 3"),
        (['{"observation": [0]}'], "found no vocabulary"),
    ],
)
def test_files_from_which_nothing_can_be_learnt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: list[str], told: str
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(lines))
    code, _, err = nser(capsys, "induce", str(path))
    assert code == 2
    assert told in err
    assert err.count("\n") == 1


def test_a_terminal_shows_seconds_calls_and_tokens_while_a_model_is_waited_for() -> None:
    """The line is drawn once more when the waiting ends, so that no time is assumed here."""
    stream = io.StringIO()
    times = iter(range(10**6))
    console = Console(file=stream, force_terminal=True, width=120, get_time=lambda: float(next(times)))
    evidence = rollout_evidence(planted(), ROLLOUTS, InductionSettings())
    with serve([completion("no"), completion("no"), completion(RULE)]) as server:
        proposer = ChatProposer(ChatEndpoint("m", server.url))
        with waiting(Competing(proposer, SymbolicProposer()), console):
            induce_from(evidence, proposer)
    shown = stream.getvalue()
    assert f"waiting for {server.url}#m" in shown
    assert "1 call answered, 18 tokens" in shown


def test_nothing_is_shown_without_a_terminal_or_a_model() -> None:
    stream = io.StringIO()
    with waiting(SymbolicProposer(), Console(file=stream, force_terminal=True)):
        pass
    with waiting(ChatProposer(ChatEndpoint("m", "http://127.0.0.1:9/v1")), Console(file=stream)):
        pass
    assert stream.getvalue() == ""
