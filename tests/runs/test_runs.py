from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nser.rules.printer import print_rule
from nser.rules.ruleset import RuleSet
from nser.runs.archive import read_archive, write_archive
from nser.runs.callback import Silent
from nser.runs.directory import RunDirectory
from nser.runs.environment import UNENDING, SuccessInfo, evaluation_env, training_env
from nser.runs.errors import (
    CheckpointError,
    DiskError,
    NoRunError,
    RunError,
    RunExistsError,
    RunStopped,
    UnsuitedEnvironmentError,
)
from nser.runs.evaluate import evaluate
from nser.runs.explain import explain_slot, stored_buffer
from nser.runs.session import Session, Streams
from nser.runs.settings import RunSettings, SettingsError, parse_settings
from nser.runs.train import resume, train
from tests.parts import PARTS
from tests.pixels import PIXELS

TINY: dict[str, Any] = {
    "env": "FrozenLake-v1",
    "steps": 3000,
    "seed": 3,
    "explore": "rules",
    "net_arch": (16,),
    "buffer_size": 2000,
    "learning_starts": 100,
    "batch_size": 16,
    "induce_every": 500,
    "log_every": 250,
    "eval_every": 1000,
    "eval_episodes": 2,
    "final_episodes": 2,
    "checkpoint_every": 1000,
    "train_freq": 8,
}


def settings(**changes: Any) -> RunSettings:
    return RunSettings(**{**TINY, **changes})


class Stopper(Silent):
    """Asks the run to stop once it has come to a step."""

    def __init__(self, step: int) -> None:
        self.step, self.seen = step, 0
        self.said: list[str] = []

    def progress(self, step: int, success: float | None, mean_return: float | None, rules: int) -> None:
        self.seen = step

    def say(self, message: str) -> None:
        self.said.append(message)

    def stopping(self) -> bool:
        return self.seen >= self.step


def told(path: Path) -> list[dict[str, Any]]:
    """The metrics without what depends on the clock on the wall."""
    lines = RunDirectory.open(path).read_metrics()
    return [{k: v for k, v in line.items() if k not in ("seconds", "cost_seconds", "cost")} for line in lines]


def weights(path: Path) -> bytes:
    state = read_archive(RunDirectory.open(path).checkpoint)
    session = state["session"]
    moments = [array for number in sorted(session["optimizer"]["state"]) for array in moments_of(session, number)]
    return b"".join(array.tobytes() for array in [*session["policy"].values(), *moments])


