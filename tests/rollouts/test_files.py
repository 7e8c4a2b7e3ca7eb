"""Rollouts and transcripts as JSON lines: nothing lost, every fault located."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nser.rollouts import (
    Rollout,
    RolloutError,
    files,
    read_lines,
    read_rollouts,
    rollout_from_dict,
    rollout_to_dict,
    transcript,
    write_rollouts,
)
from tests.rollouts.making import content, random_rollout, rollout

SAID = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4", "tool_calls": []}]


@given(st.integers(0, 2**32), st.booleans())
def test_a_rollout_goes_through_json_bit_for_bit(seed: int, said: bool) -> None:
    rng = np.random.default_rng(seed)
    one = random_rollout(rng, version=4, policy_version=(2, 4), uses=3)
    if said:
        one = random_rollout(rng, metadata={"messages": SAID, "n": 1})
    line = json.loads(json.dumps(rollout_to_dict(one), allow_nan=False))
    assert content(rollout_from_dict(line)) == content(one)


def test_a_file_of_both_kinds_goes_round(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    many = [random_rollout(rng), transcript(reward=0.5, group="g", metadata={"messages": SAID}), random_rollout(rng)]
    path = tmp_path / "out.jsonl"
    assert write_rollouts(path, iter(many)) == 3
    assert [content(one) for one in read_rollouts(path)] == [content(one) for one in many]
    assert [number for number, _ in read_lines(path)] == [1, 2, 3]


def test_a_transcript_needs_messages_and_a_reward_alone(tmp_path: Path) -> None:
    path = tmp_path / "said.jsonl"
    line = {"messages": SAID, "reward": 1, "task": "sums", "group": 7, "advantage": -0.5, "seed": 3}
    path.write_text("\n" + json.dumps(line) + "\n\n")
    (one,) = read_rollouts(path)
    assert (one.reward, one.task, one.group, one.advantage) == (1.0, "sums", "7", -0.5)
    assert len(one.response_ids) == 0
    assert dict(one.metadata) == {"messages": SAID, "seed": 3}


def test_a_rollout_needs_ids_and_log_probs_alone() -> None:
    one = rollout_from_dict({"prompt_ids": [1], "response_ids": [2, 3], "behavior_logps": [-1, -0.5], "mine": [1]})
    assert one.response_mask.tolist() == [True, True]
    assert one.metadata == {"mine": [1]}
    assert one.policy_version == (0, 0)
    assert rollout_from_dict(rollout_to_dict(one) | {"policy_version": 5}).policy_version == (5, 5)


IDS = {"prompt_ids": [1], "response_ids": [2], "behavior_logps": [-1.0]}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{", "the line: found no JSON"),
        ("[1]", r"the line: found \[1\], expected an object"),
        ('{"messages": [], "reward": NaN}', "NaN is no finite number"),
        ("{}", "the line: found nothing, expected response_ids or messages"),
        ('{"text": "a"}', "the line: found text, expected response_ids or messages"),
        ({"messages": SAID}, "reward: found nothing"),
        ({"messages": "a", "reward": 1}, "messages: found a, expected a list"),
        ({"messages": [], "reward": 1}, "messages: found"),
        ({"messages": [{"content": "a"}], "reward": 1}, r'messages\[0\]: .*expected an object with a "role"'),
        ({"messages": SAID, "reward": "good"}, "reward: found good, expected a number"),
        ({"messages": SAID, "reward": 1e999}, "Infinity is no finite number"),
        ({"response_ids": [1]}, "prompt_ids: found nothing, expected it beside response_ids"),
        (IDS | {"response_ids": "abc"}, "response_ids: found abc, expected a list of numbers"),
        (IDS | {"behavior_logps": [0.5]}, "expected log-probs ≤ 0"),
        (IDS | {"policy_version": [1]}, "policy_version: found"),
        (IDS | {"policy_version": "a"}, "a whole number"),
        (IDS | {"sampling": {"heat": 1}}, "sampling: found"),
        (IDS | {"sampling": {"top_p": 2}}, "top_p: found 2"),
        (IDS | {"metadata": 3}, "metadata: found 3, expected an object"),
        (IDS | {"metadata": {"x": 1}, "x": 2}, r"metadata\.x: found a value, expected none"),
        (IDS | {"advantage": "1"}, "advantage: found 1, expected a number"),
        (IDS | {"rule_scores": {"a": 2}}, "expected a number in"),
    ],
)
def test_a_fault_is_located(tmp_path: Path, line: Any, expected: str) -> None:
    path = tmp_path / "in.jsonl"
    bad = line if isinstance(line, str) else json.dumps(line)
    path.write_text(f"{json.dumps(IDS)}\n\n{bad}\n")
    read = read_rollouts(path)
    assert next(read).reward == 0.0
    with pytest.raises(RolloutError, match=rf"in\.jsonl, line 3: .*{expected}|in\.jsonl, line 3: {expected}"):
        next(read)


def test_files_that_are_none_are_named(tmp_path: Path) -> None:
    with pytest.raises(RolloutError, match="No such file"):
        next(read_rollouts(tmp_path / "missing.jsonl"))
    path = tmp_path / "bytes.jsonl"
    path.write_bytes(b'{"a": "\xff"}\n')
    with pytest.raises(RolloutError, match="no UTF-8"):
        next(read_rollouts(path))


def test_a_line_without_end_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_LINE", 100)
    path = tmp_path / "long.jsonl"
    path.write_text(f'{{"text": "{"a" * 500}"}}\n')
    with pytest.raises(RolloutError, match="more than 100 characters"):
        next(read_lines(path))


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    write_rollouts(path, [rollout(1)])
    before = path.read_bytes()
    with pytest.raises(RolloutError, match=r"rollout 1: metadata: found .*set"):
        write_rollouts(path, [rollout(2), rollout(3, metadata={"a": {1, 2}})])
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.jsonl"]


@given(st.text(max_size=20))
def test_any_text_comes_back(text: str) -> None:
    one: Rollout = transcript(reward=0.0, task=text, metadata={"messages": [{"role": text, "content": text}]})
    assert content(rollout_from_dict(json.loads(json.dumps(rollout_to_dict(one))))) == content(one)
