"""The tutorial, from its first command to its last, on a world that is learnt in seconds."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.documents import ROOT, blocks, run

TUTORIAL = ROOT / "examples" / "tutorial.md"
SMALL = "train_freq=4 net_arch=32 batch_size=32 induce_every=1000 final_episodes=3 exploration_fraction=1"
DEMO = "nser train MiniGrid-DoorKey-5x5-v0 --explore rules --seed 2 --steps 4500 --name demo " + " ".join(
    f"--set {pair}" for pair in f"learning_starts=200 eval_every=10000 {SMALL}".split()
)
SMALLER = {"make demo": DEMO, "source .venv/bin/activate": "true", "--steps 50000": "--steps 5500"}
SCRIPT = {"MiniGrid-DoorKey-6x6-v0": "MiniGrid-DoorKey-5x5-v0", "15_000": "300", "train_freq=2": "learning_starts=100"}


def replaced(text: str, words: dict[str, str]) -> str:
    for one, other in words.items():
        text = text.replace(one, other)
    return text


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The folder in which everything was done, and what each command said."""
    folder = tmp_path_factory.mktemp("tutorial")
    page = blocks(TUTORIAL)
    rule = next(block.text for block in page if block.language == "rules")
    editor = folder / "editor"
    editor.write_text('#!/bin/sh\nprintf "%s" "$RULE" >> "$1"\n')
    editor.chmod(0o755)
    said = {}
    for block in page:
        for line in block.commands if block.language == "bash" else ():
            command = replaced(line, SMALLER)
            if "--slot" in command:
                told = json.loads(run("nser replay inspect runs/demo --json", folder))
                command = re.sub(r"--slot \d+", f"--slot {told['likeliest'][0]['slot']}", command)
            said[line] = run(command, folder, EDITOR=str(editor), VISUAL="", RULE=rule)
        if block.language == "python":
            (folder / "script.py").write_text(replaced(block.text, SCRIPT))
            said["script"] = run("python script.py", folder)
    return folder, said


def test_the_rule_is_taken_shown_and_owed_draws(done: tuple[Path, dict[str, str]]) -> None:
    folder, said = done
    assert "added last_step" in said["nser train --resume runs/demo --steps 50000"]
    rules = json.loads(run("nser rules show runs/demo --json", folder))["rules"]
    assert [rule["proposer"] for rule in rules if rule["name"] == "last_step"] == ["person"]
    assert "last_step" in said["nser replay inspect runs/demo"]
    assert "+ last_step" in said["nser rules diff runs/demo/rules/0001.rules runs/demo"]
    assert "last_step" in json.loads(run("nser replay inspect runs/demo --json", folder))["owed"]
    (mine,) = [rule for rule in rules if rule["name"] == "last_step"]
    proven = (mine.get("lift_low") or 0) > 0
    assert ("unproven: last_step" in run("nser rules show runs/demo", folder)) is not proven


def test_rules_found_in_the_run_are_replayed_by_in_a_script(done: tuple[Path, dict[str, str]]) -> None:
    folder, said = done
    with np.load(folder / "runs" / "scores.npz") as scores:
        assert len(scores["scores"]) > 1000
    assert "of the draws are owed to rules" in said["script"]
    assert not said["script"].startswith("0.0%")


def test_what_the_commands_write_lies_where_git_does_not_look(done: tuple[Path, dict[str, str]]) -> None:
    own = {".programs", "editor", "script.py"}  # this test's
    assert {path.name for path in done[0].iterdir()} - own == {"runs"}
    assert "/runs/" in (ROOT / ".gitignore").read_text().splitlines()


def test_the_slip_of_the_pen_is_told_as_shown(done: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    shown = next(block.text for block in blocks(TUTORIAL) if block.text.startswith("R204"))
    rule = next(block.text for block in blocks(TUTORIAL) if block.language == "rules")
    (tmp_path / "slip.rules").write_text(rule.replace("goal", "gaol"))
    command = f"nser rules check {tmp_path / 'slip.rules'} --env MiniGrid-DoorKey-6x6-v0 || true"
    told = run(command, done[0], COLUMNS="200")
    for line in shown.splitlines()[1:]:
        assert line in told
    assert shown.split("last_step: ")[1].splitlines()[0] in told
