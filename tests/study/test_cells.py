from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nser.lock import LockedError
from nser.study.cells import ROW, Cell, StudyDirectory, read_rows, read_settings
from nser.study.errors import DifferentStudyError, NoStudyError
from nser.study.settings import StudySettings, study_settings


def settings(**values: Any) -> StudySettings:
    return study_settings({"env": "E", "conditions": ["per"], "seeds": 2, **values})


def row(**values: Any) -> dict[str, Any]:
    return {**dict.fromkeys(ROW, 0), "condition": "per", "ratio": 0.25, **values}


def test_settings_versions_and_command_are_kept(tmp_path: Path) -> None:
    StudyDirectory(tmp_path / "study").open(settings())
    kept = json.loads((tmp_path / "study" / "study.json").read_text())
    assert {"python", "torch", "nser"} <= set(kept["versions"])
    assert kept["command"].startswith("nser")
    assert read_settings(tmp_path / "study") == settings()


def test_conditions_ratios_and_seeds_may_be_added(tmp_path: Path) -> None:
    study = StudyDirectory(tmp_path)
    study.open(settings())
    study.open(settings(conditions=["induced"], ratios=[0.5], seeds=5, workers=1, stack_size=3))
    study.open(settings())
    there = read_settings(tmp_path)
    assert (there.conditions, there.ratios, there.seeds) == (("per", "induced"), (0.25, 0.5), 5)


def test_another_study_in_its_place_is_refused_and_nothing_changed(tmp_path: Path) -> None:
    study = StudyDirectory(tmp_path)
    study.open(settings())
    before = study.config.read_bytes()
    with pytest.raises(DifferentStudyError, match="env is 'E' there, 'F' was asked; steps is 60000 there, 9 was asked"):
        study.open(settings(env="F", steps=9))
    assert study.config.read_bytes() == before


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    study, other = StudyDirectory(tmp_path), StudyDirectory(tmp_path)
    with study.claimed(), pytest.raises(LockedError, match="is in use by process"), other.claimed():
        pass
    with other.claimed():
        pass


def test_rows_are_appended_and_whole_cells_are_done(tmp_path: Path) -> None:
    study = StudyDirectory(tmp_path)
    assert read_rows(tmp_path) == []
    study.append([row(seed=1), row(seed=2)])
    study.append([row(seed=3)])
    assert study.finished() == {Cell("per", 0.25, seed) for seed in (1, 2, 3)}
    assert [found["seed"] for found in read_rows(tmp_path)] == [1, 2, 3]


def test_a_line_that_is_cut_is_no_row(tmp_path: Path) -> None:
    study = StudyDirectory(tmp_path)
    study.append([row(seed=1), row(seed=2)])
    text = study.evaluations.read_text()
    study.evaluations.write_text(text[:-20] + "\nnonsense\n[1]\n{}\n")
    assert [found["seed"] for found in read_rows(tmp_path)] == [1]


def test_what_is_no_study_is_told_in_words(tmp_path: Path) -> None:
    with pytest.raises(NoStudyError, match=r"found no study\.json"):
        read_settings(tmp_path)
    (tmp_path / "study.json").write_text("{")
    with pytest.raises(NoStudyError, match=r"can't read its study\.json"):
        read_settings(tmp_path)
