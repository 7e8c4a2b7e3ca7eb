"""Rollouts and chat transcripts as JSON lines.

A line is an object of one of two kinds, which may be mixed in a file; blank lines are skipped.

A rollout: ``{"prompt_ids": […], "response_ids": […], "response_mask": […], "behavior_logps": […], "advantage": 0.5,
"reward": 1.0, "policy_version": [3, 3], "group": "…", "task": "…", …}``, the fields of ``Rollout``; all but the ids
and log-probs may be left out (then the mask is True everywhere).

A transcript: ``{"messages": [{"role": "user", "content": "…"}, …], "reward": 1.0}``, optionally with ``task``,
``group``, ``advantage``, ``policy_version``, ``rule_scores``. It becomes a rollout without tokens, whose
``metadata["messages"]`` holds the messages.

Other fields of a line go into ``metadata`` under their names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from nser.files import atomic_path
from nser.rollouts.errors import RolloutError
from nser.rollouts.record import Rollout, Sampling

MAX_LINE = 2**26  # characters; a longer line is refused before it is held in memory
OWN_FIELDS = {item.name for item in fields(Rollout)}
ARRAYS = ("prompt_ids", "response_ids", "response_mask", "behavior_logps")


def read_rollouts(path: Path) -> Iterator[Rollout]:
    """One rollout after the other, never the whole file; raises ``RolloutError`` naming the line and the field."""
    for number, found in read_lines(path):
        yield rollout_from_dict(found, f"{path}, line {number}")


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(number, object) of every line, fields in their order; raises ``RolloutError`` naming the line."""
    number = 0
    try:
        with path.open(encoding="utf-8") as stream:
            while line := stream.readline(MAX_LINE + 1):
                number += 1
                if line.strip():
                    yield number, _parsed(line, f"{path}, line {number}")
    except OSError as error:
        raise RolloutError(
            "file", error.strerror or str(error), "a readable file", "Check the name.", str(path)
        ) from error
    except UnicodeDecodeError as error:
        raise RolloutError(
            "file", "bytes that are no UTF-8", "JSON lines in UTF-8", "Convert it.", f"{path}, after line {number}"
        ) from error


def write_rollouts(path: Path, rollouts: Iterable[Rollout]) -> int:
    """Write a line each, beside the old file and then in its place; returns how many.

    Raises ``RolloutError`` for metadata that is no JSON.
    """
    count = 0
    with atomic_path(path) as beside, beside.open("w", encoding="utf-8") as stream:
        for rollout in rollouts:
            try:
                line = json.dumps(rollout_to_dict(rollout), allow_nan=False)
            except (TypeError, ValueError, RecursionError) as error:
                raise RolloutError(
                    "metadata", str(error), "what JSON can say", "Leave objects out.", f"rollout {count}"
                ) from error
            stream.write(line + "\n")
            count += 1
    return count


def rollout_from_dict(found: Mapping[str, Any], where: str = "") -> Rollout:
    """The rollout or transcript of one line's object; ``where`` begins the message of a ``RolloutError``."""
    try:
        if "response_ids" in found:
            return Rollout(**_tokens(found), **_labels(found))
        if "messages" not in found:
            raise RolloutError(
                "the line",
                ", ".join(map(str, found)) or "nothing",
                "response_ids or messages",
                "Say what was answered.",
            )
        if "reward" not in found:
            raise RolloutError("reward", "nothing", "a number", "Say how well the transcript did.")
        check_messages(found["messages"])
        return transcript(**_labels(found))
    except RolloutError as error:
        raise RolloutError(error.field, error.found, error.expected, error.way_out, where) from error


def transcript(**fields_given: Any) -> Rollout:
    """A rollout without tokens, from any of its other fields; ``metadata["messages"]`` holds what was said.

    >>> said = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}]
    >>> transcript(reward=1.0, task="sums", metadata={"messages": said}).reward
    1.0
    """
    none = np.zeros(0, np.int32)
    return Rollout(
        prompt_ids=none,
        response_ids=none,
        response_mask=np.zeros(0, np.bool_),
        behavior_logps=np.zeros(0, np.float32),
        **fields_given,
    )


