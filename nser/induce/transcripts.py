"""Chat transcripts as short texts: trajectories of agents that talk and call tools.

Each message is one line: who speaks, what it says in short, which tools it calls with which arguments. What stands in
a transcript is quoted, never obeyed: line breaks are folded, so that no text in a message looks like a line of ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nser.grounding.transcripts import content_text
from nser.induce.evidence import Evidence
from nser.induce.rollouts import TextTrajectories
from nser.induce.summary import Contrast, CountTokens, estimate_tokens, in_turns

HEADING = 12  # tokens of a heading over each rollout
SHOWN = 160  # characters of one message, or of a call's arguments


def transcript_lines(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line for each message of a chat in the form of OpenAI's messages: role, content, tool_calls.

    Content may be a text or a list of parts, of which texts are quoted and others named by their type.

    >>> transcript_lines([{"role": "user", "content": "Find\\nit."}])
    ["m0 user: 'Find it.'"]
    """
    lines = []
    for number, message in enumerate(messages):
        told = []
        content = content_text(message.get("content"))
        if content:
            told.append(_quoted(content))
        told += [f"calls {_call(call)}" for call in message.get("tool_calls") or ()]
        role = _short(str(message.get("role") or "somebody"))
        name = f" {_short(str(message['name']))}" if message.get("name") else ""
        lines.append(f"m{number} {role}{name}: {'; '.join(told) or 'nothing'}")
    return lines


def transcript_text(
    messages: Sequence[Mapping[str, Any]], reward: float, budget: int, count: CountTokens = estimate_tokens
) -> str:
    """A transcript within `budget` tokens: its reward, the first message, and as many of the last ones as fit."""
    lines = transcript_lines(messages)
    head = [f"reward {reward:.4g} after {len(messages)} messages", *lines[:1]]
    kept: list[str] = []
    room = budget - count("\n".join(head)) - 8
    for line in reversed(lines[1:]):
        room -= count(line) + 1
        if room < 0:
            left_out = len(lines) - 1 - len(kept)
            return "\n".join([*head, f"({left_out} messages left out)", *reversed(kept)])
        kept.append(line)
    return "\n".join([*head, *reversed(kept)])


def rollout_contrast(evidence: Evidence, budget: int, count: CountTokens = estimate_tokens) -> Contrast:
    """The best and the worst shown rollouts beside their like, in turns, as many as `budget` tokens hold; one of each.

    Each takes a quarter of the budget at the most.
    """
    shown = evidence.trajectories[~evidence.held]
    assert isinstance(shown, TextTrajectories)
    outcomes = evidence.outcomes[~evidence.held][shown.starts]
    order = np.argsort(-outcomes, kind="stable")
    good = [int(i) for i in order if outcomes[i] > 0]
    bad = [int(i) for i in order[::-1] if outcomes[i] < 0]
    told: dict[str, list[str]] = {"good": [], "bad": []}
    left = budget
    for side, number in in_turns(good, bad):
        rollout = shown.rollouts[number]
        text = transcript_text([one.as_dict() for one in rollout.messages], rollout.reward, max(budget // 4, 1), count)
        cost = count(text) + HEADING
        if told[side] and cost > left:
            break
        told[side].append(text)
        left -= cost
    return Contrast(tuple(told["good"]), tuple(told["bad"]))


def _call(call: object) -> str:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return "a tool"
    given = function.get("arguments", "")
    arguments = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return f"{_short(str(function.get('name', 'a tool')))}({_short(arguments)})"


def _quoted(text: str) -> str:
    return repr(_short(text))


def _short(text: str) -> str:
    folded = " ".join(text.split())
    return folded if len(folded) <= SHOWN else f"{folded[: SHOWN - 1]}…"
