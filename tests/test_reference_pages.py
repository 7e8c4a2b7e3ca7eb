"""The pages of codes and of words say what the code does: every code, and every environment's success."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import gymnasium
import pytest

import nser
import nser.envs
import nser.grounding
import nser.rules
from nser.induce.settings import InductionSettings
from nser.replay.law import Law
from nser.runs.edits import TOLERATED
from tests.documents import ROOT

CODES, GLOSSARY = ROOT / "examples" / "codes.md", ROOT / "examples" / "glossary.md"
CODE = re.compile(r"[RD]\d{3}")


def codes_of_the_code() -> set[str]:
    """Every text of the package that is a code and nothing else."""
    found: set[str] = set()
    for package in (nser, nser.rules, nser.grounding, nser.envs):  # the last three are links, which rglob passes by
        for path in Path(str(package.__file__)).parent.rglob("*.py"):
            texts = (node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant))
            found |= {text for text in texts if isinstance(text, str) and CODE.fullmatch(text)}
    return found


def rows(page: Path) -> list[list[str]]:
    """The cells of every row of every table, heads and rules left out."""
    lines = re.findall(r"^\| (.*) \|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [
        re.split(r" (?<!\\)\| ", line) for line in lines if not line.startswith(("code |", "word |", "environment |"))
    ]


def test_every_code_is_on_the_page_and_no_other() -> None:
    known, page = codes_of_the_code(), CODES.read_text(encoding="utf-8")
    assert len(known) > 50
    assert set(CODE.findall(page)) == known
    told = [row[0].strip("`") for row in rows(CODES)]
    assert sorted([*told, "R000", "R200"]) == sorted(known), "a row each, but for the two families"
    assert told == sorted(told, key=lambda code: (code[0] == "D", code))
    for row in rows(CODES):
        assert len(row) == 4, row
        assert all(row), row


def test_the_page_of_codes_tells_the_limits_that_are_in_force() -> None:
    page = CODES.read_text(encoding="utf-8")
    assert f"`max_rules` ({InductionSettings().max_rules})" in page
    assert f"`min_firings` ({InductionSettings().min_firings})" in page
    for code in TOLERATED:
        assert code in next(line for line in page.splitlines() if line.startswith("A run takes your edit"))


def test_words_are_explained_once_and_linked_where_they_are_met() -> None:
    words = [word for row in rows(GLOSSARY) for word in re.findall(r"\*\*(.+?)\*\*", row[0])]
    assert len(words) == len(set(words))
    assert {"owed", "audit", "guard", "symbolic", "version", "lift", "support"} <= set(words)
    assert Law().max_rule_share == 0.5, "the guard's limit is told as one half"
    for page in ("README.md", "examples/tutorial.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        link = text.index("glossary.md")
        for word in ("symbolic", "owed to"):
            assert link < text.index(word), f"{page} speaks of {word} before it links to the glossary"


@pytest.mark.parametrize(
    "row", [row for row in rows(GLOSSARY) if re.fullmatch(r"\w+-v\d", row[0])], ids=lambda row: row[0]
)
def test_success_is_what_the_environment_is_registered_with(row: list[str]) -> None:
    name, told = row
    threshold = gymnasium.spec(name).reward_threshold
    if threshold is None:
        assert told.startswith("none")
    else:
        assert float(told.split(" ")[0].replace("−", "-")) == threshold
