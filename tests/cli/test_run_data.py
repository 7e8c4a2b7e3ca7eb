"""A run stands for what its buffer holds wherever recorded trajectories are asked for, and names its vocabulary."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nser.cli.inputs import load_data
from nser.runs.directory import RunDirectory
from nser.runs.train import train
from tests.cli.test_cli import nser
from tests.runs.test_runs import settings


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    train(path, settings(steps=2600, final_episodes=0, eval_every=100_000, curious=False))
    return path


def test_the_buffer_of_a_run_is_data(run: Path) -> None:
    found = load_data(run)
    assert 1500 < len(found) <= settings().buffer_size
    assert found.complete.sum() > 10


def test_rules_are_induced_and_scored_without_naming_the_environment(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules, scores = tmp_path / "found.rules", tmp_path / "scores.npz"
    code, out, err = nser(capsys, "induce", str(run), "-o", str(rules), "--json")
    assert code == 0, err
    kept = json.loads(out)["kept"]
    assert kept
    code, out, err = nser(capsys, "rules", "score", str(rules), str(run), "-o", str(scores), "--json")
    assert code == 0, err
    assert [row["rule"] for row in json.loads(out)["rules"]] == kept
    with np.load(scores) as written:
        assert len(written["scores"]) == len(load_data(run))
    assert nser(capsys, "rules", "explain", str(rules), str(run), "--row", "3")[0] == 0
    assert nser(capsys, "vocab", "check", settings().env, str(run))[0] in (0, 1)
    for words in (["check", str(rules), str(run)], ["fit", str(rules), str(run), "-o", str(tmp_path / "new.rules")]):
        code, out, err = nser(capsys, "rules", *words)
        assert code != 2, err  # they may find fault with a rule, but not with the data
        assert out


def test_a_run_without_a_checkpoint_is_refused_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    RunDirectory.create(tmp_path / "run", settings())
    code, _, err = nser(capsys, "induce", str(tmp_path / "run"))
    assert code == 2
    assert "has saved no checkpoint yet" in err
