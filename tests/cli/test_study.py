"""`nser study` from the command line, on a study that takes seconds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from nser.study.cells import StudyDirectory
from nser.study.conditions import CONDITIONS
from nser.study.settings import StudySettings
from tests.cli.test_cli import nser

ENV = "MiniGrid-DoorKey-5x5-v0"
TINY = [
    "study", "run", ENV, "--conditions", "per,induced:eta=2,induce_every=200", "--seeds", "2", "--steps", "600",
    "--workers", "1",
    *(word for pair in ("eval_every=200", "eval_episodes=4", "learning_starts=100", "batch_size=8", "net_arch=8")
      for word in ("--set", pair)),
]  # fmt: skip


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study made by the command line itself."""
    path = tmp_path_factory.mktemp("studies") / "tiny"
    command = [sys.executable, "-m", "nser", *TINY, "--name", str(path), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    assert told["study"] == str(path)
    assert Path(told["page"]).is_file()
    assert [line["condition"] for line in told["lines"]] == ["per", "induced:eta=2,induce_every=200"]
    assert done.stderr == ""
    return path


def test_the_command_that_made_it_is_kept(study: Path) -> None:
    command = json.loads((study / "study.json").read_text())["command"]
    assert f"study run {ENV} --conditions per,induced:eta=2,induce_every=200" in command
    assert command in (study / "index.html").read_text()


def test_run_again_it_runs_nothing_anew_and_adds_what_is_new(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (study / "evaluations.jsonl").read_text()
    assert nser(capsys, *TINY, "--name", str(study))[0] == 0
    assert (study / "evaluations.jsonl").read_text() == before
    more = [*TINY, "--name", str(study), "--seeds", "3", "--json"]
    told = json.loads(nser(capsys, *more)[1])
    assert [line["seeds"] for line in told["lines"]] == [3, 3]
    assert (study / "evaluations.jsonl").read_text().startswith(before)


def test_show_makes_the_table_again(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("table.md", "index.html", "curves.png"):
        (study / name).unlink()
    code, out, _ = nser(capsys, "study", "show", str(study), "--baseline", "per")
    assert code == 0
    for word in ("CPU s", "(few)", "not shown", "One paired comparison", "fewer than 10 seeds"):
        assert word in out, word
    assert max(map(len, out.splitlines()[:-1])) <= 80
    for name in ("table.md", "index.html", "curves.png"):
        assert (study / name).is_file()
    told = json.loads(
        nser(capsys, "study", "show", str(study), "--json", "--baseline", "induced:eta=2,induce_every=200")[1]
    )
    (comparison,) = told["comparisons"]
    assert (comparison["condition"], comparison["baseline"]) == ("per", "induced:eta=2,induce_every=200")
    assert comparison["difference"]["verdict"] == "not shown"


def test_conditions_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = nser(capsys, "study", "conditions")
    assert code == 0
    assert all(name in out for name in CONDITIONS)
    told = json.loads(nser(capsys, "study", "conditions", "--json")[1])
    assert told["conditions"].keys() == CONDITIONS.keys()
    assert "eta" in told["settings"]


def test_wrong_use_is_one_line_and_exit_code_2(study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = ["--name", str(tmp_path / "new")]
    for words, expected in (
        (["run", "MiniGrid-DoorKee-5x5-v0", *new], "MiniGrid-DoorKey-5x5-v0"),
        (["run", ENV, *new, "--conditions", "peer"], "did you mean per?"),
        (["run", ENV, *new, "--conditions", ""], "expected one of uniform"),
        (["run", ENV, *new, "--conditions", "induced:speed=2"], "'speed=2'"),
        (["run", ENV, *new, "--conditions", "induced-llm"], "--llm"),
        (["run", ENV, *new, "--ratios", "1/4,fast"], "found --ratios 1/4,fast"),
        (["run", ENV, *new, "--ratios", "1/0"], "found --ratios 1/0"),
        (["run", ENV, *new, "--ratios=-1"], "found ratio -1"),
        (["run", ENV, *new, "--seeds", "0"], "found seeds = 0"),
        (["run", ENV, *new, "--baseline", "peer"], "did you mean per?"),
        (["run", ENV, *new, "--measure", "reward"], "found --measure reward, expected success or return"),
        (["run", ENV, *new, "--agent", "ppo"], "found agent = 'ppo'"),
        (["run", ENV, *new, "--set", "speed=1"], "found setting speed"),
        (["run", ENV, *new, "--set", "speed"], "NAME=VALUE"),
        (["run", ENV, "--name", str(study)], "holds a study with other settings"),
        (["show", str(tmp_path)], "found no study.json"),
        (["show", str(study), "--baseline", "hand"], "found baseline hand"),
    ):
        code, out, err = nser(capsys, "study", *words)
        assert (code, out) == (2, ""), words
        assert expected in err, (words, err)
        assert len(err.splitlines()) == 1, err
    assert not (tmp_path / "new").exists()


def test_the_defaults_of_the_command_are_those_of_the_settings(capsys: pytest.CaptureFixture[str]) -> None:
    settings = StudySettings(env=ENV)
    _, out, _ = nser(capsys, "study", "run", "--help")
    for value in (",".join(settings.conditions), "1/4", settings.seeds, settings.steps, settings.agent):
        assert f"[default: {value}]" in out
    assert settings.ratios == (0.25,)


def test_an_interrupt_says_how_to_go_on_and_keeps_what_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "stopped"
    words = [*TINY, "--name", str(path), "--conditions", "per", "--seeds", "500", "--set", "stack_size=1"]
    command = [sys.executable, "-m", "nser", *words]
    # A session of its own, or the signal would reach the tests too.
    # Jobs that a shell starts in the background ignore the signal, and so would what they start.
    heeds: dict[str, Any] = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True, **heeds) as process:
        while not (path / "evaluations.jsonl").exists() and process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.05)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    done = len(StudyDirectory(path).finished())
    assert err.startswith(f"stopped; {done} of 500 cells")
    assert "Go on with the same command" in err
    assert len(err.splitlines()) == 1
    assert 1 <= done < 500
    code, out, _ = nser(capsys, "study", "show", str(path))
    assert code == 0
    assert "are missing" in out
