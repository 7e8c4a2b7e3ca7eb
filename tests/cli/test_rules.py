"""Every command about rule files: what it prints, its JSON, its exit codes, and one line for every wrong use."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nser.cli import rules_edit
from nser.experience.files import save_trajectories
from nser.rules.store import load_rules
from tests.cli.test_cli import nser
from tests.induce.planted import play

IN = "forall t in step:"
VOCAB = ["--vocab", "tests.induce.planted:CHAIN"]
PUSH = f"rule push [0.5]: {IN} inside(t, r0) & action_is(t, push) -> good(t)"
PULL = f"rule pull: {IN} inside(t, r1) & action_is(t, pull) -> good(t)"

Capsys = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "chain.npz"
    save_trajectories(path, play(200, 1))
    return path


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return written(tmp_path / "good.rules", PUSH, PULL)


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def written(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def as_json(capsys: Capsys, *words: str, expected: int = 0) -> Any:
    code, out, err = nser(capsys, *words, "--json")
    assert code == expected, err
    return json.loads(out)


def test_check_of_good_rules(good: Path, data: Path, capsys: Capsys) -> None:
    code, out, err = nser(capsys, "rules", "check", str(good), *VOCAB)
    assert (code, out, err) == (0, "2 rules fine, 0 refused\n", "")
    assert "names were not checked" in nser(capsys, "rules", "check", str(good))[2]
    told = as_json(capsys, "rules", "check", str(good), str(data), *VOCAB)
    assert told["kept"] == ["push", "pull"]
    assert {verdict["code"] for verdict in told["verdicts"]} == {"kept"}


def test_check_shows_each_fault_with_its_line_and_a_caret(tmp_path: Path, data: Path, capsys: Capsys) -> None:
    bad = written(
        tmp_path / "bad.rules",
        PUSH,
        f"rule typo: {IN} insid(t, r0) -> good(t)",
        f"rule cut: {IN} inside(t, r0 & noise(t) -> good(t)",
        f"rule wait: {IN} inside(t, r0) & action_is(t, wait) -> good(t)",
        f"rule noisy: {IN} noise(t) -> ~good(t)",
    )
    code, out, _ = nser(capsys, "rules", "check", str(bad), str(data), *VOCAB)
    assert code == 1
    for words in ("R101 line 3, column", "R201 line 2", "did you mean `inside`?", "R602", "D703", "episode"):
        assert words in out, out
    lines = out.splitlines()
    at = next(i for i, line in enumerate(lines) if "insid(t, r0)" in line)
    assert lines[at + 1].index("^") == lines[at].index("insid(")
    told = as_json(capsys, "rules", "check", str(bad), *VOCAB, expected=1)
    assert told["refused"] == 2
    assert told["kept"] == ["push", "wait", "noisy"]
    assert {v["code"]: (v["line"], v["kept"]) for v in told["verdicts"]} == {
        **{"R101": (3, False), "R201": (2, False), "R602": (5, True)}
    }


def test_two_faults_of_one_rule_are_one_refusal(tmp_path: Path, capsys: Capsys) -> None:
    faulty = tmp_path / "faulty.rules"
    faulty.write_text("rule a: forall t in step: insyde(t, r0) & action_is(t, shove) -> good(t)")
    code, out, _ = nser(capsys, "rules", "check", str(faulty), *VOCAB)
    assert code == 1
    assert out.rstrip().endswith("0 rules fine, 1 refused for 2 faults")


def test_notes_count_only_where_asked_and_replies_may_hold_prose(tmp_path: Path, capsys: Capsys) -> None:
    noted = written(tmp_path / "noted.rules", PUSH, f"rule noisy: {IN} noise(t) -> ~good(t)")
    assert nser(capsys, "rules", "check", str(noted))[0] == 0
    assert nser(capsys, "rules", "check", str(noted), "--strict")[0] == 1
    reply = written(tmp_path / "reply.txt", "<think>", "hm", "</think>", "Here:", "```", PUSH, "```")
    assert nser(capsys, "rules", "check", str(reply))[0] == 1
    assert nser(capsys, "rules", "check", str(reply), "--reply")[0] == 0


def test_show_sorts_and_filters(good: Path, capsys: Capsys) -> None:
    def names(*words: str) -> list[str]:
        return [rule["name"] for rule in as_json(capsys, "rules", "show", str(good), *words)["rules"]]

    assert names() == ["push", "pull"]
    assert names("--sort", "weight") == names("--sort", "name") == ["pull", "push"]
    assert names("--sort", "lift") == ["push", "pull"]
    assert names("--filter", "R1") == ["pull"]
    assert "--sort" in nser(capsys, "rules", "show", str(good), "--sort", "colour")[2]
    assert "\x1b" not in nser(capsys, "rules", "show", str(good), "--plain")[1]


def test_explain_a_recorded_row(good: Path, data: Path, capsys: Capsys) -> None:
    words = ["rules", "explain", str(good), str(data), *VOCAB, "--row"]
    played = play(200, 1)
    row = int(np.flatnonzero((played.observations[:, 0] == 0) & (played.actions.reshape(-1) == 1))[0])
    told = as_json(capsys, *words, str(row))
    assert told["action"] == "push"
    assert told["score"] == pytest.approx(0.5)
    assert told["firings"][0]["literals"] == [["inside(t, r0)", 1.0], ["action_is(t, push)", 1.0]]
    code, out, _ = nser(capsys, *words, str(row))
    assert code == 0
    assert "action push" in out
    assert "inside(t, r0)" in out
    zero = sum(not value for value in told["facts"].values())
    assert f"{zero} other number{'s are' if zero > 1 else ' is'} 0" in out
    assert "expected 0 to" in nser(capsys, *words, "999999")[2]
    assert "expected both" in nser(capsys, *words[:-1])[2]


def test_explain_uses_the_meanings_of_a_vocabulary(good: Path, capsys: Capsys) -> None:
    assert "inside(r0)" in nser(capsys, "rules", "explain", str(good))[1]
    assert "the agent is in the room r0" in nser(capsys, "rules", "explain", str(good), *VOCAB)[1]


def test_diff_and_merge(good: Path, tmp_path: Path, capsys: Capsys) -> None:
    other = written(tmp_path / "other.rules", PUSH.replace("0.5", "0.9"), f"rule new: {IN} noise(t) -> good(t)")
    told = as_json(capsys, "rules", "diff", str(good), str(other))["changes"]
    assert [(change["kind"], change["name"]) for change in told] == [
        *(("changed", "push"), ("added", "new"), ("removed", "pull"))
    ]
    code, out, _ = nser(capsys, "rules", "diff", str(good), str(other))
    assert code == 0
    assert "1 added, 1 removed, 1 changed" in out
    mine = written(tmp_path / "mine.rules", PUSH.replace("0.5", "0.7"), PULL)
    merged = tmp_path / "merged.rules"
    words = ["rules", "merge", str(good), str(mine), str(other), "-o", str(merged)]
    code, _, err = nser(capsys, *words)
    assert code == 1
    assert "conflict: rule `push` was changed on both sides" in err.replace("\n", " ")
    assert [(rule.name, rule.weight) for rule in load_rules(merged).rules] == [("push", 0.7), ("new", 1.0)]
    code, out, _ = nser(capsys, "rules", "merge", str(good), str(good), str(other))
    assert code == 0
    assert "rule push [0.9]" in out


def test_simplify(tmp_path: Path, capsys: Capsys) -> None:
    body = "noise(t) & (noise(t) | inside(t, r0))"
    path = written(tmp_path / "long.rules", f"rule long [0.3]: {IN} {body} -> good(t)")
    short = tmp_path / "short.rules"
    code, out, _ = nser(capsys, "rules", "simplify", str(path), "-o", str(short))
    assert code == 0
    assert "3 literals became 1 literal" in out
    (rule,) = load_rules(short).rules
    assert rule.weight == 0.3
    (told,) = as_json(capsys, "rules", "simplify", str(short))["rules"]
    assert not told["changed"]


def test_score_writes_what_the_evaluator_says(good: Path, data: Path, tmp_path: Path, capsys: Capsys) -> None:
    out_path = tmp_path / "scores.npz"
    told = as_json(capsys, "rules", "score", str(good), str(data), *VOCAB, "-o", str(out_path))
    with np.load(out_path) as archive:
        scores, firings, names = archive["scores"], archive["firings"], archive["rules"].tolist()
    played = play(200, 1)
    pushes = (played.observations[:, 0] == 0) & (played.actions.reshape(-1) == 1)
    assert names == ["push", "pull"]
    assert firings.shape == (len(played), 2)
    np.testing.assert_allclose(firings[:, 0], pushes, atol=1e-6)
    np.testing.assert_allclose(scores, 1 - (1 - 0.5 * firings[:, 0]) * (1 - firings[:, 1]), atol=1e-6)
    assert told["rules"][0]["firings"] == pushes.sum()
    assert told["transitions"] == len(played)
    code, out, _ = nser(capsys, "rules", "score", str(good), str(data), *VOCAB, "--mode", "violation")
    assert code == 0
    assert max(len(line) for line in out.splitlines()) <= 80


def test_score_writes_a_table_with_a_row_for_each_transition(
    good: Path, data: Path, tmp_path: Path, capsys: Capsys
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    for name in ("scores.npz", "scores.parquet"):
        as_json(capsys, "rules", "score", str(good), str(data), *VOCAB, "-o", str(tmp_path / name))
    table = parquet.read_table(tmp_path / "scores.parquet").to_pydict()
    assert list(table) == ["episode", "step", "score", "firing_push", "firing_pull"]
    with np.load(tmp_path / "scores.npz") as archive:
        assert table["episode"] == archive["episodes"].tolist()
        assert table["step"] == archive["steps"].tolist()
        np.testing.assert_array_equal(np.float32(table["score"]), archive["scores"])
        for place, name in enumerate(archive["rules"].tolist()):
            np.testing.assert_array_equal(np.float32(table[f"firing_{name}"]), archive["firings"][:, place])
    firsts = [row for row, step in enumerate(table["step"]) if step == 0]
    assert len(firsts) == len(set(table["episode"])) == 200
    assert all(
        later == earlier + 1 or later == 0 for earlier, later in zip(table["step"], table["step"][1:], strict=False)
    )


def test_parquet_without_its_package_is_one_sentence(
    good: Path, data: Path, tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "scores.parquet"
    monkeypatch.setattr("nser.cli.scores_file.find_spec", lambda name: None)
    code, _, err = nser(capsys, "rules", "score", str(good), str(data), *VOCAB, "-o", str(path))
    assert code == 2
    assert "no pyarrow" in err.replace("\n", " ")
    assert "nser[parquet]" in err
    assert not path.exists()


@pytest.mark.parametrize("suffix", ["svg", "png", "mmd"])
def test_graph_draws(good: Path, tmp_path: Path, suffix: str, capsys: Capsys) -> None:
    rules = written(
        tmp_path / "set.rules",
        PUSH,
        PULL,
        f"rule wide: {IN} inside(t, r0) -> good(t)",
        f"rule no: {IN} noise(t) -> ~good(t)",
    )
    first, second = tmp_path / f"one.{suffix}", tmp_path / f"two.{suffix}"
    for path in (first, second):
        code, out, _ = nser(capsys, "rules", "graph", str(rules), "-o", str(path))
        assert code == 0
        assert "1 special case" in out
    assert first.read_bytes() == second.read_bytes(), "the same rules give the same picture"
    starts = {"svg": b"<?xml", "png": b"\x89PNG", "mmd": b"flowchart"}
    assert first.read_bytes().startswith(starts[suffix])
    told = as_json(capsys, "rules", "graph", str(rules))
    assert {edge["kind"] for edge in told["edges"]} == {"subsumes", "conflicts", "shares"}
    assert nser(capsys, "rules", "graph", str(good))[1].startswith("flowchart LR\n")


def test_fit_moves_thresholds_and_says_so(data: Path, tmp_path: Path, capsys: Capsys) -> None:
    path = written(tmp_path / "n.rules", f"rule far: {IN} place(t) > ?0.2 & action_is(t, pull) -> good(t)")
    fitted = tmp_path / "fitted.rules"
    words = ["rules", "fit", str(path), str(data), "--vocab", "tests.induce.planted:NUMBERS"]
    code, out, _ = nser(capsys, *words, "-o", str(fitted))
    assert code in (0, 1)
    assert "far: place(t) >" in out
    (told,) = as_json(capsys, *words, expected=code)["rules"]
    assert 0 <= told["thresholds"][0]["after"] <= 2
    assert len(load_rules(fitted).rules) + len(load_rules(fitted).retired) == 1


def test_induce_finds_the_planted_rules_and_tells_every_verdict(data: Path, tmp_path: Path, capsys: Capsys) -> None:
    path = tmp_path / "found.rules"
    code, out, _ = nser(capsys, "induce", str(data), "-o", str(path), *VOCAB)
    assert code == 0
    found = load_rules(path)
    assert len(found.rules) == 3
    assert all(rule.name in out for rule in found.rules)
    assert "verdicts on 3 proposals" in out
    assert max(len(line) for line in out.splitlines()) <= 80
    told = as_json(capsys, "induce", str(data), *VOCAB)
    assert told["kept"] == [rule.name for rule in found.rules]
    assert nser(capsys, "rules", "check", str(path), str(data), *VOCAB)[0] == 0


# Edit ----------------------------------------------------------------------------------------------------------


def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, after: str) -> None:
    """$EDITOR as a script that replaces one text by another."""
    script = tmp_path / "editor"
    script.write_text(
        f"#!{sys.executable}\nimport pathlib, sys\npath = pathlib.Path(sys.argv[1])\n"
        f"path.write_text(path.read_text().replace({before!r}, {after!r}, 1))\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", str(script))


def test_a_good_edit_replaces_the_file(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    editor(tmp_path, monkeypatch, "[0.5]", "[0.9]")
    code, out, _ = nser(capsys, "rules", "edit", str(good), *VOCAB)
    assert code == 0
    assert "2 rules" in out
    assert load_rules(good).rules[0].weight == 0.9
    assert "--resume" not in out
    assert nser(capsys, "rules", "edit", str(good))[1] == "nothing changed\n"


def test_an_edit_in_a_run_says_when_it_counts(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    rules = tmp_path / "run" / "rules"
    rules.mkdir(parents=True)
    (rules.parent / "config.json").write_text("{}")
    (rules / "0001.rules").write_bytes(good.read_bytes())
    editor(tmp_path, monkeypatch, "[0.5]", "[0.9]")
    code, out, _ = nser(capsys, "rules", "edit", str(rules.parent), *VOCAB)
    assert code == 0
    assert "2 rules. They are in force from the run's next induction" in out


def test_a_bad_edit_needs_a_person_and_keeps_the_copy(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    before = good.read_text()
    editor(tmp_path, monkeypatch, "inside", "insyde")
    code, out, err = nser(capsys, "rules", "edit", str(good), *VOCAB)
    assert code == 1
    assert "R201" in out
    assert "nobody to ask" in err
    assert good.read_text() == before
    copy = Path(err.splitlines()[0].removeprefix("your copy is "))
    assert "insyde" in copy.read_text()


@pytest.mark.parametrize(("answers", "changed"), [("discard", False), ("keep", True)])
def test_a_person_may_insist_or_give_up(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys, answers: str, changed: bool
) -> None:
    before = good.read_text()
    editor(tmp_path, monkeypatch, "inside", "insyde")
    asked: list[int] = []

    def ask(refused: int) -> str:
        asked.append(refused)
        return "edit" if len(asked) == 1 else answers

    monkeypatch.setattr(rules_edit, "_ask", ask)
    assert nser(capsys, "rules", "edit", str(good), *VOCAB)[0] == 0
    assert asked == [1, 2], "edited again, the other rule is bad, too"
    assert (good.read_text() != before) == changed


def test_a_file_that_changed_meanwhile_is_not_overwritten(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    real = rules_edit._open_editor

    def slow(copy: Path) -> None:
        real(copy)
        good.write_text(PULL + "\n")

    editor(tmp_path, monkeypatch, "[0.5]", "[0.9]")
    monkeypatch.setattr(rules_edit, "_open_editor", slow)
    code, _, err = nser(capsys, "rules", "edit", str(good))
    assert code == 1
    assert "changed by another meanwhile" in err
    assert good.read_text() == PULL + "\n"


def test_an_editor_that_fails_changes_nothing(good: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    for program, words in (("false", "exit code 1"), ("/no/such/editor", "can't be started")):
        monkeypatch.setenv("EDITOR", program)
        before = good.read_text()
        code, _, err = nser(capsys, "rules", "edit", str(good))
        assert code in (1, 2)
        assert words in err
        assert good.read_text() == before


# Wrong use -----------------------------------------------------------------------------------------------------


def test_wrong_use_is_one_line_and_exit_code_2(good: Path, data: Path, tmp_path: Path, capsys: Capsys) -> None:
    empty = tmp_path / "run" / "rules"
    empty.mkdir(parents=True)
    (empty.parent / "config.json").write_text("{}")
    file, trajectories = str(good), str(data)
    (tmp_path / "talk.rules").write_text("Sure! Here are your rules.")
    talk = str(tmp_path / "talk.rules")
    unwritable = str(tmp_path / "none" / "x.npz")
    for words, expected in (
        (["rules", "check", str(tmp_path / "none.rules")], "no such file"),
        (["rules", "check", str(empty.parent)], "found no rules in the run"),
        (["rules", "score", file, str(tmp_path / "none")], "none: no such file or directory"),
        (["induce", str(tmp_path / "none.npz")], "none.npz: no such file or directory"),
        (["rules", "score", talk, trajectories, *VOCAB], "found no rule in"),
        (["rules", "fit", talk, trajectories, *VOCAB], "found no rule in"),
        (["rules", "graph", talk], "found no rule in"),
        (["rules", "simplify", talk], "found no rule in"),
        (["rules", "check", file, trajectories], "found data but no vocabulary"),
        (["rules", "check", file, "--env", "CartPole-v1", *VOCAB], "found both --env and --vocab"),
        (["rules", "check", file, "--vocab", "nowhere"], "expected MODULE:NAME"),
        (["rules", "check", file, "--vocab", "no_such_module:X"], "No module named"),
        (["rules", "check", file, "--vocab", "tests.induce.planted:ROOMS"], "found a int"),
        (["rules", "check", file, "--env", "CartPol-v1"], "CartPole"),
        (["rules", "check", file, str(tmp_path / "no.npz"), *VOCAB], "can't read"),
        (["rules", "score", file, trajectories], "found no vocabulary"),
        (["rules", "score", file, trajectories, *VOCAB, "--mode", "loud"], "found --mode loud"),
        (["rules", "score", file, trajectories, *VOCAB, "-o", "x.csv"], "ends in .npz or .parquet"),
        (["rules", "score", file, trajectories, *VOCAB, "-o", unwritable], "can't write"),
        (["rules", "graph", file, "-o", "x.gif"], "ends in .svg, .png, .mmd"),
        (["rules", "fit", file, trajectories, *VOCAB, "--label", "luck"], "found --label luck"),
        (["induce", trajectories, *VOCAB, "-o", "x.txt"], "ends in .rules"),
        (["induce", trajectories, *VOCAB, "--label", "luck"], "found label 'luck'"),
    ):
        code, _, err = nser(capsys, *words)
        assert code == 2, (words, err)
        assert expected in err, (words, err)
        assert err.strip().count("\n") == 0, (words, err)
        assert "Traceback" not in err


def test_a_run_knows_its_own_environment(tmp_path: Path, capsys: Capsys) -> None:
    from nser.runs.directory import RunDirectory
    from nser.runs.settings import RunSettings

    run = RunDirectory.create(tmp_path / "run", RunSettings(env="CartPole-v1"))
    file = written(run.rules / "0001.rules", f"rule a: {IN} pole_angel(t) > 0.1 -> good(t)")
    for named in (run.path, file):
        told = as_json(capsys, "rules", "check", str(named), expected=1)
        assert told["verdicts"][0]["code"] == "R201"
        assert "pole_angle" in told["verdicts"][0]["suggestion"]
