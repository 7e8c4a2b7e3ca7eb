"""The main study in small, as a user runs it: every kind of condition, six seeds, one page. A minute of one core."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

CONDITIONS = ("uniform", "per", "placebo", "induced", "per+explore")


def test_the_main_study_in_small(tmp_path: Path) -> None:
    path = tmp_path / "smoke"
    command = [
        sys.executable, "-m", "nser", "study", "run", "MiniGrid-DoorKey-5x5-v0", "--conditions", ",".join(CONDITIONS),
        "--ratios", "1/2", "--seeds", "6", "--steps", "14000", "--set", "eval_every=2000", "--set", "eval_episodes=10",
        "--workers", "1", "--name", str(path), "--json",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    areas = {line["condition"]: line["area"]["value"] for line in told["lines"]}
    assert set(areas) == set(CONDITIONS)
    assert max(areas.values()) > 0.1, "something was learnt; who learnt faster, six seeds can't tell"
    assert {(line["condition"], line["baseline"]) for line in told["comparisons"]} >= {
        ("induced", "uniform"), ("induced", "per"), ("induced", "placebo"), ("per+explore", "per"),
    }  # fmt: skip
    page = Path(told["page"]).read_text()
    assert all(name in page for name in CONDITIONS)
    assert {file.name for file in path.iterdir()} >= {"table.md", "curves.png", "areas.png", "evaluations.parquet"}
