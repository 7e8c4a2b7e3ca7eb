"""Where an answer stands in a text: the forms that checkers of verifiable tasks look for."""

from __future__ import annotations

import re

_TAG = re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE)
_LINE = re.compile(r"^[ \t>*#_]*(?:####|(?:final )?answer[*_]*[ \t]*:)(.*)$", re.MULTILINE | re.IGNORECASE)
_BOXED = r"\boxed{"


def answers_in(text: str) -> list[str]:
    r"""Every answer of a text in the first of these forms that it has: `<answer>…</answer>`, `\boxed{…}`, or a line
    `Answer: …` or `#### …`; blanks around an answer do not count, and neither do empty ones.

    >>> answers_in("so <answer> 12 </answer>"), answers_in(r"thus \boxed{\frac{1}{2}}"), answers_in("Answer: 3.")
    (['12'], ['\\frac{1}{2}'], ['3'])
    """
    lines = [line.strip(" \t*_.") for line in _LINE.findall(text)]
    for found in (_TAG.findall(text), _boxed(text), lines):
        answers = [answer.strip() for answer in found if answer.strip()]
        if answers:
            return answers
    return []


def _boxed(text: str) -> list[str]:
    """What stands in the braces, which may hold others; a box that is never closed is none."""
    found = []
    at = text.find(_BOXED)
    while at >= 0:
        first = at + len(_BOXED)
        depth = 1
        for place in range(first, len(text)):
            depth += {"{": 1, "}": -1}.get(text[place], 0)
            if not depth:
                found.append(text[first:place])
                break
        at = text.find(_BOXED, first)
    return found
