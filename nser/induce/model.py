"""What a language model is to the induction loop, and all that can go wrong with one, each under its own name."""

from __future__ import annotations

from typing import Protocol

from nser.errors import NserError
from nser.induce.cassette import Call, Reply
from nser.rules.grammar import Engine


class ModelError(NserError):
    """A call that gave no answer that could be used.

    `outcome` is a stable word for programs; `fatal` says that asking again cannot help.
    """

    outcome = "failed"
    fatal = False
    exit_code = 1


class TimedOutError(ModelError):
    """The model did not answer in time."""

    outcome = "timeout"


class UnreachableError(ModelError):
    """Nobody answers at the address."""

    outcome = "unreachable"


class RateLimitedError(ModelError):
    """Too many calls; the server asked for a longer pause than the budget allows."""

    outcome = "rate-limited"


class QuotaError(ModelError):
    """The account has no money or quota left: asking again cannot help."""

    outcome = "quota"
    fatal = True


class RefusedCallError(ModelError):
    """The server refuses this call as it is (wrong key, unknown model, bad request)."""

    outcome = "refused-call"
    fatal = True


class TooLongError(ModelError):
    """The prompt does not fit into what the server lets the model read."""

    outcome = "too-long"
    fatal = True


class RefusalError(ModelError):
    """The model declined to answer."""

    outcome = "refusal"


class NoAnswerError(ModelError):
    """An answer with nothing in it: no choices, no text, or no chat completion at all."""

    outcome = "no-answer"


class BudgetError(ModelError):
    """The budget of calls, tokens or seconds is spent."""

    outcome = "budget"
    fatal = True


class Model(Protocol):
    """Completes chat messages. `name` identifies model and place, without any secret."""

    name: str

    def engine(self) -> Engine | None:
        """The dialect of grammar that the model's decoding is held to, or None; may call the model once to find out."""

    def complete(self, call: Call) -> Reply:
        """The answer to a call; raises a `ModelError` where there is none."""

    def count_tokens(self, text: str) -> int:
        """How many tokens a text takes, at least about."""
