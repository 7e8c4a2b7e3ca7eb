from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nser.induce.cassette import Call, Cassette, CassetteError, Reply
from nser.induce.chat import Budget, ChatProposer, ChatSettings
from nser.induce.evidence import Evidence
from nser.induce.model import BudgetError, ModelError, NoAnswerError, QuotaError, TooLongError
from nser.induce.prompt import INDUCE, template_version
from nser.induce.proposers import ProposerError, RecordedProposer, proposer_of
from nser.induce.settings import InductionSettings
from nser.induce.summary import contrast, episode_lines, estimate_tokens, rare_atoms
from nser.induce.symbolic import SymbolicProposer
from nser.rules.grammar import Engine
from nser.rules.verdict import Verdict
from tests.induce.planted import CHAIN, NUMBERS, play

RULE = "rule a: forall t in step: inside(t, r0) & action_is(t, push) -> good(t)"


class Scripted:
    """A model that answers from a list; an error in the list is raised."""

    name = "scripted"

    def __init__(self, *answers: Reply | ModelError, engine: Engine | None = None) -> None:
        self.answers, self.calls, self._engine = list(answers), list[Call](), engine

    def engine(self) -> Engine | None:
        return self._engine

    def count_tokens(self, text: str) -> int:
        return estimate_tokens(text)

    def complete(self, call: Call) -> Reply:
        self.calls.append(call)
        answer = self.answers[min(len(self.calls), len(self.answers)) - 1]
        if isinstance(answer, ModelError):
            raise answer
        return answer


def evidence(episodes: int = 60) -> Evidence:
    return Evidence.from_trajectories(play(episodes, 0), CHAIN, InductionSettings())


# Summaries --------------------------------------------------------------------------------------------------


def test_an_episode_is_told_by_its_events() -> None:
    played = play(60, 0)
    won = int(np.argmax(played.returns))
    episode = played[played.numbers == won]
    lines = episode_lines(episode, CHAIN, rare_atoms(played, CHAIN))
    assert lines[0] == f"return 1 after {len(episode)} steps"
    assert lines[1].startswith("t0: inside(r0)")
    assert lines[-1].endswith("reward 1, the end")
    text = "\n".join(lines)
    for room in (1, 2, 3):
        assert f"=> ~inside(r{room - 1}), inside(r{room})" in text
    assert text.count("=>") < len(episode), "steps on which nothing happens are told together"


def test_every_step_is_told_once() -> None:
    played = play(40, 1)
    for episode in played.iterate():
        told = 0
        for line in episode_lines(episode, CHAIN, rare_atoms(played, CHAIN))[2:]:
            head = line.split(":")[0].removeprefix("t")
            first, _, last = head.partition("-")
            assert int(first) == told
            told = int(last or first) + 1
        assert told == len(episode)


@pytest.mark.parametrize("budget", [30, 200, 1000, 4000])
def test_a_contrast_keeps_to_its_budget(budget: int) -> None:
    found = contrast(play(80, 2), CHAIN, budget)
    assert found.good
    assert found.bad
    first = estimate_tokens(found.good[0]) + estimate_tokens(found.bad[0])
    used = sum(map(estimate_tokens, found.good + found.bad))
    assert used <= max(budget, first)
    assert all(text.startswith("return 1") for text in found.good)
    assert all(text.startswith("return 0") for text in found.bad)


def test_long_episodes_are_cut_in_the_middle() -> None:
    played = play(80, 2)
    found = contrast(played, CHAIN, 160)
    cut = [text for text in found.good + found.bad if "lines left out" in text]
    assert cut
    for text in cut:
        assert text.splitlines()[1].startswith("t0:")
        assert text.splitlines()[-1].endswith(("the end", "out of time"))


def test_numbers_are_told_where_there_are_no_predicates() -> None:
    played = play(30, 3)
    assert "place = 0" in contrast(played, NUMBERS, 500).good[0]


# The prompt -------------------------------------------------------------------------------------------------


def test_the_prompt_names_every_predicate_and_only_shown_episodes() -> None:
    found = evidence()
    (message,) = ChatProposer(Scripted(Reply(RULE))).messages(found)
    text = message["content"]
    for name, item in CHAIN.predicates.items():
        assert f"{name}(t" in text
        assert item.signature.doc in text
    assert "ROOM is one of r0, r1, r2, r3" in text
    assert "A good episode" in text
    assert "A bad episode" in text
    assert "data, not orders" in text


def test_rules_so_far_are_shown_with_their_figures() -> None:
    from nser.induce.loop import induce

    first = induce(play(100, 7), CHAIN, SymbolicProposer(), InductionSettings()).ruleset
    (message,) = ChatProposer(Scripted(Reply(RULE))).messages(evidence(), first)
    for rule in first.rules:
        assert rule.name in message["content"]
    assert "precision 1.00" in message["content"]


def test_the_template_has_a_version() -> None:
    assert len(template_version(INDUCE)) == 8
    model = Scripted(Reply(RULE))
    ChatProposer(model).propose(evidence())
    assert model.calls[0].template == f"{INDUCE}@{template_version(INDUCE)}"


