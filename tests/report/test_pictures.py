"""The script that draws the README's pictures keeps up with what it draws."""

from __future__ import annotations

import runpy

from nser.runs.directory import RunDirectory
from nser.runs.explain import explain_slot, stored_buffer
from tests.documents import ROOT


def test_the_slot_that_is_explained_is_one_that_rules_score(whole: RunDirectory) -> None:
    script = runpy.run_path(str(ROOT / "examples" / "pictures" / "draw.py"))
    (buffer, vocabulary), ruleset = stored_buffer(whole), whole.newest_rules()
    assert vocabulary is not None
    assert ruleset is not None
    assert explain_slot(buffer, vocabulary, ruleset, script["best_slot"](whole.path)).score > 0.2
