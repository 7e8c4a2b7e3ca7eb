from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nser.experience import lines
from nser.experience.jsonl import iterate_jsonl, load_jsonl, save_jsonl
from nser.experience.trajectories import TrajectoryError
from tests.experience.test_trajectories import recorded

STEP: dict[str, Any] = {"observation": [0, 1], "action": 1, "reward": 0.5, "next_observation": [1, 1]}
EPISODE: dict[str, Any] = {"observations": [[0], [1], [2]], "actions": [0, 1], "rewards": [0, 1]}


def written(path: Path, *values: Any) -> Path:
    path.write_text("\n".join(value if isinstance(value, str) else json.dumps(value) for value in values) + "\n")
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.jsonl"


def test_transitions_become_episodes_by_their_number(path: Path) -> None:
    found = load_jsonl(
        written(path, STEP | {"episode": 4}, STEP | {"episode": 4, "truncated": True}, "", STEP | {"episode": 9})
    )
    assert found.lengths.tolist() == [2, 1]
    assert found.episodes.tolist() == [4, 4, 9]
    assert found.finished.tolist() == [False, True, False]
    assert found.terminated.tolist() == [False, False, False]
    assert found.observations.dtype == np.float32
    assert found.actions.dtype == np.int64


def test_transitions_without_a_number_become_episodes_by_their_ends(path: Path) -> None:
    found = load_jsonl(written(path, STEP, STEP | {"terminated": True}, STEP, STEP | {"truncated": True}, STEP))
    assert found.lengths.tolist() == [2, 2, 1]
    assert found.terminated.tolist() == [False, True, False, False, False]
    assert found.complete.tolist() == [True, True, False]


def test_episodes_a_line(path: Path) -> None:
    found = load_jsonl(written(path, EPISODE | {"terminated": True}, EPISODE, EPISODE | {"truncated": True}))
    assert found.lengths.tolist() == [2, 2, 2]
    assert found.observations[:, 0].tolist() == [0, 1, 0, 1, 0, 1]
    assert found.next_observations[:, 0].tolist() == [1, 2, 1, 2, 1, 2]
    assert found.complete.tolist() == [True, False, True]
    assert found.returns.tolist() == [1, 1, 1]


def test_dictionaries_are_flattened_by_sorted_keys(path: Path) -> None:
    seen = {"b": 2, "a": {"z": [0, 1], "y": 5}}
    found = load_jsonl(written(path, STEP | {"observation": seen, "next_observation": seen}))
    assert found.observations.tolist() == [[5, 0, 1, 2]]


def test_numbers_and_pictures_as_observations(path: Path) -> None:
    assert load_jsonl(written(path, STEP | {"observation": 3, "next_observation": 4})).observations.tolist() == [[3]]
    picture = [[1, 2], [3, 4]]
    shaped = load_jsonl(written(path, STEP | {"observation": picture, "next_observation": picture}))
    assert shaped.observations.shape == (1, 2, 2)


def test_continuous_actions_may_be_whole_now_and_then(path: Path) -> None:
    found = load_jsonl(written(path, STEP | {"action": [1, 0]}, STEP | {"action": [0.5, 1]}))
    assert found.actions.dtype == np.float32
    assert found.actions.tolist() == [[1, 0], [0.5, 1]]