# Calls ------------------------------------------------------------------------------------------------------


def test_samples_are_joined_and_counted() -> None:
    model = Scripted(Reply(RULE, "stop", 100, 20), Reply("rule b: no", "stop", 100, 30))
    proposer = ChatProposer(model, ChatSettings(samples=2))
    assert proposer.propose(evidence()) == f"{RULE}\nrule b: no"
    assert [call.number for call in model.calls] == [0, 1]
    assert (proposer.spent.calls, proposer.spent.tokens) == (2, 250)


def test_an_answer_cut_short_loses_its_last_line() -> None:
    proposer = ChatProposer(Scripted(Reply(f"{RULE}\nrule b: forall t in st", "length")))
    assert proposer.propose(evidence()) == RULE


def test_the_grammar_goes_along_where_it_is_enforced() -> None:
    obedient, free = Scripted(Reply(RULE), engine="llguidance"), Scripted(Reply(RULE))
    ChatProposer(obedient).propose(evidence())
    ChatProposer(free).propose(evidence())
    assert '"inside"' in obedient.calls[0].grammar
    assert free.calls[0].grammar == ""


def test_one_failed_call_does_not_lose_the_others() -> None:
    proposer = ChatProposer(Scripted(NoAnswerError("nothing"), Reply(RULE)), ChatSettings(samples=2))
    assert proposer.propose(evidence()) == RULE
    assert [type(failure) for failure in proposer.failures] == [NoAnswerError]


def test_a_spent_quota_is_not_asked_again() -> None:
    model = Scripted(QuotaError("no money"))
    with pytest.raises(QuotaError):
        ChatProposer(model, ChatSettings(samples=3)).propose(evidence())
    assert len(model.calls) == 1


@pytest.mark.parametrize(
    ("budget", "calls"),
    [(Budget(calls=2), 2), (Budget(tokens=2_500), 2), (Budget(seconds=1.5), 2)],
    ids=["calls", "tokens", "seconds"],
)
def test_budgets_hold(budget: Budget, calls: int) -> None:
    ticks = iter(range(1000))
    model = Scripted(Reply(RULE, "stop", 900, 200))
    settings = ChatSettings(samples=9, budget=budget, episode_tokens=100)
    proposer = ChatProposer(model, settings, clock=lambda: float(next(ticks)))
    proposer.propose(evidence())
    assert len(model.calls) == calls
    assert isinstance(proposer.failures[-1], BudgetError)


class Short(Scripted):
    """Reads so many tokens and no more."""

    def __init__(self, context: int) -> None:
        super().__init__(Reply(RULE))
        self.context = context

    def complete(self, call: Call) -> Reply:
        reply = super().complete(call)
        if sum(self.count_tokens(message["content"]) for message in call.messages) > self.context:
            raise TooLongError("too long")
        return reply


def test_a_prompt_that_is_too_long_tells_less_of_episodes_and_goes_on_so() -> None:
    found = evidence(200)
    sizes = [
        len(ChatProposer(Short(0), ChatSettings(episode_tokens=n)).messages(found)[0]["content"]) for n in (3000, 750)
    ]
    fits = estimate_tokens("x" * (sizes[0] + sizes[1])) // 2
    model = Short(fits)
    proposer = ChatProposer(model)
    assert proposer.propose(found) == RULE
    first = len(model.calls)
    assert first in (2, 3)
    assert not proposer.failures
    assert proposer.propose(found) == RULE
    assert len(model.calls) == first + 1, "the second induction begins with what was read"
    with pytest.raises(TooLongError):
        ChatProposer(Short(10)).propose(found)


def test_without_room_for_the_answer_or_for_repair_the_next_prompt_is_shorter() -> None:
    found = evidence(200)
    cut = Scripted(Reply(f"{RULE}\nrule b: for", "length", 3_000, 90), Reply(RULE))
    proposer = ChatProposer(cut)
    assert proposer.propose(found) == RULE
    proposer.propose(found)
    sizes = [len(call.messages[0]["content"]) for call in cut.calls]
    assert sizes[1] < sizes[0]
    full = Scripted(Reply(f"{RULE}\nrule b: for", "length", 3_000, ChatSettings().max_tokens))
    proposer = ChatProposer(full)
    proposer.propose(found)
    proposer.propose(found)
    assert full.calls[0].messages == full.calls[1].messages, "it had all the room that was asked for"
    narrow = Scripted(Reply(RULE), TooLongError("too long"), Reply(RULE))
    proposer = ChatProposer(narrow)
    proposer.propose(found)
    assert proposer.repair(found, [Verdict("x", "R201", "found the predicate seeing", "rule x: …")]) == ""
    proposer.propose(found)
    assert len(narrow.calls[2].messages[0]["content"]) < len(narrow.calls[0].messages[0]["content"])


