"""Rollout files for commands: located errors, texts for rules, a first look at what a file holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nser.cli.inputs import InputError, vocabulary_for

if TYPE_CHECKING:
    from nser.grounding.transcripts import Transcript
    from nser.grounding.vocabulary import Vocabulary


def holds_rollouts(path: Path) -> bool:
    """Whether the first line of a file is a transcript or a rollout; false for whatever can't be read as one."""
    from nser.rollouts.errors import RolloutError
    from nser.rollouts.files import read_lines

    if not path.is_file() or path.suffix == ".npz":
        return False
    try:
        _, first = next(read_lines(path), (0, {}))
    except RolloutError:
        return False
    return "messages" in first or "response_ids" in first


def iterate_texts(path: Path) -> Iterator[tuple[dict[str, Any], Transcript]]:
    """(line, text) of one rollout after the other, never the whole file.

    A line that tells no advantage has none. Raises `RolloutError` or `TranscriptError`, each naming the line.
    """
    from dataclasses import replace

    from nser.grounding.transcripts import TranscriptError, as_transcript
    from nser.rollouts.files import read_lines, rollout_from_dict

    for number, line in read_lines(path):
        where = f"{path}, line {number}"
        try:
            text = as_transcript(rollout_from_dict(line, where))
        except TranscriptError as error:
            raise TranscriptError(error.field, error.found, error.expected, where) from error
        yield line, text if "advantage" in line else replace(text, advantage=None)


def rollout_vocabulary(vocab: str | None) -> Vocabulary:
    """`--vocab MODULE:NAME`, else what may be said of any rollout."""
    found = vocabulary_for(None, vocab)
    if found is None:
        from nser.grounding.rollout_words import ROLLOUTS

        return ROLLOUTS
    over = {known.signature.over for known in found.predicates.values()}
    if not over & {"rollout", "turn"}:
        raise InputError(f"found vocabulary {found.name} over {', '.join(over)}, expected one over rollout or turn")
    return found
