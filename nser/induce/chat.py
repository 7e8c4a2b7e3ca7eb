"""A language model as a proposer: prompt, calls within a budget, recorded answers, and repair of what was refused."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from nser.induce.cassette import Call, Cassette, Reply
from nser.induce.decoding import decoding_grammar
from nser.induce.evidence import Evidence
from nser.induce.joining import joined
from nser.induce.model import BudgetError, Model, ModelError, TooLongError
from nser.induce.prompt import (
    REPAIR,
    Message,
    induction_messages,
    induction_template,
    repair_messages,
    template_version,
)
from nser.rules.grammar import Engine
from nser.rules.store import RuleSet
from nser.rules.verdict import Verdict

HALVINGS = 3  # of what is told of episodes, before a model that can't read it is given up
DIALECTS: tuple[Engine, ...] = ("llguidance", "openai")


@dataclass(frozen=True)
class Budget:
    """What one induction may cost: calls, tokens (prompt and answer together), seconds of waiting."""

    calls: int = 6
    tokens: int = 60_000
    seconds: float = 300.0


@dataclass(frozen=True)
class ChatSettings:
    """How a model is asked.

    wanted:      rules asked for in one answer
    samples:     answers asked for in the first round, each with its own number and so its own chance
    repairs:     rounds in which refused rules go back with their reasons, at most 2
    temperature: of sampling;  max_tokens: of one answer
    constrained: send the grammar; what comes back is parsed and checked in any case
    episode_tokens: what the prompt tells of episodes, in tokens; half of it where the model can't read so much
    """

    wanted: int = 8
    samples: int = 1
    repairs: int = 2
    temperature: float = 0.7
    max_tokens: int = 800
    constrained: bool = True
    episode_tokens: int = 3_000
    budget: Budget = field(default_factory=Budget)


@dataclass
class Spent:
    """What an induction has cost so far; `cached` answers cost nothing."""

    calls: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Prompt and answers."""
        return self.prompt_tokens + self.completion_tokens


