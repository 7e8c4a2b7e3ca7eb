"""The page on vocabularies and its example say what happens: commands, code, findings and rules."""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from tests.documents import ROOT, blocks, run

PAGE = ROOT / "examples" / "vocabulary.md"
EXAMPLE = PAGE.with_name("own_vocabulary.py")
SMALL = " --set learning_starts=100 --set train_freq=8 --set net_arch=16 --set final_episodes=2 --set induce_every=500"


@pytest.fixture(scope="module")
def module() -> Iterator[Any]:
    """The example as its users import it."""
    spec = importlib.util.spec_from_file_location("own_vocabulary", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    yield found
    del gymnasium.registry["Greenhouse-v0"]


def texts(language: str) -> list[str]:
    return [block.text for block in blocks(PAGE) if block.language == language]


def test_every_command_runs_and_tells_what_is_shown(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    shutil.copy(EXAMPLE, tmp_path / "examples")
    commands = [line for block in blocks(PAGE) if block.language == "bash" for line in block.commands]
    assert commands[:2] == ["cd examples", "export PYTHONPATH=."]
    said = {}
    for line in commands[2:]:
        small = line.replace("--steps 12000", "--steps 2000" + SMALL)
        said[line] = run(small, tmp_path / "examples", PYTHONPATH=f".:{ROOT}")
    assert "nothing found" in said["nser vocab check own_vocabulary:Greenhouse-v0"]
    assert texts("text")[-1] == said["python own_vocabulary.py"]


def test_the_code_of_the_page_is_the_code_of_the_example(module: Any) -> None:
    found: dict[str, Any] = {}
    for text in texts("python"):
        exec(text, found)  # the page's own code, in one namespace as a reader would have it
    assert found["VOCABULARY"].signature == module.VOCABULARY.signature


def test_the_finding_that_the_page_shows_is_what_the_checker_says(module: Any) -> None:
    from nser.envs.check import check_vocabulary
    from nser.grounding.vocabulary import Vocabulary, predicate

    @predicate()
    def tank_empty(steps: Any) -> Any:
        """There is no water left in the tank."""
        return steps.observations[:, 2] < 0

    words = module.VOCABULARY
    wrong = Vocabulary(words.name, (module.moisture, tank_empty), sorts=words.sorts, actions=words.actions)
    (finding,) = check_vocabulary(module.Greenhouse(), vocabulary=wrong)
    assert re.sub(r"^never true ", "never true: ", texts("text")[0].splitlines()[0]) == str(finding)


def test_the_example_is_a_sound_environment(module: Any) -> None:
    from gymnasium.utils.env_checker import check_env

    check_env(module.Greenhouse(), skip_render_check=True)


def test_the_example_is_short_and_titled() -> None:
    text = EXAMPLE.read_text()
    assert len(text.splitlines()) < 80
    assert text.startswith('"""')
