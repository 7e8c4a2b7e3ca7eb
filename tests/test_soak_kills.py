"""A few kills; `python -m tests.soak_kills --times 20` for more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak_kills import live, run_result, run_words, soak, study_result, study_words


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_has_the_same_result(tmp_path: Path) -> None:
    said = soak(run_words, run_result, tmp_path, times=2, seed=5)
    assert len(said) == 2


@pytest.mark.slow
def test_a_study_that_is_killed_goes_on(tmp_path: Path) -> None:
    said = soak(study_words, study_result, tmp_path, times=2, seed=1)
    assert len(said) == 2


@pytest.mark.slow
@pytest.mark.parametrize("event", [2, 4])
def test_a_run_that_is_killed_while_it_begins_can_begin_again(tmp_path: Path, event: int) -> None:
    """Its first file operations make the folder, the lock and the configuration."""
    path = tmp_path / "run"
    ended, _ = live(path, run_words(path), event)
    assert not ended
    ended, _ = live(path, [*run_words(path), *short(path)])
    assert ended


def short(path: Path) -> list[str]:
    """A run that has not begun need not be as long."""
    return [] if (path / "config.json").exists() else ["--steps", "200"]
