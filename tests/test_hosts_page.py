"""Every block of the page on hosts runs against the real library."""

from __future__ import annotations

import importlib.util

import pytest

from tests.documents import ROOT, Block, blocks

PAGE = ROOT / "examples" / "hosts.md"
CODE = [block for block in blocks(PAGE) if block.language == "python"]
EXTRAS = ("torchrl", "tianshou", "trl", "verl", "openrlhf")


def title(block: Block) -> str:
    """The line that tells what is nser's in a block."""
    return next(line for line in block.text.splitlines() if line.startswith("from nser"))


def missing(block: Block) -> str | None:
    wanted = (name for name in EXTRAS if f"nser.trainers.{name}" in block.text)
    return next((name for name in wanted if importlib.util.find_spec(name) is None), None)


@pytest.mark.parametrize("block", CODE, ids=title)
def test_the_block_runs(block: Block) -> None:
    if extra := missing(block):
        pytest.skip(f"needs {extra}")
    exec(compile(block.text, str(PAGE), "exec"), {"__name__": "page"})


def test_every_host_has_its_block() -> None:
    page = PAGE.read_text()
    for name in ("nser.agents.dqn", "IndexedReplayBuffer", "ArrayBuffer", "VectorSteps", *EXTRAS):
        assert any(name in block.text for block in CODE), name
        assert name in page