class ChatProposer:
    """Proposes rules through a `Model`. What it writes is text and nothing more: the loop parses and judges it.

    A prompt that is too long for the model, or leaves no room for a whole answer or for a round of repair, is halved,
    as far as it tells of episodes: at once where there was no answer, else from the next induction on.

    cassette: where whole answers are recorded and found again; None asks anew each time
    """

    def __init__(
        self,
        model: Model,
        settings: ChatSettings | None = None,
        cassette: Cassette | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.model, self.settings = model, settings or ChatSettings()
        self.name = model.name
        self.rounds = self.settings.repairs
        self.guesses = True
        self.cassette = cassette
        self.spent = Spent()
        self.failures: list[ModelError] = []
        self._clock = clock
        self._told = self.settings.episode_tokens
        self._asked: tuple[Message, ...] = ()
        self._answer = ""

    def messages(self, evidence: Evidence, previous: RuleSet | None = None) -> tuple[Message, ...]:
        """The prompt of the first round, without calling anybody."""
        return self._messages(evidence, previous, self._told)

    def _messages(self, evidence: Evidence, previous: RuleSet | None, budget: int) -> tuple[Message, ...]:
        count = self.model.count_tokens
        return induction_messages(evidence, self.settings.wanted, previous=previous, budget=budget, count=count)

    def propose(self, evidence: Evidence, previous: RuleSet | None = None) -> str:
        """The answers of the first round, joined; raises a `ModelError` only where not one call succeeded."""
        self.spent, self.failures = Spent(), []
        template = induction_template(evidence)
        answers: list[str] = []
        for budget in self._budgets(evidence, previous, template):
            self._told = budget
            self.failures = []  # of longer prompts: none of them matters where a shorter one does
            self._asked = self.messages(evidence, previous)
            answers = self._ask(self._asked, template, evidence, self.settings.samples)
            if answers or not any(isinstance(failure, TooLongError) for failure in self.failures):
                break
        if not answers and self.failures:
            raise self.failures[-1]
        self._answer = joined(answers)
        return self._answer

    def repair(self, evidence: Evidence, refused: Sequence[Verdict], kept: RuleSet | None = None) -> str:
        """One more answer after refusals; empty where the model fails or the budget is spent."""
        self._asked = repair_messages(self._asked, self._answer, refused, kept, self.settings.wanted)
        answers = self._ask(self._asked, REPAIR, evidence, 1)
        if not answers and isinstance(self.failures[-1], TooLongError):
            self._tell_less()
        self._answer = joined(answers)
        return self._answer

    def _ask(self, messages: tuple[Message, ...], template: str, evidence: Evidence, samples: int) -> list[str]:
        answers: list[str] = []
        for number in range(samples):
            bare = self._call(messages, template, number)
            try:
                reply = self._recorded(bare, evidence)
                self.spent.cached += reply is not None
                answers.append(_whole(reply or self._complete(bare, evidence)))
            except ModelError as error:
                self.failures.append(error)
                if error.fatal:
                    break
        return answers

    def _call(self, messages: tuple[Message, ...], template: str, number: int) -> Call:
        """A call without a grammar yet."""
        sampling = {"temperature": self.settings.temperature, "max_tokens": self.settings.max_tokens}
        told = f"{template}@{template_version(template)}"
        return Call(self.model.name, messages, sampling, template=told, number=number)

    def _budgets(self, evidence: Evidence, previous: RuleSet | None, template: str) -> list[int]:
        """Tokens of episodes to try, from those of the last prompt down; at once those that have a recorded answer."""
        halves = [self.settings.episode_tokens >> halving for halving in range(HALVINGS + 1)]
        budgets = [budget for budget in halves if budget <= self._told]
        for place, budget in enumerate(budgets if self.cassette else ()):
            messages = self._messages(evidence, previous, budget)
            if self._recorded(self._call(messages, template, 0), evidence):
                return budgets[place:]
        return budgets

    def _recorded(self, bare: Call, evidence: Evidence) -> Reply | None:
        """A recorded answer under any grammar that may have gone along: to find it needs no server."""
        if self.cassette is None:
            return None
        engines = (None, *DIALECTS) if self.settings.constrained else (None,)
        found = (self.cassette.find(_under(bare, engine, evidence)) for engine in engines)
        return next((reply for reply in found if reply is not None), None)

    def _complete(self, bare: Call, evidence: Evidence) -> Reply:
        self._require_budget(bare)
        began = self._clock()
        try:
            call = _under(bare, self.model.engine() if self.settings.constrained else None, evidence)
            reply = self.model.complete(call)
        finally:
            self.spent.calls += 1
            self.spent.seconds += self._clock() - began
        self.spent.prompt_tokens += reply.prompt_tokens
        self.spent.completion_tokens += reply.completion_tokens
        if reply.finish_reason == "length" and reply.completion_tokens < self.settings.max_tokens:
            self._tell_less()  # the context was full before the answer was
        if self.cassette is not None:
            self.cassette.record(call, reply)
        return reply

    def _tell_less(self) -> None:
        self._told = max(self._told // 2, self.settings.episode_tokens >> HALVINGS)

    def _require_budget(self, call: Call) -> None:
        budget, spent = self.settings.budget, self.spent
        needed = sum(self.model.count_tokens(message["content"]) for message in call.messages)
        for what, used, most in (
            ("calls", spent.calls + 1, budget.calls),
            ("tokens", spent.tokens + needed, budget.tokens),
            ("seconds", spent.seconds, budget.seconds),
        ):
            if used > most:
                raise BudgetError(
                    f"the budget of {most:g} {what} for one induction is spent; raise it, or shorten the prompt"
                )


def _under(bare: Call, engine: Engine | None, evidence: Evidence) -> Call:
    """The call with the grammar of an engine."""
    return replace(bare, grammar=decoding_grammar(engine, evidence.vocabulary.signature)) if engine else bare


def _whole(reply: Reply) -> str:
    """An answer that ran out of tokens loses its last line, which may be half a rule."""
    if reply.finish_reason != "length":
        return reply.text
    return reply.text.rpartition("\n")[0]
