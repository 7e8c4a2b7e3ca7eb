"""What a terminal shows while a language model is waited for: seconds, calls and tokens so far."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from nser.cli.console import counted

if TYPE_CHECKING:
    from nser.induce.chat import ChatProposer
    from nser.induce.proposing import Proposer

PER_SECOND = 4.0


@contextmanager
def waiting(proposer: Proposer, console: Console) -> Iterator[None]:
    """Show that a model is asked, on a line that goes away; nothing for other proposers, or without a terminal."""
    asked = asked_model(proposer)
    if asked is None or not console.is_terminal:
        yield
        return
    with Live(_Line(asked, console), console=console, refresh_per_second=PER_SECOND, transient=True):
        yield


def asked_model(proposer: Proposer) -> ChatProposer | None:
    """The language model behind a proposer, alone or beside the symbolic learner; None where there is none."""
    from nser.induce.chat import ChatProposer
    from nser.induce.joining import Competing

    inner = proposer.model if isinstance(proposer, Competing) else proposer
    return inner if isinstance(inner, ChatProposer) else None


class _Line:
    """Drawn anew several times a second, by the thread of `Live`."""

    def __init__(self, asked: ChatProposer, console: Console) -> None:
        self.asked, self.console = asked, console
        self.began = console.get_time()
        self.spinner = Spinner("dots")

    def __rich__(self) -> Spinner:
        spent = self.asked.spent
        seconds = self.console.get_time() - self.began
        answered = f"{counted(spent.calls, 'call')} answered, {spent.tokens:,} tokens"
        told = f"waiting for {self.asked.name}: {seconds:.0f} s, {answered}"
        self.spinner.update(text=Text(told, overflow="ellipsis", no_wrap=True))
        return self.spinner
