"""The examples of the hosts run, quickly, from any folder, and print what their docstrings promise."""

from __future__ import annotations

import importlib.util
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
RUNS = {
    "sb3_two_lines.py": (["--steps", "150"], "SAC with feedback, PER"),
    "cleanrl_dqn.py": (["--steps", "2100"], "mean length"),
    "torchrl_dqn.py": (["--steps", "60"], "of the draws owed to the rule"),
    "tianshou_dqn.py": (["--epochs", "1", "--steps", "120"], "best return"),
    "trl_grpo_replay.py": (["--steps", "10"], "of the draws owed to the rule"),
    "verl_sampler.py": (["--steps", "3"], "the actor's update gets 12 rows"),
}
EXTRAS = {
    "torchrl_dqn.py": "torchrl",
    "tianshou_dqn.py": "tianshou",
    "trl_grpo_replay.py": "trl",
    "verl_sampler.py": "verl",
}


@pytest.mark.parametrize("name", RUNS)
def test_the_example_runs_and_says_what_it_found(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    extra = EXTRAS.get(name)
    if extra is not None and importlib.util.find_spec(extra) is None:
        pytest.skip(f"needs the extra: pip install nser[{extra}]")
    arguments, promised = RUNS[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    # In this process: a new one would spend its time on imports.
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert promised in capsys.readouterr().out


@pytest.mark.parametrize("name", RUNS)
def test_examples_are_short_and_titled(name: str) -> None:
    text = (EXAMPLES / name).read_text()
    assert len(text.splitlines()) < 80
    assert text.startswith('"""')
    assert f"python examples/{name}" in text
