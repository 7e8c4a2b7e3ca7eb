"""Rule files that a person edits: taken when good, refused with their line when bad, and never silently dropped."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nser.induce.loop import induce
from nser.induce.proposing import NoProposer
from nser.induce.settings import InductionSettings
from nser.induce.standing import carried, in_force
from nser.induce.symbolic import SymbolicProposer
from nser.rules.parse import parse_rule
from nser.rules.printer import print_rule
from nser.rules.ruleset import PERSON, Provenance, Retired, RuleSet, skeleton
from nser.rules.store import load_rules, save_rules
from nser.runs.callback import Silent
from nser.runs.directory import RunDirectory
from nser.runs.edits import RuleEdits
from nser.runs.errors import RunStopped
from nser.runs.train import resume, train
from tests.induce.planted import ACTIONS, CHAIN, LEAVES, play
from tests.runs.test_runs import settings, told

IN = "forall t in step:"
MINE = f"rule mine [0.4]: {IN} inside(t, r0) & noise(t) & action_is(t, push) -> good(t)"
OLD = RuleSet(
    tuple(
        parse_rule(text)
        for text in (
            f"rule a [0.5]: {IN} inside(t, r0) & action_is(t, push) -> good(t)",
            f"rule b: {IN} inside(t, r1) & action_is(t, pull) -> good(t)",
        )
    ),
    7,
    {"a": Provenance("symbolic", 100, lift=0.2), "b": Provenance("symbolic", 200)},
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_rules(tmp_path / "0007.rules", OLD)
    return tmp_path


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text(encoding="utf-8") + text + "\n", encoding="utf-8")


def take(
    folder: Path, current: RuleSet | None = OLD, edits: RuleEdits | None = None
) -> tuple[RuleSet | None, list[str]]:
    return (edits or RuleEdits(folder)).take(current, CHAIN, 1234)


def test_files_that_nobody_edits_change_nothing(folder: Path) -> None:
    assert take(folder) == (None, [])


def test_an_added_rule_and_a_changed_weight_are_a_persons(folder: Path) -> None:
    path = folder / "0007.rules"
    path.write_text(path.read_text().replace("[0.5]", "[0.9]"))
    append(path, MINE)
    found, said = take(folder)
    assert found is not None
    assert (found.version, [rule.name for rule in found.rules]) == (8, ["a", "b", "mine"])
    assert found.rules[0].weight == 0.9
    assert {name: known.proposer for name, known in found.provenance.items()} == {
        **{"a": PERSON, "b": "symbolic", "mine": PERSON}
    }
    (message,) = said
    assert "took 0007.rules: added mine, changed a" in message
    assert take(folder, found) == (None, []), "an edit is taken once"
    assert take(folder)[0] is not None, "a run that went back to version 7 takes it again"


def test_a_bad_edit_is_told_once_with_its_line_and_the_old_rules_stay(folder: Path) -> None:
    edits = RuleEdits(folder)
    append(folder / "0007.rules", f"rule typo: {IN} insid(t, r0) -> good(t)")
    found, said = take(folder, edits=edits)
    assert found is None
    (message,) = said
    assert "line 7" in message
    assert "R201" in message
    assert "the old rules stay" in message
    assert take(folder, edits=edits) == (None, [])
    append(folder / "0007.rules", "and more nonsense")
    assert len(take(folder, edits=edits)[1]) == 1, "another bad edit is told again"


def test_a_rule_that_a_person_takes_out_is_not_proposed_again(folder: Path) -> None:
    path = folder / "0007.rules"
    path.write_text(path.read_text().replace(print_rule(OLD.rules[0]) + "\n", ""))
    found, said = take(folder)
    assert found is not None
    assert [rule.name for rule in found.rules] == ["b"]
    assert "removed a" in said[0]
    save_rules(folder / "0008.rules", found)
    again = load_rules(folder / "0008.rules")
    assert [(one.name, one.by, one.step) for one in again.retired] == [("a", PERSON, 1234)]
    result = induce(play(200, 0), CHAIN, SymbolicProposer(), InductionSettings(), previous=again)
    assert skeleton(OLD.rules[0]) not in {skeleton(rule) for rule in result.ruleset.rules}
    assert "R504" in {verdict.code for verdict in result.verdicts}
    assert [one.by for one in result.ruleset.retired if one.name == "a"] == [PERSON], "and later ones know it too"
    append(folder / "0008.rules", print_rule(OLD.rules[0]))
    back = RuleEdits(folder).take(again, CHAIN, 2000)[0]
    assert back is not None
    assert not back.retired, "put back by hand it may be proposed again"


def test_a_file_of_ones_own_and_an_edit_of_an_older_file_are_merged(folder: Path) -> None:
    newest = RuleSet((OLD.rules[1], parse_rule(f"rule c: {IN} noise(t) -> good(t)")), 8, {})
    save_rules(folder / "0008.rules", newest)
    (folder / "mine.rules").write_text(MINE + "\n")
    append(folder / "0007.rules", f"rule d: {IN} inside(t, r2) -> good(t)")
    found, _ = take(folder, newest)
    assert found is not None
    assert [rule.name for rule in found.rules] == ["b", "c", "d", "mine"], "a was in 0007 and has left since"
    assert take(folder, found) == (None, [])


def test_both_sides_changed_is_told_and_the_person_wins(folder: Path) -> None:
    newest = replace(OLD, version=8, rules=(replace(OLD.rules[0], weight=0.6), OLD.rules[1]))
    save_rules(folder / "0008.rules", newest)
    path = folder / "0007.rules"
    path.write_text(path.read_text().replace("[0.5]", "[0.2]"))
    found, said = take(folder, newest)
    assert found is not None
    assert found.rules[0].weight == 0.2
    assert "changed on both sides" in said[0]
    assert "yours stands" in said[0]


def test_rules_by_hand_before_any_were_found(tmp_path: Path) -> None:
    (tmp_path / "mine.rules").write_text(MINE + "\n")
    found, _ = take(tmp_path, None)
    assert found is not None
    assert (found.version, found.provenance["mine"].proposer) == (1, PERSON)


def test_half_written_and_unreadable_files_are_looked_at_again(folder: Path) -> None:
    (folder / "mine.rules").write_bytes(b"rule \xff\x00")
    assert take(folder) == (None, [])


# What later inductions make of them ----------------------------------------------------------------------------


def standing(text: str) -> RuleSet:
    rule = parse_rule(text)
    return RuleSet((rule,), 3, {rule.name: Provenance(PERSON, 50)})


def again(before: RuleSet, episodes: int = 200) -> Any:
    return induce(play(episodes, 0), CHAIN, SymbolicProposer(), InductionSettings(), step=900, previous=before)


def test_a_persons_rule_keeps_its_weight_beside_what_is_found() -> None:
    result = again(standing(MINE))
    kept = {rule.name: rule for rule in result.ruleset.rules}
    assert kept["mine"].weight == 0.4
    assert result.ruleset.provenance["mine"].proposer == PERSON
    assert result.ruleset.provenance["mine"].since == 50
    assert len(kept) == 1 + len(LEAVES), "it keeps no better rule out"


def test_a_rule_without_evidence_stays_and_a_refuted_one_leaves_with_its_reason() -> None:
    rare = again(standing(f"rule rare: {IN} inside(t, r3) -> good(t)"))
    assert "rare" in {rule.name for rule in rare.ruleset.rules}
    wrong = again(standing(f"rule wrong: {IN} inside(t, r0) & action_is(t, wait) -> good(t)"))
    assert "wrong" not in {rule.name for rule in wrong.ruleset.rules}
    (left,) = [one for one in wrong.ruleset.retired if one.name == "wrong"]
    assert (left.code, left.by, left.step) == ("D705", "data", 900)
    (verdict,) = [v for v in wrong.verdicts if v.rule == "wrong"]
    assert verdict.witnesses


def test_an_induction_that_finds_nothing_still_takes_out_what_data_refute() -> None:
    wrong = parse_rule(f"rule wrong: {IN} inside(t, r0) & action_is(t, wait) -> good(t)")
    rare = parse_rule(f"rule rare: {IN} inside(t, r3) -> good(t)")
    both = RuleSet((wrong, rare), 3, {name: Provenance(PERSON, 50) for name in ("wrong", "rare")})
    alone = RuleSet((wrong,), 3, {"wrong": Provenance(PERSON, 50)})
    found = audited(both)
    assert found is not None
    assert [rule.name for rule in found.rules] == ["rare"]
    assert found.version == 4
    emptied = audited(alone)
    assert emptied is not None
    assert emptied.rules == ()
    assert [(one.name, one.code) for one in emptied.retired] == [("wrong", "D705")]


def test_an_induction_that_finds_nothing_changes_nothing_else() -> None:
    learnt = RuleSet((parse_rule(MINE),), 3, {"mine": Provenance("symbolic", 50)})
    assert audited(learnt) is None
    assert in_force(RuleSet(), None) is None


def audited(before: RuleSet) -> RuleSet | None:
    found = induce(play(200, 0), CHAIN, NoProposer(), InductionSettings(), step=900, previous=before)
    return in_force(found.ruleset, before)


def test_a_found_rule_that_says_the_same_yields_and_one_of_the_same_name_is_renamed() -> None:
    same = f"inside(t, r0) & action_is(t, {ACTIONS[LEAVES[0]]})"
    result = again(standing(f"rule mine [0.3]: {IN} {same} -> good(t)"))
    assert len(result.ruleset.rules) == len(LEAVES)
    assert "R501" in {verdict.code for verdict in result.verdicts} or "R502" in {v.code for v in result.verdicts}
    taken = again(standing(MINE.replace("mine", "push_inside_r0")))
    assert {"push_inside_r0", "push_inside_r0_2"} <= {rule.name for rule in taken.ruleset.rules}


def test_rules_that_stop_firing_leave_with_a_reason() -> None:
    never = parse_rule(f"rule never: {IN} inside(t, r3) & action_is(t, lift) -> good(t)")
    result = again(RuleSet((never,), 3, {"never": Provenance("symbolic", 10)}))
    (left,) = result.ruleset.retired
    assert (left.name, left.code) == ("never", "D701")
    assert "fired 0 times" in left.sentence


def test_a_late_induction_carries_what_a_person_decided_meanwhile() -> None:
    found = again(RuleSet()).ruleset
    out = found.rules[0]
    current = replace(standing(MINE), retired=(Retired(out.name, print_rule(out), "R504", "…", PERSON, 5),))
    joined = carried(found, current)
    assert [rule.name for rule in joined.rules] == ["mine", *(rule.name for rule in found.rules[1:])]
    assert joined.provenance["mine"].proposer == PERSON
    assert [one.by for one in joined.retired] == [PERSON]


# In a run ------------------------------------------------------------------------------------------------------


class Editor(Silent):
    """Edits the newest rule file once there is one, and remembers what the run says."""

    def __init__(self, run: Path, edit: Callable[[Path], None], stop: int = 10**9) -> None:
        self.run, self.edit, self.stop = run, edit, stop
        self.seen = 0
        self.said: list[str] = []
        self.edited: Path | None = None

    def progress(self, step: int, success: float | None, mean_return: float | None, rules: int) -> None:
        self.seen = step
        files = sorted((self.run / "rules").glob("[0-9]*.rules"))
        if files and self.edited is None:
            self.edited = files[-1]
            self.edit(files[-1])

    def say(self, message: str) -> None:
        self.said.append(message)

    def stopping(self) -> bool:
        return self.edited is not None and self.seen >= self.stop


BY_HAND = f"rule by_hand [0.3]: {IN} action_is(t, right) -> good(t)"


def test_an_edit_during_a_run_is_in_force_from_the_next_induction_on(tmp_path: Path) -> None:
    editor = Editor(tmp_path / "run", lambda path: append(path, BY_HAND))
    train(tmp_path / "run", settings(eval_every=10_000, final_episodes=0), observer=editor)
    assert any("added by_hand" in message for message in editor.said)
    lines = told(tmp_path / "run")
    (edit,) = [line for line in lines if line["kind"] == "edit"]
    run = RunDirectory.open(tmp_path / "run")
    assert run.load_rules(edit["version"]).provenance["by_hand"].proposer == PERSON
    newest = run.newest_rules()
    assert newest is not None
    still = {rule.name for rule in newest.rules} | {one.name for one in newest.retired}
    later = [line for line in lines if line["kind"] == "rules" and line["step"] >= edit["step"]]
    assert later
    assert "by_hand" in still or any("by_hand" in line["refused"] for line in later)
    assert editor.edited is not None
    assert BY_HAND in editor.edited.read_text(), "the file of the person stays as they wrote it"


def test_a_bad_edit_during_a_run_is_refused_with_its_line_and_changes_nothing(tmp_path: Path) -> None:
    editor = Editor(tmp_path / "bad", lambda path: append(path, "rule oops: forall t in step: (p(t) -> good(t)"))
    short = settings(eval_every=10_000, final_episodes=0)
    train(tmp_path / "bad", short, observer=editor)
    train(tmp_path / "plain", short)
    assert len([message for message in editor.said if "R101" in message and "line" in message]) == 1
    assert told(tmp_path / "bad") == told(tmp_path / "plain")


def test_an_edit_made_after_the_last_checkpoint_survives_a_resume(tmp_path: Path) -> None:
    path = tmp_path / "run"
    quick = settings(eval_every=10_000, final_episodes=0, checkpoint_every=100_000)
    with pytest.raises(RunStopped):
        train(path, quick, observer=Editor(path, lambda _: None, stop=0))
    run = RunDirectory.open(path)
    newest = sorted(run.rules.glob("[0-9]*.rules"))[-1]
    version = int(newest.stem)
    append(newest, BY_HAND)
    run.rewind(0, version - 1)
    kept = run.rules / f"edited-{newest.name}"
    assert BY_HAND in kept.read_text()
    assert json.loads(kept.with_suffix(".json").read_text())["written"] != kept.read_text()
    assert not newest.exists()


def test_a_resumed_run_goes_on_with_the_rules_that_were_in_force(tmp_path: Path) -> None:
    path = tmp_path / "run"
    quick = settings(eval_every=10_000, final_episodes=0)
    with pytest.raises(RunStopped):
        train(path, quick, observer=Editor(path, lambda _: None, stop=0))
    run = RunDirectory.open(path)
    newest = sorted(run.rules.glob("[0-9]*.rules"))[-1]
    before = load_rules(newest)
    newest.write_text("not a rule at all")
    assert run.load_rules(before.version) == before
    editor = Editor(path, lambda _: None)
    resume(path, observer=editor)
    assert any("is not taken" in message for message in editor.said)