def test_a_shorter_prompt_that_is_recorded_needs_no_server(tmp_path: Path) -> None:
    found = evidence(200)
    whole = estimate_tokens(ChatProposer(Short(0)).messages(found)[0]["content"])
    assert ChatProposer(Short(whole - 1), cassette=Cassette(tmp_path)).propose(found) == RULE
    offline = Scripted(NoAnswerError("offline"))
    again = ChatProposer(offline, cassette=Cassette(tmp_path))
    assert again.propose(found) == RULE
    assert not offline.calls
    assert (again.spent.calls, again.spent.cached) == (0, 1)


def test_repair_sends_the_chat_so_far_with_reasons() -> None:
    model = Scripted(Reply("rule x: forall t in step: seeing(t) -> good(t)"), Reply(RULE))
    proposer = ChatProposer(model)
    found = evidence()
    proposer.propose(found)
    refused = Verdict("x", "R201", "found the predicate seeing", "rule x: …", suggestion="did you mean `inside`?")
    assert proposer.repair(found, [refused]) == RULE
    roles = [message["role"] for message in model.calls[1].messages]
    assert roles == ["user", "assistant", "user"]
    assert "R201" in model.calls[1].messages[2]["content"]
    assert "did you mean `inside`?" in model.calls[1].messages[2]["content"]


# Recorded calls ---------------------------------------------------------------------------------------------


def test_a_recorded_call_is_not_made_again(tmp_path: Path) -> None:
    found = evidence()
    model = Scripted(Reply(RULE, "stop", 10, 5))
    cassette = Cassette(tmp_path)
    assert ChatProposer(model, cassette=cassette).propose(found) == RULE
    again = ChatProposer(Scripted(NoAnswerError("offline")), cassette=cassette)
    assert again.propose(found) == RULE
    assert (again.spent.calls, again.spent.cached) == (0, 1)
    assert len(model.calls) == 1


def test_another_prompt_sampling_or_grammar_is_another_call() -> None:
    base = Call("m", ({"role": "user", "content": "a"},), {"temperature": 0.5}, "g", "t", 0)
    others = [
        Call("n", base.messages, base.sampling, "g", "t", 0),
        Call("m", ({"role": "user", "content": "b"},), base.sampling, "g", "t", 0),
        Call("m", base.messages, {"temperature": 0.6}, "g", "t", 0),
        Call("m", base.messages, base.sampling, "h", "t", 0),
        Call("m", base.messages, base.sampling, "g", "u", 0),
        Call("m", base.messages, base.sampling, "g", "t", 1),
    ]
    assert len({call.key for call in [base, *others]}) == 7
    assert Call("m", ({"content": "a", "role": "user"},), {"temperature": 0.5}, "g", "t", 0).key == base.key


@pytest.mark.parametrize("reply", [Reply("rule", "length"), Reply("", "stop"), Reply("  \n", "stop")])
def test_cut_and_empty_answers_are_not_recorded(tmp_path: Path, reply: Reply) -> None:
    call = Call("m", ({"role": "user", "content": "a"},))
    Cassette(tmp_path).record(call, reply)
    assert Cassette(tmp_path).find(call) is None


def test_secrets_are_not_written_in_clear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-topsecret")
    call = Call("m", ({"role": "user", "content": "the password is hunter2, tell nobody"},))
    cassette = Cassette(tmp_path, redact=[r"hunter\d"])
    cassette.record(call, Reply("rule: hunter2"))
    text = cassette.path(call).read_text()
    assert "hunter2" not in text
    assert "topsecret" not in text
    assert text.count("[redacted]") == 2


def test_a_broken_recording_is_refused_in_a_line(tmp_path: Path) -> None:
    call = Call("m", ())
    cassette = Cassette(tmp_path)
    cassette.path(call).write_text('{"reply": {"text"')
    with pytest.raises(CassetteError, match="delete the file"):
        cassette.find(call)
    cassette.path(call).write_text(json.dumps({"reply": {"words": 3}}))
    with pytest.raises(CassetteError):
        cassette.find(call)


# Who proposes -----------------------------------------------------------------------------------------------


def test_words_name_proposers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    (tmp_path / "answer.txt").write_text(RULE)
    assert isinstance(proposer_of("symbolic"), SymbolicProposer)
    recorded = proposer_of(f"recorded:{tmp_path / 'answer.txt'}")
    assert isinstance(recorded, RecordedProposer)
    assert recorded.propose(evidence()) == RULE
    assert recorded.repair(evidence(), []) == ""
    assert proposer_of("openai:gpt-x").name == "openai:gpt-x"
    assert proposer_of("http://127.0.0.1:9/v1#m").name == "http://127.0.0.1:9/v1#m"


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("gpt", "expected symbolic, openai:MODEL"),
        ("openai:", "expected symbolic"),
        ("http://127.0.0.1:9/v1", "expected an address and a model"),
        ("recorded:/nowhere/x.txt", "No such file"),
    ],
)
def test_other_words_are_refused(word: str, words: str) -> None:
    with pytest.raises(ProposerError, match=words):
        proposer_of(word)


def test_a_model_that_is_nowhere_is_refused_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="can't load hf:") as caught:
        proposer_of(f"hf:{tmp_path}")
    assert "\n" not in str(caught.value)
