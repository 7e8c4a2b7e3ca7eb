"""The transcripts of the examples are what their script makes, and the README prints what the commands print."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from tests.cli.test_cli import nser

ROOT = Path(__file__).parents[1]
SCRIPT, DATA = ROOT / "examples" / "play_transcripts.py", ROOT / "examples" / "transcripts.jsonl"


def test_the_script_makes_the_file_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "again.jsonl"
    monkeypatch.setattr(sys, "argv", [SCRIPT.name, str(path)])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    assert "120 transcripts, 69 of them won" in capsys.readouterr().out
    assert path.read_bytes() == DATA.read_bytes()
    text = SCRIPT.read_text()
    assert len(text.splitlines()) < 80
    assert text.startswith('"""')


def test_the_readme_prints_what_the_commands_print(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, weighed = str(tmp_path / "found.rules"), str(tmp_path / "weighed.jsonl")
    assert nser(capsys, "induce", str(DATA), "-o", rules)[0] == 0
    code, out, _ = nser(capsys, "rollouts", "weigh", str(DATA), "--rules", rules, "-o", weighed)
    assert code == 0
    readme = (ROOT / "README.md").read_text()
    for line in out.splitlines():
        assert line.rstrip() in readme
