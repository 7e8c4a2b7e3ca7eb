"""The lines of the README's section on rollouts run as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from nser.rollouts import Batch, Rollout, RolloutStore
from tests.rollouts.making import rollout

README = Path(__file__).parents[2] / "README.md"


def test_the_readmes_loop_replays_half_as_many_as_are_fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section = README.read_text().split("## Rollouts for LLM trainers")[1].split("\n## ")[0]
    code = re.findall(r"```python\n(.*?)```", section, re.DOTALL)[0]
    monkeypatch.chdir(tmp_path)
    trained: list[Batch] = []

    def generate(version: int) -> list[Rollout]:
        return [rollout(8 * version + i, version, advantage=i - 3.5) for i in range(8)]

    space: dict[str, Any] = {"steps": 5, "generate": generate, "train": trained.append}
    exec(code, space)
    assert [len(batch) for batch in trained] == [8, 12, 12, 12, 12]
    assert len(RolloutStore.load("store.npz")) == 40
