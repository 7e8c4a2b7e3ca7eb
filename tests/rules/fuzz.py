"""Hostile inputs, made from a seed: bytes, words of the language in disorder, wounded rules, depths and lengths."""

from __future__ import annotations

import random
from collections.abc import Iterator

from nser.rules.syntax import KEYWORDS

RULES = (
    "rule a [0.5]: forall t in step: facing(t, key) & ~carrying(t) & action_is(t, pickup) -> good(t)",
    "rule b: forall t in step: dist_goal(t) < ?3.5 & eventually[0..5](bumped(t)) -> ~good(t)",
    "rule c: forall t in step: (exists o in object: beside(t, o, door)) | prev(carrying(t+1)) -> next(carrying(t))",
    'rule e: forall r in rollout: contains(r, "a \\"rule\\" # of \\u00e9") & length(r) > ?400 -> ~good(r)',
    "rule d: forall t in step: always[2..900](dist(t, door) >= -1e3 <-> once[0..3](carrying(t))) -> good(t)",
)
TOKENS = (
    *sorted(KEYWORDS),
    *"~&|()[],:;?+-<>∀∃∧∨¬→↔≤≥∈#\n\t\x00\ud800`'\"{}",
    *(
        "->",
        "<->",
        "..",
        "<=",
        ">=",
        "```",
        "~~~",
        "<think>",
        "</think>",
        '{"rules": ["',
        "rule a:",
        "forall t in step:",
    ),
    *(
        "t",
        "p(t)",
        "good(t)",
        "carrying(t)",
        "dist_goal(t)",
        "0",
        "1e999",
        "5",
        "?0.3",
        "__import__('os')",
        "é",
        "\u202e",
        'said(t, "rule a: #")',
        '"\\ud800"',
        ', "',
    ),
)
MEGABYTE = 1_000_000
DEEP = ("(", "~", "~(", "next(", "p(t) -> (", "exists x in object: ", "[", '{"a":', "<think>", "```\n", "rule ", "#")


def inputs(count: int, seed: int, large: bool = True) -> Iterator[tuple[str, str]]:
    """`count` texts, each with the kind it is of; every hundredth is deep or long, up to a megabyte where `large`."""
    rng = random.Random(seed)
    kinds = (_bytes, _words, _wounded, _wounded, _joined)
    for number in range(count):
        if number % 100 == 99:
            yield "huge", _huge(rng, MEGABYTE if large else 20_000)
        else:
            make = rng.choice(kinds)
            yield make.__name__.strip("_"), make(rng)


def _bytes(rng: random.Random) -> str:
    return rng.randbytes(rng.randrange(300)).decode(rng.choice(("latin-1", "utf-16-le")), "replace")


def _words(rng: random.Random) -> str:
    return rng.choice((" ", "", "\n")).join(rng.choice(TOKENS) for _ in range(rng.randrange(80)))


def _wounded(rng: random.Random) -> str:
    """A rule in which some places were cut, doubled or overwritten."""
    text = rng.choice(RULES)
    for _ in range(rng.randint(1, 5)):
        at, length = rng.randrange(len(text) + 1), rng.randrange(12)
        put = rng.choice(("", rng.choice(TOKENS), text[at : at + length] * 2))
        text = text[:at] + put + text[at + length :]
    return text


def _joined(rng: random.Random) -> str:
    """A reply: several rules, whole and wounded, in a wrapper."""
    lines = [rng.choice(RULES) if rng.random() < 0.5 else _wounded(rng) for _ in range(rng.randrange(1, 12))]
    body = "\n".join(lines)
    wrappers = ("{}", "```\n{}\n```", "<think>{}", "Sure:\n\n{}\n\nDone.", '{{"rules": "{}"}}', "[{}]")
    return rng.choice(wrappers).format(body.replace("{", "{{").replace("}", "}}"))


def _huge(rng: random.Random, most: int) -> str:
    """One sign over and over, a body without end, or a great many rules."""
    choice = rng.randrange(5)
    if choice == 0:
        sign = rng.choice(DEEP)
        return f"rule a: forall t in step: {sign * (most // len(sign))}"
    if choice == 1:
        sign = rng.choice(DEEP)
        return sign * (most // len(sign))
    if choice == 2:
        part = rng.choice((" & p(t)", " | p(t)", " -> p(t)", " & x(t) < 1"))
        return f"rule a: forall t in step: p(t){part * (most // len(part))} -> good(t)"
    if choice == 3:
        return "".join(rng.choice(TOKENS) for _ in range(most // 4))
    lines = [RULES[i % len(RULES)].replace("rule ", f"rule r{i}", 1) for i in range(min(2000, most // 100))]
    return "\n".join(lines)
