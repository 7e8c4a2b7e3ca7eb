"""One real run for all tests of this folder."""

from __future__ import annotations

import pytest

from nser.runs.directory import RunDirectory
from nser.runs.train import train
from tests.runs.test_runs import settings


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A run of 3,000 steps with rules in replay and exploration."""
    path = tmp_path_factory.mktemp("report") / "whole"
    train(path, settings())
    return RunDirectory.open(path)