def moments_of(session: dict[str, Any], number: str) -> list[np.ndarray]:
    """What the optimizer keeps of a parameter."""
    return list(session["optimizer"]["state"][number].values())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run that nothing interrupted."""
    path = tmp_path_factory.mktemp("runs") / "whole"
    train(path, settings())
    return path


def test_a_run_writes_its_directory(whole: Path) -> None:
    run = RunDirectory.open(whole)
    assert run.settings() == settings()
    config = json.loads(run.config.read_text())
    assert {"python", "torch", "nser"} <= config["versions"].keys()
    kinds = [line["kind"] for line in told(whole)]
    assert kinds.count("train") >= 11
    assert kinds.count("eval") == 2
    assert kinds[-1] == "done"
    steps = [line["step"] for line in told(whole)]
    assert steps == sorted(steps)
    ruleset = run.newest_rules()
    assert ruleset is not None
    assert ruleset.rules
    assert all(ruleset.provenance[rule.name].proposer == "symbolic" for rule in ruleset.rules)


def test_shares_owed_to_rules_add_up_to_what_the_index_says(whole: Path) -> None:
    lines = [line for line in told(whole) if line["kind"] == "train" and line["owed"]]
    assert lines
    for line in lines:
        # What is not attributed are scores below the trace that a soft comparison leaves.
        assert sum(line["owed"].values()) == pytest.approx(line["rule_share"], abs=0.01)
        assert line["rule_share"] <= 0.5 + 1e-9


def test_same_seed_same_run(whole: Path, tmp_path: Path) -> None:
    train(tmp_path / "again", settings())
    assert told(tmp_path / "again") == told(whole)
    assert weights(tmp_path / "again") == weights(whole)


def test_other_seed_other_run(whole: Path, tmp_path: Path) -> None:
    train(tmp_path / "other", settings(seed=2, steps=600))
    assert told(tmp_path / "other")[:2] != told(whole)[:2]


@pytest.mark.parametrize("step", [400, 1000, 1700])
def test_a_stopped_run_goes_on_bit_for_bit(whole: Path, tmp_path: Path, step: int) -> None:
    path = tmp_path / "stopped"
    with pytest.raises(RunStopped, match="saved at step"):
        train(path, settings(), observer=Stopper(step))
    resume(path)
    assert told(path) == told(whole)
    assert weights(path) == weights(whole)


def goes_on_bit_for_bit(folder: Path, given: RunSettings) -> None:
    """Two runs, of which one is stopped half way and resumed, come to the same; the other is `folder / "whole"`."""
    train(folder / "whole", given)
    with pytest.raises(RunStopped):
        train(folder / "stopped", given, observer=Stopper(given.steps // 2))
    resume(folder / "stopped")
    assert told(folder / "stopped") == told(folder / "whole")
    assert weights(folder / "stopped") == weights(folder / "whole")


@pytest.mark.parametrize("replay", ["placebo", "uniform"])
def test_every_replay_goes_on_bit_for_bit(tmp_path: Path, replay: str) -> None:
    goes_on_bit_for_bit(tmp_path, settings(replay=replay, explore="epsilon", steps=1200, n_envs=2))


@pytest.mark.parametrize("env", [PARTS, "Blackjack-v1"])
def test_a_world_of_several_parts_is_learnt_explained_and_goes_on_bit_for_bit(tmp_path: Path, env: str) -> None:
    goes_on_bit_for_bit(tmp_path, settings(env=env, steps=1200, n_envs=2))
    run = RunDirectory.open(tmp_path / "whole")
    (buffer, vocabulary), ruleset = stored_buffer(run), run.newest_rules()
    assert vocabulary is not None
    facts = explain_slot(buffer, vocabulary, ruleset or RuleSet(), 3).facts
    if env == PARTS:
        assert list(facts) == ["heat0", "heat1", "light=v0", "light=v1", "room_mode=v4", "room_mode=v5", "room_mode=v6"]
        assert facts["light=v0"] + facts["light=v1"] == 1
        assert ruleset is not None
        assert any("light_is(t, v1) & action_is(t, a1)" in print_rule(rule) for rule in ruleset.rules)


@pytest.mark.parametrize("env", ["MiniGrid-Empty-5x5-v0", "BabyAI-GoToObj-v0"])
def test_observations_with_more_than_numbers_are_refused_in_words(tmp_path: Path, env: str) -> None:
    with pytest.raises(UnsuitedEnvironmentError, match=rf"found a \w*MissionSpace in .* {env}, expected numbers"):
        train(tmp_path / "run", settings(env=env, replay="per", explore="epsilon"))
    assert not (tmp_path / "run").exists()


def test_a_world_of_pictures_goes_on_bit_for_bit(tmp_path: Path) -> None:
    goes_on_bit_for_bit(tmp_path, settings(env=PIXELS, replay="per", explore="epsilon", steps=600, n_envs=2))


SCRIPT = """
import sys
from pathlib import Path
import torch
from nser.runs.settings import RunSettings
from nser.runs.train import train
torch.set_num_threads(1)
train(Path(sys.argv[1]), RunSettings.model_validate_json(sys.argv[2]))
"""


def test_a_killed_run_goes_on_as_if_nothing_had_been(whole: Path, tmp_path: Path) -> None:
    """SIGKILL at a moment that nobody chose, after the first checkpoint; the curve has no gap and no double."""
    path = tmp_path / "killed"
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(path), settings().model_dump_json()])
    checkpoint = path / "checkpoint" / "state.npz"
    deadline = time.monotonic() + 120
    while not checkpoint.exists():
        assert process.poll() is None, "the run ended before its first checkpoint"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not any(line["kind"] == "done" for line in told(path))
    resume(path)
    assert told(path) == told(whole)
    assert weights(path) == weights(whole)


def test_killed_before_the_first_checkpoint_begins_anew(whole: Path, tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "early", settings())
    run.metrics.write_text('{"kind": "train", "step": 250}\n{"kind": "tra')
    resume(run.path)
    assert told(run.path) == told(whole)


def test_a_finished_run_is_not_run_again(whole: Path) -> None:
    with pytest.raises(RunError, match="is done: all its 3,000 steps"):
        resume(whole)


def test_an_existing_directory_is_refused_and_untouched(whole: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in whole.rglob("*")}
    with pytest.raises(RunExistsError, match="--overwrite"):
        train(whole, settings())
    assert {p: p.stat().st_mtime_ns for p in whole.rglob("*")} == before


def test_overwrite_replaces_runs_but_never_another_folder(tmp_path: Path) -> None:
    RunDirectory.create(tmp_path / "run", settings())
    (tmp_path / "run" / "rules" / "0001.rules").write_text("old")
    RunDirectory.create(tmp_path / "run", settings(), overwrite=True)
    assert not list((tmp_path / "run" / "rules").iterdir())
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    with pytest.raises(NoRunError):
        RunDirectory.create(tmp_path / "thesis", settings(), overwrite=True)
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years of work"


def test_an_unknown_environment_leaves_no_folder(tmp_path: Path) -> None:
    from nser.envs.errors import UnknownEnvironmentError

    with pytest.raises(UnknownEnvironmentError):
        train(tmp_path / "run", settings(env="MiniGrid-DoorKee-5x5-v0"))
    assert not list(tmp_path.iterdir())


def test_continuous_actions_are_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(UnsuitedEnvironmentError, match="expected Discrete"):
        train(tmp_path / "run", settings(env="Pendulum-v1"))


def test_before_contrast_replay_falls_back_and_says_so_once(tmp_path: Path) -> None:
    observer = Stopper(10**9)
    given = settings(
        env="MiniGrid-DoorKey-16x16-v0", steps=1600, checkpoint_every=10_000, eval_every=10_000, final_episodes=0
    )
    train(tmp_path / "run", given, observer=observer)
    assert len(observer.said) == 1
    assert "replaying by PER meanwhile" in observer.said[0]
    assert not any(line["kind"] == "rules" for line in told(tmp_path / "run"))


@pytest.mark.parametrize("env", ["CartPole-v1", "FrozenLake-v1"])
def test_other_environments_work_through_the_automatic_vocabulary(tmp_path: Path, env: str) -> None:
    outcome = train(tmp_path / "run", settings(env=env, steps=6000, eval_every=10_000, final_episodes=5))
    assert outcome.ruleset is not None
    assert outcome.ruleset.rules
    assert outcome.evaluation is not None
    assert outcome.evaluation.success is not None


# Files ------------------------------------------------------------------------------------------------------


def test_archives_give_back_nested_state(tmp_path: Path) -> None:
    state = {"a": {"b": np.arange(3), "c": None, "d": [1, "x"]}, "rng": {"big": 2**127}, "n": np.int64(4)}
    write_archive(tmp_path / "s.npz", state)
    found = read_archive(tmp_path / "s.npz")
    np.testing.assert_array_equal(found["a"].pop("b"), np.arange(3))
    assert found == {"a": {"c": None, "d": [1, "x"]}, "rng": {"big": 2**127}, "n": 4}


def test_a_disk_that_refuses_leaves_the_old_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "checkpoint" / "state.npz"
    path.parent.mkdir()
    write_archive(path, {"step": 1})

    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(DiskError, match="No space left on device; the one before it is whole") as caught:
        write_archive(path, {"step": 2})
    assert caught.value.exit_code == 1
    assert read_archive(path) == {"step": 1}
    assert [p.name for p in path.parent.iterdir()] == ["state.npz"]


@pytest.mark.parametrize("cut", [0, 10, 5000])
def test_a_cut_checkpoint_is_refused_in_a_line(whole: Path, tmp_path: Path, cut: int) -> None:
    path = tmp_path / "state.npz"
    path.write_bytes(RunDirectory.open(whole).checkpoint.read_bytes()[:cut])
    with pytest.raises(CheckpointError, match="missing or cut"):
        read_archive(path)


def test_a_checkpoint_of_another_format_is_refused(tmp_path: Path) -> None:
    text = json.dumps({"format": 99, "plain": {}}).encode()
    np.savez(tmp_path / "s.npz", **{"plain.json": np.frombuffer(text, np.uint8)})  # type: ignore[arg-type]
    with pytest.raises(CheckpointError, match="has format 99, expected 2"):
        read_archive(tmp_path / "s.npz")


def test_a_broken_configuration_is_refused_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"settings": {"env": 3}}')
    with pytest.raises(RunError, match=r"can't read .*config\.json"):
        RunDirectory.open(tmp_path).settings()


# Parts ------------------------------------------------------------------------------------------------------


def test_streams_of_chance_are_apart() -> None:
    streams = Streams.of(3)
    values = list(vars(streams).values())
    assert len(set(values)) == len(values)
    assert Streams.of(3) == streams
    assert not set(values) & set(vars(Streams.of(4)).values())


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"env": "x", "speed": 1}, "setting speed, which is unknown; did you mean seed.* expected one of env, agent"),
        ({"env": "x", "steps": 0}, "found steps = 0: expected greater than"),
        ({"env": "x", "replay": "magic"}, "expected nser, per, uniform"),
        ({}, "found env"),
    ],
)
def test_wrong_settings_name_the_first_fault(values: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        parse_settings(values)


def test_settings_come_as_text_too() -> None:
    assert parse_settings({"env": "x", "net_arch": "32,16", "learning_rate": "1e-3", "double_q": "no"}) == RunSettings(
        env="x", net_arch=(32, 16), learning_rate=1e-3, double_q=False
    )


class Fixed:
    """A policy that always does the same."""

    def __init__(self, action: int) -> None:
        self.action, self.asked = action, 0

    def predict(self, observation: Any, *, deterministic: bool) -> tuple[np.ndarray, Any]:
        assert deterministic
        self.asked += 1
        return np.full(len(observation), self.action), None


def test_evaluation_plays_every_episode_to_its_end() -> None:
    policy = Fixed(0)
    found = evaluate(policy, lambda: evaluation_env("CartPole-v1"), 7, seed=3)
    one_by_one = []
    for seed in np.random.SeedSequence(3).generate_state(7):
        env = evaluation_env("CartPole-v1")
        env.reset(seed=int(seed))
        steps, over = 0, False
        while not over:
            _, _, terminated, truncated, _ = env.step(0)
            over, steps = terminated or truncated, steps + 1
        one_by_one.append(steps)
    assert found.mean_length == np.mean(one_by_one)
    assert found.mean_return == np.mean(one_by_one)
    assert found.success == 0.0
    assert policy.asked == max(one_by_one)


def test_success_is_told_where_it_is_known() -> None:
    env = training_env("MiniGrid-DoorKey-5x5-v0", seed=0)
    env.reset()
    info: dict[str, Any] = {}
    for _ in range(10 * 25):
        _, _, terminated, truncated, info = env.step(6)
        if terminated or truncated:
            break
    assert info["is_success"] is False
    assert info["episode"]["l"] == 250
    import gymnasium

    plain = SuccessInfo(gymnasium.make("Pendulum-v1", max_episode_steps=2))
    plain.reset(seed=0)
    plain.step(np.zeros(1, np.float32))
    *_, truncated, info = plain.step(np.zeros(1, np.float32))
    assert truncated
    assert "is_success" not in info


def test_a_checkpoint_holds_no_pickle(whole: Path) -> None:
    """The network and its optimizer are arrays and JSON, too."""
    state = read_archive(RunDirectory.open(whole).checkpoint)
    session = Session(settings())
    ruleset = RunDirectory.open(whole).load_rules(state["session"]["rules_version"])
    session.load_state(state["session"], ruleset)
    assert session.agent.num_timesteps == 3000
    again = session.state()
    assert again["counters"] == state["session"]["counters"]
    assert torch.equal(torch.from_numpy(again["torch"]), torch.from_numpy(state["session"]["torch"]))


def test_owed_shares_of_a_large_buffer_are_estimated_from_blocks(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nser.runs import owed

    run = RunDirectory.open(whole)
    session = Session(run.settings())
    session.buffer.load_state(read_archive(run.checkpoint)["session"]["buffer"])
    ruleset = run.newest_rules()
    assert ruleset is not None
    session.put_in_force(ruleset)
    exact = owed.rule_shares(session)
    monkeypatch.setattr(owed, "LOOKED_AT", 2000)
    monkeypatch.setattr(owed, "BLOCK", 50)
    estimated = owed.rule_shares(session)
    assert sum(exact.owed.values()) > 0.01
    assert sum(exact.firing.values()) > 0.01
    for rule in exact.owed:
        assert estimated.owed[rule] == pytest.approx(exact.owed[rule], abs=0.03)
        assert estimated.firing[rule] == pytest.approx(exact.firing[rule], abs=0.03)


def test_a_world_without_a_time_limit_gets_one_in_training_and_evaluation(tmp_path: Path) -> None:
    """Episodes of CliffWalking end at the goal alone, and a policy that walks at a wall never gets there."""
    outcome = train(tmp_path / "run", settings(env="CliffWalking-v1", steps=2500, eval_every=2500))
    assert outcome.evaluation is not None
    assert outcome.evaluation.mean_length <= UNENDING
    assert max(line["episodes"] for line in told(tmp_path / "run") if line["kind"] == "train") >= 2
