"""Check 1: what of a reply is rules. A text that is rules as it stands is never touched.

Otherwise, in this order: what a model thought aloud (`<think>…</think>`) is blanked out, a JSON wrapper is opened,
and of a text with code fences only the fenced part counts, where it holds a rule. A fence is a whole line of
backticks or tildes, and a thought begins a line: those inside a line or inside a JSON string are none. Prose is left
for the parser to skip. Blanks keep their places, so that positions still point into the reply; only an opened JSON
string has positions of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nser.rules.errors import StrayTextError
from nser.rules.parse import ParsedRules, parse_rules
from nser.rules.split import pieces

MAX_REPLY = 4 * 1024 * 1024
MAX_ITEMS = 10_000

_TAG = "(?:think|thinking|thought|reasoning)>"
_OPEN = re.compile(rf"^[ \t]{{0,8}}<{_TAG}", re.IGNORECASE | re.MULTILINE)
_CLOSE = re.compile(rf"</{_TAG}", re.IGNORECASE)
_LONE_CLOSE = re.compile(rf"</{_TAG}[ \t]{{0,8}}$", re.IGNORECASE | re.MULTILINE)
_FENCE = re.compile(r"^[ \t]{0,3}(`{3,16}|~{3,16})([^\n`]{0,40})$", re.MULTILINE)
_JSON = re.compile(r"^[ \t]{0,8}[\[{\"]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Extracted:
    """The part of a reply that may hold rules, what it was taken from, and its rules.

    `steps` names what was done to the reply, in order: `cut`, `thought`, `json`, `fence`; empty for none.
    """

    text: str
    steps: tuple[str, ...]
    parsed: ParsedRules


def extract(reply: str) -> Extracted:
    """Find the rules of a reply. Never raises; beyond 4 MiB the rest of a reply is not read."""
    steps: list[str] = []
    text = reply
    if len(text) > MAX_REPLY:
        text, steps = text[:MAX_REPLY], ["cut"]
    as_it_stands = parse_rules(text, strict=True)
    if as_it_stands.rules and not as_it_stands.problems:
        return Extracted(text, tuple(steps), as_it_stands)
    for name, change in (("thought", _without_thoughts), ("json", _unwrapped), ("fence", _fenced)):
        changed = change(text)
        if changed is not None:
            text, steps = changed, [*steps, name]
    if text is reply and (as_it_stands.rules or as_it_stands.problems):
        # Prose is what strict reading complains of; the rest of a second reading would be the same.
        problems = tuple(one for one in as_it_stands.problems if not isinstance(one, StrayTextError))
        if as_it_stands.rules or problems:
            return Extracted(text, (), ParsedRules(as_it_stands.rules, problems))
    return Extracted(text, tuple(steps), parse_rules(text))


def _without_thoughts(text: str) -> str | None:
    """The text with thoughts blanked out; one that is never closed reaches to the end."""
    kept: list[str] = []
    at = 0
    close = _LONE_CLOSE.search(text)
    first = _OPEN.search(text)
    if close and (first is None or close.start() < first.start()):
        # Some servers send the thought without its opening tag.
        kept.append(_blank(text[: close.end()]))
        at = close.end()
    while opened := _OPEN.search(text, at):
        closed = _CLOSE.search(text, opened.end())
        end = closed.end() if closed else len(text)
        kept += [text[at : opened.start()], _blank(text[opened.start() : end])]
        at = end
    return "".join(kept) + text[at:] if at else None


def _unwrapped(text: str) -> str | None:
    """The strings with rules inside a JSON document, one after the other; `None` without such a document."""
    found = _FENCE.search(text)
    for match in _starts(text, found.end() if found else None):
        try:
            content, _ = json.JSONDecoder(strict=False).raw_decode(text, match)
        except (ValueError, RecursionError):
            continue
        strings = [part for part in _strings(content) if next(pieces(part), None)]
        if strings:
            return "\n".join(strings)
    return None


def _starts(text: str, after_fence: int | None) -> Iterator[int]:
    """Where a JSON document may begin: the first lines that open one, those inside a fence first."""
    for start in [after_fence, 0] if after_fence is not None else [0]:
        for count, match in enumerate(_JSON.finditer(text, start)):
            if count == 8:
                break
            yield match.end() - 1


def _strings(content: Any) -> Iterator[str]:
    """The strings of a JSON value in reading order, at most MAX_ITEMS values looked at."""
    waiting = [content]
    for _ in range(MAX_ITEMS):
        if not waiting:
            return
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting.extend(reversed(list(value.values())))
        elif isinstance(value, list):
            waiting.extend(reversed(value))


def _fenced(text: str) -> str | None:
    """The text with everything outside its fences blanked out; `None` where no fence holds a rule."""
    inside: list[tuple[int, int]] = []
    opened: re.Match[str] | None = None
    for match in _FENCE.finditer(text):
        if opened is None:
            opened = match
        elif match[1].startswith(opened[1]) and not match[2].strip():
            inside.append((opened.end(), match.start()))
            opened = None
    if opened is not None:
        inside.append((opened.end(), len(text)))
    inside = [(start, end) for start, end in inside if next(pieces(text[start:end]), None)]
    if not inside:
        return None
    parts, at = [], 0
    for start, end in inside:
        parts += [_blank(text[at:start]), text[start:end]]
        at = end
    return "".join(parts) + _blank(text[at:])


def _blank(text: str) -> str:
    """As many blanks, the line feeds kept."""
    return re.sub(r"[^\n]", " ", text)