def test_reading_streams_one_episode_after_the_other(path: Path) -> None:
    reader = iterate_jsonl(written(path, *([EPISODE] * 3), "broken"))
    assert [len(next(reader)) for _ in range(3)] == [2, 2, 2]
    with pytest.raises(TrajectoryError, match="line 4: no JSON"):
        next(reader)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"t\.jsonl, line 2: no JSON"),
        ("[" * 200_000, "line 2: no JSON"),
        ('{"reward": NaN}', "NaN is no finite number"),
        ("[1]", r"line 2: the line: found \[1\], expected an object with observation, action"),
        ({"observation": [1]}, "action: found nothing, expected it in every line"),
        (STEP | {"observation": [1, 2, 3]}, r"found numbers of shape \(3,\), expected numbers of shape \(2,\) as in"),
        (STEP | {"observation": {"a": [0, 1]}}, r"found a of shape \(2,\), expected numbers of shape \(2,\)"),
        (STEP | {"observation": [[1], [1, 2]]}, "lists of equal lengths"),
        (STEP | {"observation": "high"}, "observation: found 'high', expected numbers"),
        (STEP | {"observation": []}, "observation: found .., expected numbers"),
        (STEP | {"observation": {}}, "expected numbers"),
        (STEP | {"observation": [1e39, 0]}, "finite numbers of at most 3e38"),
        ('{"observation": [1e999, 0], "action": 0, "reward": 0, "next_observation": [0, 0]}', "at most 3e38"),
        (STEP | {"observation": [10**30, 0]}, "expected numbers"),
        (STEP | {"observation": [True, False]}, "expected numbers"),
        (STEP | {"observation": [None, 0]}, "expected numbers"),
        (STEP | {"action": 0.5}, "a whole number, or a list of numbers for a continuous action"),
        (STEP | {"action": [1]}, r"an action of shape \(\) as in the lines before"),
        (STEP | {"action": True}, "action: found True, expected numbers"),
        (STEP | {"action": 10**30}, "expected numbers"),
        (STEP | {"reward": "much"}, "reward: found 'much', expected a number"),
        (STEP | {"reward": 10**400}, "reward: .*expected a finite number"),
        (STEP | {"terminated": 1}, "terminated: found 1, expected true or false"),
        (STEP | {"episode": "first"}, "episode: found 'first', expected a whole number"),
        (STEP | {"episode": 10**30}, "expected a whole number"),
        (STEP | {"episode": 0}, "its lines to stand together; sort the file by episode"),
        (EPISODE | {"actions": [0]}, "found 3 observations, 1 actions, 2 rewards, expected at least one action"),
        (EPISODE | {"rewards": 3}, "rewards: found 3, expected a list"),
        ({"observations": [[0, 1]], "actions": [], "rewards": []}, "at least one action"),
    ],
)
def test_a_bad_line_is_named(path: Path, line: Any, message: str) -> None:
    ended = STEP | {"episode": 0, "terminated": True}
    with pytest.raises(TrajectoryError, match=message) as caught:
        load_jsonl(written(path, ended, line))
    assert "line 2" in str(caught.value)
    assert len(str(caught.value)) < 500


def test_files_that_are_none(path: Path) -> None:
    with pytest.raises(TrajectoryError, match="No such file"):
        load_jsonl(path)
    path.write_text("\n\n")
    with pytest.raises(TrajectoryError, match="holds no transitions"):
        load_jsonl(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TrajectoryError, match="no text in UTF-8"):
        load_jsonl(path)


def test_a_line_without_end_is_refused_before_it_is_held(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE", 1000)
    monkeypatch.setattr("nser.experience.jsonl.MAX_LINE", 1000)
    written(path, "[" + "1," * 10_000)
    with pytest.raises(TrajectoryError, match="line 1: the line: found more than 1,000 characters"):
        load_jsonl(path)


def test_values_that_json_can_not_tell_are_refused(path: Path) -> None:
    found = recorded([3])
    found.observations[1, 0] = np.nan
    with pytest.raises(TrajectoryError, match="not finite in transition 1 of episode 3"):
        save_jsonl(path, found)
    assert not path.exists()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
fields = st.sampled_from([*STEP, *EPISODE, "episode", "terminated", "truncated"])


@given(st.lists(st.dictionaries(fields, json_values, max_size=8) | st.just(STEP) | st.just(EPISODE), max_size=4))
def test_any_json_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, found: list[Any]) -> None:
    path = written(tmp_path_factory.getbasetemp() / "any.jsonl", *found)
    with contextlib.suppress(TrajectoryError):
        load_jsonl(path)
