"""`nser induce` with language models: a server, a recorded answer, the prompt alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nser.experience.files import save_trajectories
from nser.rules.store import load_rules
from tests.cli.test_cli import nser
from tests.induce.fake_server import completion, failure, serve
from tests.induce.planted import play

RULE = "rule right: forall t in step: inside(t, r0) & action_is(t, push) -> good(t)"
VOCAB = ["--vocab", "tests.induce.planted:CHAIN"]


@pytest.fixture
def data(tmp_path: Path) -> str:
    path = tmp_path / "episodes.npz"
    save_trajectories(path, play(200, 0))
    return str(path)


def test_the_prompt_can_be_read_before_anybody_is_asked(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = nser(capsys, "induce", data, *VOCAB, "--llm", "openai:nobody", "--show-prompt")
    assert code == 0
    assert "inside(t, ROOM)" in out
    assert "A good episode" in out


def test_a_server_is_asked_once_and_then_the_recording(
    data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve([completion("no grammar"), completion("nor here"), completion(RULE)]) as server:
        words = ["induce", data, *VOCAB, "--llm", f"{server.url}#m", "--replies", str(tmp_path / "replies")]
        code, out, _ = nser(capsys, *words, "-o", str(tmp_path / "found.rules"))
        assert code == 0
        assert "1 call and 0 recorded ones" in out
        asked = len(server.requests)
    assert load_rules(tmp_path / "found.rules").rules[0].name == "right"
    # The server is gone; what it said is not asked for again. Only the canary finds nobody, and that is no matter.
    code, out, _ = nser(capsys, *words)
    assert asked == 3
    assert code == 0, "a recorded call needs no server"


def test_a_recorded_answer_is_judged_like_any_other(
    data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = tmp_path / "answer.txt"
    answer.write_text(
        f"Here you are:\n{RULE}\nrule lie: forall t in step: action_is(t, wait) -> good(t)\nrule cut: for"
    )
    code, out, _ = nser(capsys, "induce", data, *VOCAB, "--llm", f"recorded:{answer}", "--json")
    assert code == 0
    told = json.loads(out)
    assert told["kept"] == ["right"]
    codes = {verdict["rule"]: verdict["code"] for verdict in told["verdicts"]}
    assert codes["lie"].startswith("D7")
    assert codes["cut"].startswith("R1")


def test_secrets_are_redacted_in_recordings(data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serve([completion("no"), completion("no"), completion(RULE + "  # my key is hunter2")]) as server:
        words = [
            "induce",
            data,
            *VOCAB,
            "--llm",
            f"{server.url}#m",
            "--replies",
            str(tmp_path / "r"),
            "--redact",
            r"hunter\d",
        ]
        nser(capsys, *words)
    written = "".join(path.read_text() for path in (tmp_path / "r").glob("*.json"))
    assert written
    assert "hunter2" not in written


def test_model_and_learner_compete_and_a_dead_model_is_said(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    with serve([failure(429, "insufficient_quota", "quota")]) as server:
        code, out, err = nser(capsys, "induce", data, *VOCAB, "--llm", f"both:{server.url}#m")
    assert code == 0
    assert "the symbolic learner proposed alone" in err
    assert "3 rules" in out


def test_a_dead_model_alone_is_one_line(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    with serve([failure(401, "invalid_api_key", "bad key")]) as server:
        code, _, err = nser(capsys, "induce", data, *VOCAB, "--llm", f"{server.url}#m")
    assert code == 1
    assert err.count("\n") == 1
    assert "refuses the call with HTTP 401" in err
