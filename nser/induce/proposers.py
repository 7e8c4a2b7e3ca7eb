"""Who proposes: from a word on the command line to a proposer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nser.errors import NserError
from nser.induce.cassette import Cassette
from nser.induce.chat import ChatProposer, ChatSettings
from nser.induce.evidence import Evidence
from nser.induce.joining import Competing
from nser.induce.proposing import Proposer
from nser.induce.symbolic import SymbolicProposer
from nser.rules.store import RuleSet
from nser.rules.verdict import Verdict

FORMS = "symbolic, openai:MODEL, http://HOST:PORT/v1#MODEL, hf:FOLDER_OR_NAME, recorded:FILE or both:ONE_OF_THESE"
MAX_RECORDED = 4 * 1024 * 1024


class ProposerError(NserError, ValueError):
    """A word that names no proposer."""


class RecordedProposer:
    """Proposes the text of a file: an answer that was kept, or one that a person wrote."""

    rounds = 0
    guesses = True

    def __init__(self, path: Path) -> None:
        try:
            if path.stat().st_size > MAX_RECORDED:
                raise ProposerError(
                    f"{path} holds more than {MAX_RECORDED // 1024**2} MiB, expected an answer of a model"
                )
            self.text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise ProposerError(f"can't read {path}: {error.strerror}; expected a recorded answer") from error
        self.name = f"recorded:{path.name}"

    def propose(self, evidence: Evidence, previous: RuleSet | None = None) -> str:
        """The text as it stands."""
        del evidence, previous
        return self.text

    def repair(self, evidence: Evidence, refused: Sequence[Verdict], kept: RuleSet | None = None) -> str:
        """Nothing: a file does not answer."""
        del evidence, refused, kept
        return ""


def proposer_of(word: str, cassette: Cassette | None = None, settings: ChatSettings | None = None) -> Proposer:
    """The proposer that a word names; `both:WORD` lets it compete with the symbolic learner in one selection.

    Raises `ProposerError` for another word, and a `ModelError` where a model can't be loaded.
    """
    if word == "symbolic":
        return SymbolicProposer()
    scheme, _, rest = word.partition(":")
    if scheme == "both" and rest:
        return Competing(proposer_of(rest, cassette, settings), SymbolicProposer())
    if scheme == "recorded" and rest:
        return RecordedProposer(Path(rest))
    if scheme == "hf" and rest:
        from nser.induce.local_model import LocalModel

        return ChatProposer(LocalModel(rest), settings, cassette)
    if scheme == "openai" and rest:
        from nser.induce.endpoint import ChatEndpoint

        return ChatProposer(ChatEndpoint(rest), settings, cassette)
    if scheme in ("http", "https"):
        from nser.induce.endpoint import ChatEndpoint

        address, sign, model = word.partition("#")
        if not sign or not model:
            raise ProposerError(f"found {word}, expected an address and a model, as in http://127.0.0.1:8080/v1#MODEL")
        return ChatProposer(ChatEndpoint(model, address), settings, cassette)
    raise ProposerError(f"found {word}, expected {FORMS}")
