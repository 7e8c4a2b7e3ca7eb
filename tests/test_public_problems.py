"""Problems that others had in public, each a test of ours; those that need more than a few lines stand elsewhere.

Every number of `PROBLEMS` is named in some test, here or beside the code that it is about. Six of them could not be
looked up (`UNREAD`): their tests protect from what the specification says of that library, which may not be what
was reported there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lark import Lark

from nser.induce.cassette import Reply
from nser.induce.chat import ChatProposer, ChatSettings
from nser.induce.decoding import decoding_grammar
from nser.induce.endpoint import CANARY
from nser.induce.loop import induce
from nser.induce.model import RefusalError
from nser.induce.settings import InductionSettings
from nser.rules.checks.pipeline import check_reply
from nser.rules.grammar import Engine, grammar
from nser.rules.parse import parse_rule, parse_rules
from nser.rules.printer import print_rule
from nser.rules.syntax import KEYWORDS, Rule
from tests.induce.fake_server import Answer, completion, failure, serve
from tests.induce.planted import CHAIN, play
from tests.induce.test_chat import Scripted
from tests.induce.test_endpoint import ASKED, CALL, RULE, endpoint, obeys
from tests.rules.strategies import SIGNATURE, rules
from tests.rules.test_grammar import ENGINES, MATCHERS, accepts

PROBLEMS = """
sympy #14643 #10805 #9921 · lark #181 #1404 #1455 #434 #194 · llguidance #233 · outlines #959 #1006
vllm #11118 #12619 #18255 · llama.cpp #19051 #4492 · networkx #8737 · langchain #9368 #17696 · instructor #276
ollama #15288 · browser-use #5148 · openai-node #1108
"""
UNREAD = "lark #1404, lark #194, outlines #1006, vllm #18255, openai-node #1108"
TEXT = "rule a [0.8]: forall t in step: ~facing(t-1, key) & dist_goal(t) < ?0.3 -> ~good(t)"


def numbers() -> Iterator[str]:
    for line in re.split(r"[·\n]", PROBLEMS):
        name, *found = line.split() or [""]
        yield from (f"{name} {number}" for number in found)


def test_every_problem_is_named_by_a_test() -> None:
    here = Path(__file__)
    texts = [path.read_text(encoding="utf-8") for path in here.parent.rglob("test_*.py") if path != here]
    texts.append(here.read_text(encoding="utf-8").split("def numbers", 1)[1])
    unnamed = [problem for problem in numbers() if not any(re.search(rf"{problem}\b", text) for text in texts)]
    assert unnamed == []
    assert len(list(numbers())) == 23
    assert set(UNREAD.split(", ")) < set(numbers())


# What Lark reads ---------------------------------------------------------------------------------------------

TOKENS = Lark(grammar("lark"), parser="lalr", start="start")
GAPS = st.sampled_from([" ", "  ", "\n", "\t", "\n\n", " # a remark -> rule b:\n", "\r\n", "\ufeff"])


@given(rules(SIGNATURE), st.lists(GAPS, min_size=1, max_size=6))
@settings(max_examples=60)
def test_blanks_and_remarks_may_stand_between_any_two_words(rule: Rule, gaps: list[str]) -> None:
    """lark #1455: what is ignored is not ignored inside a terminal, so no terminal of ours spans two words."""
    words = [str(token) for token in TOKENS.lex(print_rule(rule))]
    spaced = "".join(word + gaps[i % len(gaps)] for i, word in enumerate(words))
    assert parse_rule(spaced) == rule


@pytest.mark.parametrize("word", sorted(word for word in KEYWORDS if word.isalpha()))
def test_a_name_may_begin_with_a_keyword_and_be_like_any_other_name(word: str) -> None:
    """lark #1404, lark #194 (unread): of terminals that match the same text the wrong one may be taken."""
    name = f"{word}ed"
    text = f"rule {name}: forall {name} in {name}: not {name}({name}, {name}) -> good({name})"
    (rule,) = parse_rules(text.replace(f"in {name}", "in step")).rules
    assert rule.name == name
    assert parse_rule(print_rule(rule)) == rule


# Grammars that hold a model -----------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_an_answer_may_end_exactly_where_a_rule_does(engine: Engine) -> None:
    """outlines #1006 (unread): a guide that ends too early, or never, is no guide."""
    matcher = MATCHERS[engine, True]
    assert accepts(matcher, TEXT)
    whole = [end for end in range(len(TEXT)) if accepts(matcher, TEXT[:end])]
    assert whole == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("number", ["0.3", "-12.5", "7", "120"])
