"""Cutting a text at its rules, so that each is parsed alone and a bad one takes no other with it."""

from __future__ import annotations

import re
from collections.abc import Iterator

# A rule starts where `rule` is the first word of a line (list marks before it do not count), or where it
# is followed by a name and `forall`: prose such as "this rule says" and `rule(t)` are neither. Every repeat
# is bounded or of one class of characters, so that no text makes the search slow. What a rule quotes among the
# arguments of a predicate is neither a rule nor a comment.
_TEXT = r"\"(?:[^\"\\\n]|\\.){0,2400}(?:\"|\\?\Z)"
_START = re.compile(
    rf"(?P<quoted>\(\s{{0,8}}\w{{1,64}}[^()\#\"]{{0,200}},\s{{0,8}}{_TEXT}(?:\s{{0,8}},\s{{0,8}}(?:\w{{1,64}}|{_TEXT}))*)"
    r"|(?P<comment>\#[^\n]*)"
    r"|(?:^[-*>•`\d.)(\ \t]{0,16})?\brule\b"
    r"(?P<header>\s{1,8}[^\s:\[]{1,64}\s{0,8}(?:\[[^\]\n]{0,64}\]\s{0,8})?:?\s{0,8}(?:forall\b|∀))?",
    re.MULTILINE | re.VERBOSE,
)
_FIRST = re.compile(r"^[-*>•`\d.)( \t]{0,16}\Z")
# A code fence or a closing tag such as </think> belongs to no rule.
_STOP = re.compile(r"^[ \t]*(?:```|~~~|</?[A-Za-z])", re.MULTILINE)
_BLANK = re.compile(r"(?:[\s\ufeff]|#[^\n]*)+")


def pieces(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each piece of a text that begins with the keyword `rule` and holds one rule."""
    start = -1
    for match in _START.finditer(text):
        if match["quoted"] is not None or match["comment"] is not None or not _starts(text, match):
            continue
        at = text.index("rule", match.start())
        if start >= 0:
            yield start, _end(text, start, at)
        start = at
    if start >= 0:
        yield start, _end(text, start, len(text))


def first_word(text: str, start: int, end: int) -> tuple[int, str] | None:
    """Offset and text of the first word of a stretch that is neither blank nor comment; `None` without one."""
    blank = _BLANK.match(text, start, end)
    at = blank.end() if blank else start
    if at >= end:
        return None
    return at, text[at : min(end, at + 64)].split(maxsplit=1)[0]


def _starts(text: str, match: re.Match[str]) -> bool:
    if match["header"] is not None:
        return True
    at = text.index("rule", match.start())
    line = text.rfind("\n", max(0, at - 17), at) + 1
    if line == 0 and at > 16:
        return False
    return bool(_FIRST.match(text[line:at])) and not text[at + 4 : at + 8].lstrip().startswith("(")


def _end(text: str, start: int, end: int) -> int:
    stop = _STOP.search(text, start, end)
    return stop.start() if stop else end
