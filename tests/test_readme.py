"""Every `nser` command of the README is run as it stands, on a small environment that is learnt in seconds."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
MAKEFILE = README.with_name("Makefile")
SMALL = ["--seed", "3", "--steps", "2600"] + [
    word
    for pair in ("net_arch=16", "learning_starts=100", "batch_size=16", "induce_every=500", "train_freq=8")
    for word in ("--set", pair)
]

SMALL_STUDY = [
    "--seeds",
    "2",
    "--steps",
    "300",
    "--workers",
    "1",
    "--set",
    "eval_every=150",
    "--set",
    "eval_episodes=2",
]


def commands() -> list[str]:
    blocks = re.findall(r"```bash\n(.*?)```", README.read_text(), re.DOTALL)
    return [line.split("#")[0].strip() for block in blocks for line in block.splitlines() if line.strip()]


def test_every_nser_command_runs(tmp_path: Path) -> None:
    found = [line for line in commands() if line.startswith("nser ")]
    assert len(found) >= 4
    shutil.copytree(README.with_name("examples"), tmp_path / "examples")
    for line in found:
        words = shlex.split(line)[1:]
        if words[0] == "train":
            words = ["FrozenLake-v1" if word.startswith("MiniGrid-") else word for word in words] + SMALL
        if words[:2] == ["study", "run"]:
            words += SMALL_STUDY
        done = subprocess.run(
            [sys.executable, "-m", "nser", *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        assert done.stdout.strip()
    assert (tmp_path / "runs" / "mine" / "report.html").is_file()
    assert {path.name for path in tmp_path.iterdir()} == {"examples", "runs", "studies"}, "what git does not ignore"


def test_every_make_target_exists() -> None:
    targets = [line.split()[1] for line in commands() if line.startswith("make ")]
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", MAKEFILE.read_text(), re.MULTILINE), target


def test_nothing_is_left_to_fill_in() -> None:
    assert "@" not in re.sub(r"`[^`]*`", "", README.read_text())