def check_messages(messages: Any) -> None:
    """Raise ``RolloutError`` unless ``messages`` are a list of objects with a role, as chats have them."""
    if not isinstance(messages, list) or not messages:
        raise RolloutError("messages", messages, "a list of messages", "Write at least one.")
    for number, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise RolloutError(
                f"messages[{number}]", message, 'an object with a "role"', 'Write {"role": "user", "content": "…"}.'
            )


def rollout_to_dict(rollout: Rollout) -> dict[str, Any]:
    """JSON-able, back by ``rollout_from_dict`` bit for bit; without tokens in the form of a transcript."""
    metadata = dict(rollout.metadata)
    line: dict[str, Any] = {}
    if "messages" in metadata:
        line["messages"] = metadata.pop("messages")
    if len(rollout.prompt_ids) or len(rollout.response_ids) or not line:
        line.update({name: getattr(rollout, name).tolist() for name in ARRAYS})
        line["response_mask"] = rollout.response_mask.astype(int).tolist()
    advantage = rollout.advantage
    return line | {
        "advantage": advantage if isinstance(advantage, float) else advantage.tolist(),
        "reward": rollout.reward,
        "rule_scores": dict(rollout.rule_scores),
        "rule_score": rollout.rule_score,
        "policy_version": list(rollout.policy_version),
        "group": rollout.group,
        "task": rollout.task,
        "uses": rollout.uses,
        "sampling": asdict(rollout.sampling),
        "metadata": metadata,
    }


def _parsed(line: str, where: str) -> dict[str, Any]:
    if len(line) > MAX_LINE:
        raise RolloutError("the line", f"more than {MAX_LINE:,} characters", "a shorter one", "Split it.", where)
    try:
        found = json.loads(line, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise RolloutError("the line", f"no JSON ({reason})", "an object", "Write one object a line.", where) from error
    if not isinstance(found, dict):
        raise RolloutError("the line", found, "an object", "Write one object a line.", where)
    return found


def _tokens(found: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of tokens; the mask may be left out."""
    for name in ("prompt_ids", "behavior_logps"):
        if name not in found:
            raise RolloutError(name, "nothing", "it beside response_ids", "Write it, or a transcript with messages.")
    for name in ARRAYS:
        if name in found and not _is_numbers(found[name]):
            raise RolloutError(name, found[name], "a list of numbers", "Write them as JSON numbers.")
    given = {name: found[name] for name in ARRAYS if name in found}
    return {"response_mask": np.ones(len(found["response_ids"]), np.bool_)} | given


def _labels(found: Mapping[str, Any]) -> dict[str, Any]:
    """All other fields, those of other names as metadata."""
    labels = {name: found[name] for name in found if name in OWN_FIELDS and name not in (*ARRAYS, "metadata")}
    others = {name: value for name, value in found.items() if name not in OWN_FIELDS}
    metadata = found.get("metadata", {})
    if not isinstance(metadata, Mapping):
        raise RolloutError("metadata", metadata, "an object", "Write its values under names.")
    twice = sorted(others.keys() & metadata.keys())
    if twice:
        raise RolloutError(f"metadata.{twice[0]}", "a value", "none, as the line has that field", "Rename one of them.")
    for name in ("group", "task"):
        if isinstance(labels.get(name), int):
            labels[name] = str(labels[name])
    for name in ("advantage", "reward", "rule_score"):
        value = labels.get(name, 0.0)
        if not isinstance(value, int | float) and not (name == "advantage" and _is_numbers(value)):
            raise RolloutError(name, value, "a number", "Write it as a JSON number.")
    if "policy_version" in labels:
        labels["policy_version"] = _versions(labels["policy_version"])
    if "sampling" in labels:
        labels["sampling"] = _sampling(labels["sampling"])
    return labels | {"metadata": {**metadata, **others}}


def _versions(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list) else (value, value)


def _sampling(value: Any) -> Sampling:
    known = [item.name for item in fields(Sampling)]
    if not isinstance(value, Mapping) or not set(value) <= set(known):
        raise RolloutError("sampling", value, f"an object with some of {', '.join(known)}", "Leave the others out.")
    return Sampling(**value)


def _is_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(number, int | float) for number in value)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no finite number")