def test_numbers_are_taken_letter_by_letter(engine: Engine, number: str) -> None:
    """outlines #959: a guide that looks for whole terminals is lost in the middle of a number."""
    state = MATCHERS[engine, True].deep_copy()
    for byte in TEXT.replace("0.3", number).encode():
        allowed = state.compute_bitmask()
        assert allowed[byte // 8] >> byte % 8 & 1
        assert state.consume_token(byte)
    assert state.is_accepting()


def test_no_model_can_write_blanks_without_end() -> None:
    """Between words an ignored blank may be followed by another, and another."""
    for engine in ("llguidance", "openai"):
        state = MATCHERS[engine, True].deep_copy()
        assert state.consume_tokens(list(b"rule a:"))
        written = 0
        while state.compute_bitmask()[4] & 1 and written < 50:  # byte 32
            assert state.consume_token(32)
            written += 1
        assert written <= 5


def test_nothing_that_is_ignored_need_come_first() -> None:
    """llguidance #233: what a grammar ignores is refused as the first token; a rule starts without it."""
    state = MATCHERS["llguidance", True].deep_copy()
    assert state.consume_tokens(list(b"rule a:"))
    # A reply that starts with a blank all the same, from a server that allows it, is read.
    assert parse_rule(f"\n  {TEXT}") == parse_rule(TEXT)


@pytest.mark.parametrize("text", [*(grammar(e, SIGNATURE) for e in ENGINES), decoding_grammar("openai", SIGNATURE)])
def test_a_grammar_can_not_be_taken_for_another_notation(text: str) -> None:
    """vllm #11118: a server guesses the notation from the text; ours has no sign of EBNF outside its literals."""
    bare = re.sub(r'"[^"\n]*"|/[^/\n]*/', "", text.removeprefix('%llguidance {"ignore_once": true}\n'))
    assert "::=" not in bare
    assert re.search(r"^start: ", bare, re.MULTILINE)
    for line in bare.splitlines():
        assert re.match(r"(\??\w+:|\s+\||%ignore \w+$|$)", line), line


# Servers ----------------------------------------------------------------------------------------------------


def test_a_server_that_drops_a_grammar_in_silence_is_found_out() -> None:
    """llama.cpp #19051: it could not read a grammar, said nothing, and answered freely with status 200."""
    with serve(obeys("none")) as server:
        model = endpoint(server.url)
        assert model.complete(ASKED).text.startswith("Hello")
    assert model.enforced is False
    assert check_reply("Hello! How can I help?").rules == ()


def test_a_server_that_falls_over_a_grammar_is_asked_without_one_and_again_later() -> None:
    """llama.cpp #4492: a grammar that it could not read brought the whole server down."""
    broken = True

    def answer(request: dict[str, object]) -> Answer:
        if "grammar" not in request and "structured_outputs" not in request:
            return completion(RULE)
        return failure(500) if broken else completion(CANARY)

    with serve(answer) as server:
        model = endpoint(server.url)
        assert model.complete(ASKED).text == RULE
        assert model.enforced is None
        broken = False
        assert model.engine() == "openai"
    assert model.enforced is True


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_an_answer_in_the_field_for_thoughts_is_found_and_checked(field: str) -> None:
    """vllm #18255 (unread): with thinking and a grammar together the answer ends up beside `content`."""
    with serve([completion(None, **{field: f"<think>{RULE}</think>\n{RULE.replace('rule a', 'rule b')}"})]) as server:
        reply = endpoint(server.url).complete(CALL)
    assert [rule.name for rule in check_reply(reply.text).rules] == ["b"]


def test_a_cut_answer_keeps_its_whole_rules_and_a_refusal_is_no_answer() -> None:
    """openai-node #1108 (unread): a client that parses what was cut short, or refused, fails without a reason."""
    kept = "rule a: forall t in step: inside(t, r0) & action_is(t, push) -> good(t)"
    model = Scripted(Reply(f"{kept}\nrule b: forall t in step: inside(t, r1) & action_", "length"))
    found = induce(play(200, 0), CHAIN, ChatProposer(model, ChatSettings(repairs=0)), InductionSettings())
    assert [rule.name for rule in found.ruleset.rules] == ["a"]
    with serve([completion(None, refusal="No.")]) as server, pytest.raises(RefusalError, match="declined: No"):
        endpoint(server.url).complete(CALL)
