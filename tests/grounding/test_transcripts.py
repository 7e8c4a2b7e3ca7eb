"""Transcripts from chat messages and rollouts, and the predicates that every rollout has."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nser.grounding.about_text import rollout_predicate, turn_number
from nser.grounding.answers import answers_in
from nser.grounding.errors import DegreeError, UngroundedError, VocabularyError
from nser.grounding.evaluator import Evaluator
from nser.grounding.reference import reference_truths
from nser.grounding.rollout_words import ROLLOUTS
from nser.grounding.steps import single_steps
from nser.grounding.text_steps import text_steps
from nser.grounding.transcripts import Transcript, TranscriptError, Turn, as_transcript
from nser.grounding.vocabulary import Predicate, Vocabulary
from nser.rules.parse import parse_formula, parse_rule
from nser.rules.signature import PredicateSignature
from nser.rules.syntax import Rule


def chat(*turns: str, **fields: Any) -> Transcript:
    """A transcript of turns such as `assistant: text`."""
    messages = [dict(zip(("role", "content"), turn.split(": ", 1), strict=True)) for turn in turns]
    return Transcript.of_messages(messages, **fields)


def holds(formula: str, rollout: Transcript) -> list[bool]:
    """Whether a formula holds, of the rollout or of each of its turns, by the plain interpreter."""
    variable, sort = ("r", "rollout") if "(r" in formula else ("u", "turn")
    good = parse_formula(f"good({variable})", variable)
    rule = Rule("a", parse_formula(formula, variable), good, variable=variable, sort=sort)
    body, _ = reference_truths([rule], ROLLOUTS.about(sort), text_steps([rollout], sort), sharpness=None)
    return [bool(degree > 0.5) for degree in body[:, 0]]


CALL = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "search", "arguments": {"q": 1}}}]}
ERROR = {"role": "tool", "content": [{"type": "text", "text": "Error: none"}, {"type": "image"}], "name": "search"}
TOOLS = Transcript.of_messages([{"role": "developer", "content": "Be brief."}, CALL, ERROR, CALL, ERROR], 0.5)


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("length(r) > 3", True),
        ("length(r) > 4", False),
        ("turns(r) >= 2", True),
        ('tool_calls(r, "search") >= 1', False),
        ('contains(r, "SHALL I GO")', True),
        ('contains(r, "invalid")', False),
        ('was_told(r, "invalid")', True),
        ('ends_with(r, "east?")', True),
        ("invalid_actions(r) >= 1", True),
        ("errors(r) >= 1", False),
        ("repeats(r)", False),
        ("answer_format_ok(r)", False),
        ("reached_goal(r)", False),
        ("cut_off(r)", False),
    ],
)
def test_words_about_a_rollout(formula: str, expected: bool) -> None:
    rollout = chat("user: Go.", "assistant: Shall", "user: Invalid action: what?", "assistant: I go\neast?")
    told = formula.replace("SHALL I GO", "SHALL\\nI GO")
    assert holds(told, rollout) == [expected]


def test_tools_and_errors_turn_by_turn() -> None:
    assert holds('tool_calls(r, "search") >= 2 & all_calls(r) <= 2 & errors(r) >= 2 & repeats(r)', TOOLS) == [True]
    assert holds("by(u, system)", TOOLS) == [True, False, False, False, False]
    assert holds('calls(u, "search") & next(error_reply(u))', TOOLS) == [False, True, False, True, False]
    assert holds("prev(error_reply(u)) & repeats_previous(u)", TOOLS) == [False, False, False, True, False]
    assert holds('eventually[0..9](calls(u, "search"))', TOOLS) == [True, True, True, True, False]
    assert holds("once[1..2](by(u, system))", TOOLS) == [False, True, True, False, False]
    assert TOOLS.messages[2].text == "Error: none <image>"
    assert TOOLS.messages[1].calls[0].arguments == '{"q": 1}'


def test_turns_never_look_into_the_next_rollout() -> None:
    one, two = chat("assistant: a", "user: b"), chat("assistant: c")
    evaluator = Evaluator(
        [parse_rule("rule a: forall u in turn: next(by(u, assistant)) -> good(u)")], ROLLOUTS.about("turn")
    )
    assert evaluator.firings(text_steps([one, two], "turn"))[:, 0].tolist() == pytest.approx([0, 0, 0])


@pytest.mark.parametrize(
    ("fields", "reply", "expected"),
    [
        ({"metadata": {"success": True}}, "No.", True),
        ({"metadata": {"success": False}}, "You reached the goal.", False),
        ({}, "You reached the goal.", True),
        ({}, "Go on.", False),
    ],
)
def test_the_record_of_success_goes_before_what_was_said(fields: Any, reply: str, expected: bool) -> None:
    assert holds("reached_goal(r)", chat("assistant: east", f"user: {reply}", **fields)) == [expected]


def test_going_in_circles() -> None:
    assert holds("repeats(r)", chat("assistant: " + "one two three four five six seven eight " * 3)) == [True]
    assert holds("repeats(r)", chat("assistant: " + "one two three four five six seven eight " * 2)) == [False]
    assert holds("repeats(r)", chat("assistant: Go  east", "user: x", "assistant: go east")) == [True]
    assert holds("repeats(r)", chat("assistant: east", "assistant: west", "assistant: east")) == [False]


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("<answer>1</answer> or <Answer>\n2\n</Answer>", ["1", "2"]),
        (r"\boxed{\frac{1}{2}} and \boxed{3", [r"\frac{1}{2}"]),
        ("**Answer:** 4.", ["4"]),
        ("#### 1,000", ["1,000"]),
        ("the answer is 4", []),
        ("<answer> </answer>", []),
    ],
)
def test_where_answers_stand(text: str, answers: list[str]) -> None:
    assert answers_in(text) == answers
    assert holds("answer_format_ok(r)", chat(f"assistant: {text}")) == [len(answers) == 1]


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ([], "messages: found none, expected at least one"),
        ("hello", "messages: found hello, expected a list"),
        ([3], r"messages\[0\]: found 3, expected an object"),
        ([{"role": "wizard", "content": ""}], r"messages\[0\].role: found wizard"),
        ([{"content": ""}], r"messages\[0\].role: found None"),
        ([{"role": "user", "content": 3}], r"messages\[0\].content: found 3"),
        ([{"role": "assistant", "tool_calls": "x"}], r"messages\[0\].tool_calls: found x"),
    ],
)
def test_messages_that_are_none(messages: object, told: str) -> None:
    with pytest.raises(TranscriptError, match=told):
        Transcript.of_messages(messages)


def test_a_reward_is_finite() -> None:
    with pytest.raises(TranscriptError, match="reward: found nan"):
        chat("user: x", reward=float("nan"))


def rollout(**metadata: Any) -> Any:
    return SimpleNamespace(
        reward=1.0, group="g", task="t", advantage=0.5, metadata=metadata, prompt_ids=[1, 2], response_ids=[3]
    )


def test_rollouts_as_transcripts() -> None:
    found = as_transcript(rollout(text="yes", prompt="well?", success=True))
    assert [(turn.role, turn.text) for turn in found.turns] == [("user", "well?"), ("assistant", "yes")]
    assert (found.reward, found.group, found.task, found.advantage) == (1.0, "g", "t", 0.5)
    assert found.metadata == {"success": True}
    assert as_transcript(found) is found
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    talk = as_transcript(rollout(prompt=messages, completion=[{"role": "assistant", "content": "a"}]))
    assert [(turn.role, turn.text) for turn in talk.turns] == [("system", "s"), ("user", "u"), ("assistant", "a")]
    decoded = as_transcript(rollout(), decode=lambda ids: "-".join(map(str, ids)))
    assert [turn.text for turn in decoded.turns] == ["1-2", "3"]
    with pytest.raises(TranscriptError, match="give decode="):
        as_transcript(rollout(score=3))


def test_every_example_of_the_vocabulary_means_something() -> None:
    assert all(known.example for known in ROLLOUTS.predicates.values())
    assert ROLLOUTS.about("turn").sort == "turn"
    with pytest.raises(VocabularyError, match="take one by"):
        _ = ROLLOUTS.sort
    with pytest.raises(VocabularyError, match="no predicate over step"):
        ROLLOUTS.about("step")


def test_words_of_your_own() -> None:
    @rollout_predicate("mood", "text", example='sounds(r, calm, "please")')
    def sounds(rollout: Transcript, mood: str, text: str) -> float:
        """The agent sounds so."""
        return 0.25 if mood == "calm" and text in rollout.said else 1.5

    @turn_number(unit="signs")
    def signs(turn: Turn) -> int:
        """Signs of this turn."""
        return len(turn.text)

    own = Vocabulary("own", (sounds, signs), {"mood": ("calm", "angry")}, texts={"text": ()})
    assert own.examples["signs"] == "signs(u) < 0"
    rows = text_steps([chat("assistant: please")], "rollout")
    atom = parse_formula('sounds(r, calm, "please")', "r")
    assert own.degrees(atom, rows).tolist() == [0.25]  # type: ignore[arg-type]
    with pytest.raises(DegreeError, match=r"1\.5 at row 0"):
        own.degrees(parse_formula('sounds(r, angry, "x")', "r"), rows)  # type: ignore[arg-type]
    with pytest.raises(UngroundedError, match="sounds is asked about numbers"):
        own.degrees(atom, single_steps(torch.zeros(1, 1), torch.zeros(1)))  # type: ignore[arg-type]


def test_declarations_that_no_rule_could_use() -> None:
    with pytest.raises(VocabularyError, match="takes a text, which is no sort"):
        Vocabulary("x", [known for known in ROLLOUTS.predicates.values() if known.name == "contains"])
    with pytest.raises(VocabularyError, match="one of constants and one of texts"):
        Vocabulary("x", (), {"text": ("a",)}, texts={"text": ()})
    with pytest.raises(VocabularyError, match="over the sort day"):
        Vocabulary("x", [Predicate(PredicateSignature("p", over="day"), lambda steps: steps.observations)])
    with pytest.raises(VocabularyError, match="has no docstring"):
        rollout_predicate()(lambda rollout: True)


def test_the_vocabulary_and_its_rows_can_be_pickled() -> None:
    rows = text_steps([TOOLS], "turn")
    again = pickle.loads(pickle.dumps((ROLLOUTS.predicates["by"], rows)))
    assert again[0].function(again[1], "tool").tolist() == [0, 0, 1, 0, 1]


texts = st.text(alphabet="ab \n.", max_size=12)
chats = st.lists(st.tuples(st.sampled_from(("user", "assistant", "tool")), texts), min_size=1, max_size=6)


@given(st.lists(chats, min_size=1, max_size=4))
@settings(deadline=None, max_examples=40)
def test_rows_in_chunks_are_the_rows_of_the_whole(rounds: list[list[tuple[str, str]]]) -> None:
    found = [Transcript.of_messages([{"role": r, "content": c} for r, c in messages]) for messages in rounds]
    rules = [
        parse_rule('rule a: forall u in turn: prev(says(u, "a")) & ~repeats_previous(u+1) -> good(u)'),
        parse_rule("rule b: forall u in turn: always[0..2](words(u) < 2) | by(u, tool) -> good(u)"),
    ]
    steps, turns = text_steps(found, "turn"), ROLLOUTS.about("turn")
    evaluator = Evaluator(rules, turns, sharpness=None).requires_grad_(False)
    expected, _ = reference_truths(rules, turns, steps, sharpness=None)
    assert torch.allclose(evaluator.firings(steps), expected, atol=1e-5)
    strengths = 1 - (1 - expected).prod(1)
    assert torch.allclose(evaluator.score(steps, chunk=3), strengths, atol=1e-5)
