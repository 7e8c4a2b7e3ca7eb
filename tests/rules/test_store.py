"""Rule files: written whole, read whatever became of them, and edited by people."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nser.files import WriteError
from nser.rules.errors import RuleFileError
from nser.rules.parse import parse_rules
from nser.rules.store import MAX_BYTES, Provenance, RuleSet, load_rules, save_rules
from nser.rules.syntax import Rule
from tests.rules.strategies import rules

IN = "forall t in step:"
RULES = parse_rules(f"rule a [0.5]: {IN} p(t) -> good(t)\nrule b: {IN} q(t, key) -> ~good(t)").rules
KNOWN = Provenance("symbolic", 1200, 0.04, 0.5, 0.9, 0.2, 0.1, 0.3, 55, "ab", "cd", "kept")
SET = RuleSet(RULES, 3, {"a": KNOWN})

figures = st.none() | st.floats(allow_nan=False, allow_infinity=False)
words = st.none() | st.text(max_size=8)
counts = st.none() | st.integers(0, 10**12)
provenances = st.builds(
    Provenance, words, counts, figures, figures, figures, figures, figures, figures, counts, words, words, words
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "0003.rules"


@given(
    batch=st.lists(rules(levels=1), max_size=4, unique_by=lambda rule: rule.name),
    version=st.integers(0, 10**9 - 1),
    entries=st.lists(provenances, max_size=4),
)
@settings(max_examples=30)
def test_a_rule_set_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, batch: list[Rule], version: int, entries: list[Provenance]
) -> None:
    path = tmp_path_factory.mktemp("store") / "x.rules"
    provenance = {rule.name: entry for rule, entry in zip(batch, entries, strict=False)}
    ruleset = RuleSet(tuple(batch), version, provenance)
    save_rules(path, ruleset)
    again = load_rules(path)
    assert again == ruleset
    assert again.problems == ()


def test_what_is_on_disk(path: Path) -> None:
    save_rules(path, SET)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# nser rules, version 3.")
    assert [line for line in text.splitlines() if line and not line.startswith("#")] == [
        f"rule a [0.5]: {IN} p(t) -> good(t)",
        f"rule b: {IN} q(t, key) -> ~good(t)",
    ]
    told = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert told["version"] == 3
    assert told["rules"]["a"]["lift_low"] == 0.1
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["0003.json", "0003.rules"]


def test_unknown_and_unmeasurable_figures_are_left_out() -> None:
    told = Provenance("symbolic", lift=float("nan"), precision=float("inf"), support=0.0).as_dict()
    assert told == {"proposer": "symbolic", "support": 0.0}


def test_a_rule_that_a_person_edits_loses_its_figures_but_a_weight_does_not_count(path: Path) -> None:
    save_rules(path, SET)
    written = path.read_text(encoding="utf-8")
    path.write_text(written.replace("[0.5]", "[0.75]"), encoding="utf-8")
    assert load_rules(path) == replace(SET, rules=(replace(RULES[0], weight=0.75), RULES[1]))
    path.write_text(written.replace("p(t)", "p(t+1)"), encoding="utf-8")
    assert load_rules(path).provenance == {}
    assert load_rules(path).problems == ()


def test_bad_rules_are_problems_and_good_ones_are_kept(path: Path) -> None:
    save_rules(path, SET)
    with path.open("a", encoding="utf-8") as stream:
        stream.write(f"rule c: {IN} p(t) &\nrule d: {IN} p(t) -> good(t)\nwhat?\n")
    found = load_rules(path)
    assert [rule.name for rule in found.rules] == ["a", "b", "d"]
    assert [problem.code for problem in found.problems] == ["R101", "R110"]
    assert found.provenance == {"a": KNOWN}


@pytest.mark.parametrize(
    "content",
    [None, "", "[]", "{", '{"rules": 3}', "[" * 100_000, '"\ud800"', "\x00", "x" * 100],
    ids=["missing", "empty", "list", "cut", "number", "deep", "surrogate", "nul", "text"],
)
def test_a_missing_or_broken_provenance_loses_no_rule(path: Path, content: str | None) -> None:
    save_rules(path, SET)
    beside = path.with_suffix(".json")
    if content is None:
        beside.unlink()
    else:
        beside.write_text(content, encoding="utf-8", errors="surrogatepass")
    found = load_rules(path)
    assert found.rules == RULES
    assert found.version == 3
    assert found.provenance == {}
    (problem,) = found.problems
    assert problem.code == "R902"
    assert beside.name in str(problem)
    assert "\n" not in str(problem)


@pytest.mark.parametrize(
    ("key", "value"), [("support", "high"), ("firings", 1.5), ("since", True), ("proposer", 3), ("lift", [])]
)
def test_one_broken_entry_loses_only_itself(path: Path, key: str, value: object) -> None:
    save_rules(path, replace(SET, provenance={"a": KNOWN, "b": KNOWN}))
    beside = path.with_suffix(".json")
    told = json.loads(beside.read_text(encoding="utf-8"))
    told["rules"]["b"] |= {key: value, "of_a_later_version": 1}
    beside.write_text(json.dumps(told), encoding="utf-8")
    found = load_rules(path)
    assert found.provenance == {"a": KNOWN}
    (problem,) = found.problems
    assert (problem.code, problem.rule) == ("R902", "b")
    assert key in str(problem)


def test_a_file_written_by_hand_needs_no_provenance(tmp_path: Path) -> None:
    path = tmp_path / "mine.rules"
    path.write_bytes(b"\xef\xbb\xbf# mine\r\nrule a [0.5]: forall t in step: p(t) -> good(t)\r\n")
    found = load_rules(str(path))
    assert found == RuleSet(RULES[:1])
    assert found.problems == ()


def test_what_is_no_rule_file_is_one_clear_line(tmp_path: Path) -> None:
    binary, utf16, latin, large = (tmp_path / name for name in ("binary", "utf16", "latin", "large"))
    binary.write_bytes(b"rule\x00\xff")
    utf16.write_text("rule a", encoding="utf-16")
    latin.write_bytes("rule é".encode("latin-1"))
    large.write_bytes(b"#" * (MAX_BYTES + 1))
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    cases = {
        tmp_path / "none": "no such file",
        tmp_path: "not a regular file",
        fifo: "not a regular file",
        binary: "a zero byte at 4",
        utf16: "a zero byte",
        latin: "no UTF-8 at byte 5",
        large: "more bytes, expected at most 4 MiB",
        tmp_path / "x.json": "x.rules",
        binary / "below": "not a directory",
        Path("a\x00b"): "embedded null",
    }
    for path, reason in cases.items():
        with pytest.raises(RuleFileError) as raised:
            load_rules(path)
        assert raised.value.code == "R901"
        assert reason in str(raised.value)
        assert "\n" not in str(raised.value)


def test_nothing_is_written_that_would_not_read_back(path: Path) -> None:
    save_rules(path, SET)
    before = {entry: entry.read_bytes() for entry in path.parent.iterdir()}
    for batch in (RULES * 2, (replace(RULES[0], name="not"),), (replace(RULES[0], name="a: \n"),)):
        with pytest.raises(RuleFileError):
            save_rules(path, RuleSet(batch, 4))
    with pytest.raises(RuleFileError, match=r"ends in \.rules"):
        save_rules(path.with_suffix(".txt"), SET)
    assert {entry: entry.read_bytes() for entry in path.parent.iterdir()} == before


def test_a_failed_write_leaves_the_old_files(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_rules(path, SET)
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteError, match="No space left on device"):
        save_rules(path, RuleSet(RULES[:1], 4))
    assert path.read_bytes() == before
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["0003.json", "0003.rules"]
    assert load_rules(path) == SET


def test_a_place_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match=r"expected a place that can be written$"):
        save_rules(tmp_path / "file" / "x.rules", SET)
