"""Calls to language models, recorded at our own border: one JSON file a call, also the user's cache.

A call is known by its model, messages, sampling, grammar, template version and number; the key is a hash of them. No
key or header ever reaches a file, and what a redaction pattern matches is replaced before anything is written.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nser.errors import NserError
from nser.files import write_text
from nser.jsons import read_json

REDACTED = "[redacted]"


class CassetteError(NserError, ValueError):
    """A recorded call that is missing or can't be read."""


@dataclass(frozen=True)
class Call:
    """What is asked: everything that the answer depends on.

    messages: chat messages, each with `role` and `content`;  sampling: temperature, max_tokens and the like;
    grammar: the grammar's text, empty for none;  template: version of the prompt's template;  number: of several calls
    that are otherwise equal
    """

    model: str
    messages: tuple[Mapping[str, str], ...]
    sampling: Mapping[str, Any] = field(default_factory=dict)
    grammar: str = ""
    template: str = ""
    number: int = 0

    @property
    def key(self) -> str:
        """Hash of all of it, 24 hexadecimal digits."""
        content = json.dumps(
            [
                self.model,
                [dict(m) for m in self.messages],
                dict(self.sampling),
                self.grammar,
                self.template,
                self.number,
            ],
            sort_keys=True,
        )
        return hashlib.sha256(content.encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Reply:
    """What came back: text, why it ended, tokens used."""

    text: str
    finish_reason: str = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Cassette:
    """A folder of recorded calls.

    redact: regular expressions; what they match in prompts and answers is not written in clear
    """

    def __init__(self, folder: Path, redact: Sequence[str] = ()) -> None:
        self.folder = folder
        self._patterns = [re.compile(pattern) for pattern in redact]

    def find(self, call: Call) -> Reply | None:
        """The recorded answer, if there is one. Raises `CassetteError` for a file that can't be read."""
        path = self.path(call)
        if not path.exists():
            return None
        try:
            content = read_json(path)
            return Reply(**content["reply"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CassetteError(
                f"can't read recorded call {path}: expected JSON with a reply; delete the file"
            ) from error

    def record(self, call: Call, reply: Reply) -> None:
        """Write a call and its answer. Only whole answers are worth keeping: cut or empty ones are not written."""
        if reply.finish_reason != "stop" or not reply.text.strip():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        content = {
            "model": call.model,
            "template": call.template,
            "number": call.number,
            "sampling": dict(call.sampling),
            "grammar": hashlib.sha256(call.grammar.encode()).hexdigest()[:12] if call.grammar else "",
            "messages": [{key: self._redacted(value) for key, value in message.items()} for message in call.messages],
            "reply": {**asdict(reply), "text": self._redacted(reply.text)},
        }
        write_text(self.path(call), json.dumps(content, indent=1, ensure_ascii=False) + "\n")

    def path(self, call: Call) -> Path:
        """Where a call is kept."""
        return self.folder / f"{call.key}.json"

    def _redacted(self, text: str) -> str:
        for pattern in self._patterns:
            text = pattern.sub(REDACTED, text)
        return text
