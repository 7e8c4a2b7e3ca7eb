"""What is known of a world before a run: rules written by hand, rules that are wrong on purpose, scripted events.

They are files of `nser.study.worlds`, named after the vocabulary: `doorkey.hand.rules`, `doorkey.wrong.rules`,
`doorkey.events.txt` (one formula a line).
"""

from __future__ import annotations

from importlib import resources
from typing import Literal

from nser.grounding.vocabulary import Vocabulary
from nser.rules.parse import parse_rules
from nser.rules.ruleset import PERSON, Provenance, RuleSet
from nser.study.errors import NothingKnownError

Kind = Literal["hand", "wrong"]


def rules_beforehand(vocabulary: Vocabulary, kind: Kind, *, audited: bool = True) -> RuleSet:
    """The shipped rules for a vocabulary, a person's where data are to judge them; otherwise of no known origin.

    Raises `NothingKnownError` where there are none.
    """
    parsed = parse_rules(_text(vocabulary, f"{kind}.rules"), strict=True)
    if parsed.problems:
        raise parsed.problems[0]
    theirs = {rule.name: Provenance(proposer=PERSON, since=0) for rule in parsed.rules if audited}
    return RuleSet(parsed.rules, version=1, provenance=theirs)


def events_beforehand(vocabulary: Vocabulary) -> tuple[str, ...]:
    """The shipped events for a vocabulary. Raises `NothingKnownError` where there are none."""
    return tuple(line for line in _text(vocabulary, "events.txt").splitlines() if line.strip())


def _text(vocabulary: Vocabulary, ending: str) -> str:
    folder = resources.files("nser.study.worlds")
    file = folder / f"{vocabulary.name}.{ending}"
    if not file.is_file():
        known = sorted(
            found.name.removesuffix(f".{ending}") for found in folder.iterdir() if found.name.endswith(ending)
        )
        raise NothingKnownError(vocabulary.name, ending, known)
    return file.read_text(encoding="utf-8")
