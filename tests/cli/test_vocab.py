from __future__ import annotations

import json
from pathlib import Path

import pytest

from nser.envs.make import make_env
from nser.experience.files import save_trajectories
from nser.experience.record import record
from tests.cli.test_cli import nser


def test_show_prints_predicates_and_constants(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = nser(capsys, "vocab", "show", "MiniGrid-LavaGapS5-v0")
    assert code == 0
    for words in ("facing(t, object)", "dist(t, target)", "cells", "toward(t, gap) & ~facing(t, lava)", "object: lava"):
        assert words in out
    assert max(len(line) for line in out.splitlines()) <= 80
    told = json.loads(nser(capsys, "vocab", "show", "MiniGrid-LavaGapS5-v0", "--json")[1])
    assert told["sorts"]["target"] == ["gap", "goal"]
    (dist,) = (known for known in told["predicates"] if known["name"] == "dist")
    assert (dist["kind"], dist["unit"], dist["low"], dist["example"]) == ("number", "cells", 0, "dist(t, goal) < 3")


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Taxi-v4", "Pendulum-v1", "nser/Sokoban-v0"])
def test_show_fits_a_terminal(env_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = nser(capsys, "vocab", "show", env_id)
    assert code == 0
    assert max(len(line) for line in out.splitlines()) <= 80


def test_check_finds_nothing_in_a_good_vocabulary(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = nser(capsys, "vocab", "check", "CartPole-v1", "--steps", "500")
    assert (code, out) == (0, "")
    assert "nothing found" in " ".join(err.split())


def test_check_tells_what_is_found_and_exits_1(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = nser(capsys, "vocab", "check", "MiniGrid-LavaGapS5-v0", "--steps", "3")
    assert code == 1
    assert "never true" in out
    assert "3 random steps" in " ".join(err.split())
    code, out, _ = nser(capsys, "vocab", "check", "MiniGrid-LavaGapS5-v0", "--steps", "3", "--json")
    assert code == 1
    assert {"kind", "atoms", "detail", "advice"} == set(json.loads(out)["findings"][0])


def test_check_judges_by_recorded_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "played.jsonl"
    save_trajectories(path, record(make_env("CartPole-v1"), steps=400))
    code, _, err = nser(capsys, "vocab", "check", "CartPole-v1", str(path))
    assert code == 0
    assert "400 recorded steps" in " ".join(err.split())


def test_unknown_environments_and_files_are_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = nser(capsys, "vocab", "show", "CartPol-v1")
    assert code == 2
    assert "Did you mean CartPole-v1" in err
    code, _, err = nser(capsys, "vocab", "check", "CartPole-v1", str(tmp_path / "none.npz"))
    assert code == 2
    assert "No such file" in err
