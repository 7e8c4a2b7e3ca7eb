from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nser.cli.main import main
from nser.cli.train import run_path
from tests.pixels import PIXELS

QUICK = [
    "--steps", "2600", "--seed", "3", "--explore", "rules",
    *(word for pair in ("net_arch=16", "learning_starts=100", "batch_size=16", "induce_every=500", "train_freq=8",
                        "eval_every=100000", "final_episodes=3", "checkpoint_every=1000", "buffer_size=2000")
      for word in ("--set", pair)),
]  # fmt: skip


def nser(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command line."""
    capsys.readouterr()
    before, sys.argv = sys.argv, ["nser", *words]
    try:
        main()
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    finally:
        sys.argv = before
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run made by the command line itself."""
    path = tmp_path_factory.mktemp("cli") / "run"
    command = [sys.executable, "-m", "nser", "train", "FrozenLake-v1", "--name", str(path), *QUICK, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    assert told["run"] == str(path)
    assert told["rules"] > 0
    assert Path(told["report"]).is_file()
    return path


def newest(run: Path) -> Path:
    return sorted((run / "rules").glob("*.rules"))[-1]


def test_show_prints_every_rule_with_its_figures(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = nser(capsys, "rules", "show", str(newest(run)))
    assert code == 0
    told = json.loads(nser(capsys, "rules", "show", str(newest(run)), "--json")[1])
    assert told["rules"]
    for rule in told["rules"]:
        assert rule["name"] in out
        assert rule["proposer"] == "symbolic"
        assert {"weight", "support", "precision", "lift", "since", "text"} <= rule.keys()
    assert max(len(line) for line in out.splitlines()) <= 80
    assert out.splitlines()[0].endswith("as in the file (--sort lift for the best first)")


def test_show_keeps_the_good_rules_of_a_file_with_a_bad_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.rules"
    path.write_text("rule fine: forall t in step: a(t) -> good(t)\nrule broken: forall t in step: a(t -> good(t)\n")
    code, out, err = nser(capsys, "rules", "show", str(path))
    assert code == 1
    assert "fine" in out
    assert "line 2" in err
    assert "broken" in err


def test_explain_without_a_run_says_the_rules_in_english(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = nser(capsys, "rules", "explain", str(newest(run)))
    assert code == 0
    assert "is good" in out


def _fired(run: Path) -> int:
    """A slot on which the newest rules fire, scored by them when the run ended."""
    from nser.runs.directory import RunDirectory
    from nser.runs.explain import explain_slot, stored_buffer

    found = RunDirectory.open(run)
    (buffer, vocabulary), ruleset = stored_buffer(found), found.newest_rules()
    assert vocabulary is not None
    assert ruleset is not None
    for slot in range(buffer.size()):
        told = explain_slot(buffer, vocabulary, ruleset, slot)
        if told.score > 0.2 and told.law["version"] == ruleset.version:
            return slot
    raise AssertionError("no transition that a rule fires on was found")


def test_explain_tells_every_factor_and_every_literal(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["rules", "explain", str(newest(run)), "--run", str(run), "--slot"]
    code, out, _ = nser(capsys, *words, str(_fired(run)), "--json")
    assert code == 0
    fired = json.loads(out)
    law = fired["law"]
    assert law["rule_factor"] == pytest.approx(1 + 4 * law["relevance"])
    assert fired["score"] == pytest.approx(law["relevance"], abs=1e-5), "the run scored it by these rules"
    by_hand = 1.0
    for firing in fired["firings"]:
        product = 1.0
        for _, degree in firing["literals"]:
            product *= degree
        assert firing["body"] == pytest.approx(product, abs=1e-5)
        by_hand *= 1 - firing["weight"] * firing["body"] * firing["head"]
    assert fired["score"] == pytest.approx(1 - by_hand, abs=1e-5)
    _, out, _ = nser(capsys, *words, str(fired["slot"]))
    for word in ("signal", "relevance", "probability", "weight"):
        assert word in out
    best = max(fired["firings"], key=lambda firing: float(firing["contribution"]))
    assert best["rule"] in out
    assert all(literal in out for literal, _ in best["literals"])


def test_a_draw_is_explained_without_rules_and_without_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    given = ["--name", str(run), "--replay", "per", "--steps", "300", "--set", "final_episodes=1"]
    assert nser(capsys, "train", PIXELS, *given)[0] == 0
    code, out, err = nser(capsys, "rules", "explain", str(run), "--slot", "5")
    assert (code, err) == (0, "")
    assert "action [" in out
    assert "probability" in out
    assert "of 0 rules" not in out


def test_report_is_one_page_without_the_network(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "report.html").unlink()
    code, out, _ = nser(capsys, "report", str(run))
    assert code == 0
    page = Path(out.strip()).read_text()
    assert page.count("<svg") > 2
    for rule in json.loads(nser(capsys, "rules", "show", str(newest(run)), "--json")[1])["rules"]:
        assert rule["name"] in page
    loads = [part for part in ("src=", 'href="http', "@import", "url(http") if part in page]
    assert not loads


UNKNOWN_PREDICATE = "rule r: forall t in step: facing(t, key) -> good(t)\n"


def test_wrong_use_is_one_line_and_exit_code_2(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "mine.rules"
    mine.write_text(UNKNOWN_PREDICATE)
    binary = tmp_path / "binary.rules"
    binary.write_bytes(b"\x00\x01")
    rules = str(newest(run))
    for words, expected in (
        (["train", "MiniGrid-DoorKee-6x6-v0"], "MiniGrid-DoorKey-6x6-v0"),
        (["train", "FrozenLake-v1", "--name", str(run)], "--overwrite"),
        (["train", "FrozenLake-v1", "--name", str(tmp_path / "a"), "--set", "speed=3"], "found setting speed"),
        (
            ["train", "FrozenLake-v1", "--steps", "9", "--set", "steps=5"],
            "found --steps and --set steps=5, expected one",
        ),
        (["train", "FrozenLake-v1", "--set", "lerning_rate=1"], "is unknown; did you mean learning_rate?"),
        (["train", "FrozenLake-v1", "--name", str(tmp_path / "a"), "--set", "speed"], "NAME=VALUE"),
        (["train", "FrozenLake-v1", "--replay", "magic"], "found replay = 'magic'"),
        (["train", "FrozenLake-v1", "--resume", str(run)], f"found FrozenLake-v1 beside --resume {run}"),
        (["train", "--resume", str(run), "--seed", "0"], "found --seed beside --resume"),
        (["train", "--resume", str(run), "--set", "gamma=0.9"], "found --set beside --resume"),
        (["train", "--resume", str(run), "--steps", "100"], "found 100 steps, expected more than the 2,600"),
        (["train"], "found no environment"),
        (["train", "--resume", str(tmp_path)], "found no config.json"),
        (["train", "--resume", str(run)], "is done"),
        (["report", str(tmp_path)], "found no config.json"),
        (["rules", "show", str(tmp_path / "none.rules")], "no such file"),
        (["rules", "show", str(tmp_path)], "which is no run"),
        (["rules", "show", str(binary)], "zero byte"),
        (["rules", "explain", rules, "--slot", "3"], "found only one of --run and --slot"),
        (["rules", "explain", rules, "--run", str(run), "--slot", "99999"], "found slot 99999"),
        (["rules", "explain", str(mine), "--run", str(run), "--slot", "3"], "facing"),
    ):
        code, _, err = nser(capsys, *words)
        assert code == 2, (words, err)
        assert expected in err, (words, err)
        assert err.count("\n") == 1, (words, err)
        assert "Traceback" not in err
    assert not (tmp_path / "a").exists()


def test_a_run_without_a_checkpoint_is_refused_in_words(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "config.json").write_text((run / "config.json").read_text())
    code, _, err = nser(capsys, "rules", "explain", str(newest(run)), "--run", str(bare), "--slot", "3")
    assert code == 2
    assert "has saved no checkpoint yet; the first comes after 1,000 steps" in err


def test_a_full_disk_ends_in_a_line_and_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import numpy as np

    real = np.savez
    calls = []

    def full(*args: object, **kwargs: object) -> None:
        calls.append(1)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        real(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(np, "savez", full)
    path = tmp_path / "run"
    code, _, err = nser(capsys, "train", "FrozenLake-v1", "--name", str(path), *QUICK)
    assert code == 1
    assert "No space left on device" in err
    assert "Traceback" not in err
    monkeypatch.undo()
    code, _, err = nser(capsys, "train", "--resume", str(path), "--json")
    assert code == 0, err


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert nser(capsys, "--version")[1].startswith("nser ")
    code, out, _ = nser(capsys, "train", "--help")
    assert code == 0
    assert "--explore" in out


def test_names_of_runs() -> None:
    assert run_path("CartPole-v1", "nser", "rules", 3, None) == Path("runs/CartPole-v1-nser-explore-3")
    assert run_path("ns/Env-v0", "per", "epsilon", 0, None) == Path("runs/ns-Env-v0-per-0")
    assert run_path("x", "per", "epsilon", 0, "mine") == Path("runs/mine")
    assert run_path("x", "per", "epsilon", 0, "/tmp/mine") == Path("/tmp/mine")


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("nser", {"torch", "numba", "numpy", "gymnasium", "stable_baselines3", "lark"}),
        ("nser.cli.main", {"torch", "numba", "gymnasium", "stable_baselines3", "matplotlib"}),
    ],
)
def test_importing_is_cheap(module: str, heavy: set[str]) -> None:
    script = f"import sys, {module}; found = {heavy} & set(sys.modules); assert not found, found"
    subprocess.run([sys.executable, "-c", script], check=True)
