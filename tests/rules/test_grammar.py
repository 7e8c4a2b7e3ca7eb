"""One grammar for three engines: each compiles it, takes what the printer writes, and writes what parses."""

from __future__ import annotations

import random

import llguidance
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lark import Lark
from lark.exceptions import UnexpectedInput

from nser.rules.errors import LengthError, NumberError, PredicateNameError, WindowError
from nser.rules.grammar import Engine, grammar
from nser.rules.parse import parse_rule, parse_rules
from nser.rules.printer import print_rule
from nser.rules.scope import check_names
from nser.rules.signature import PredicateSignature, Signature
from nser.rules.syntax import Comparison, Formula, Quantified, Rule, Temporal, Threshold, Window
from nser.rules.walk import fold, nodes, with_children
from tests.rules.strategies import SIGNATURE, rules

ENGINES: tuple[Engine, ...] = ("lark", "llguidance", "openai")
END = 256


class Bytes:
    """A tokenizer of single bytes, as llguidance wants one; token 256 ends the text."""

    eos_token_id = END
    bos_token_id = None
    tokens = (*(bytes([byte]) for byte in range(END)), b"<end>")
    special_token_ids = (END,)

    def __call__(self, text: bytes | str) -> list[int]:
        return list(text if isinstance(text, bytes) else text.encode())


TOKENIZER = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Bytes()))


def matcher(engine: Engine, signature: Signature | None) -> llguidance.LLMatcher:
    return llguidance.LLMatcher(TOKENIZER, llguidance.grammar_from("lark", grammar(engine, signature)))


def accepts(start: llguidance.LLMatcher, text: str) -> bool:
    state = start.deep_copy()
    return state.consume_tokens(list(text.encode())) and bool(state.is_accepting())


MATCHERS = {(engine, bool(known)): matcher(engine, known) for engine in ENGINES for known in (None, SIGNATURE)}
SPECIALISED = Lark(grammar("lark", SIGNATURE), parser="lalr")
SPACED = Lark(grammar("openai", SIGNATURE), parser="lalr")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("known", [None, SIGNATURE], ids=["plain", "specialised"])
def test_llguidance_compiles_every_form_without_a_warning(engine: Engine, known: Signature | None) -> None:
    text = llguidance.grammar_from("lark", grammar(engine, known))
    assert llguidance.LLMatcher.validate_grammar_with_warnings(text) == (False, [])


@pytest.mark.parametrize("engine", ["lark", "openai"])
@pytest.mark.parametrize("known", [None, SIGNATURE], ids=["plain", "specialised"])
def test_lark_compiles_every_form_without_a_conflict(engine: Engine, known: Signature | None) -> None:
    assert Lark(grammar(engine, known), parser="lalr", strict=False).parse(
        "rule a [0.8]: forall t in step: ~facing(t-1, key) & dist_goal(t) < ?0.3 -> ~good(t)"
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("known", [None, SIGNATURE], ids=["plain", "specialised"])
def test_every_form_stays_in_the_core_that_the_engines_share(engine: Engine, known: Signature | None) -> None:
    text = grammar(engine, known).removeprefix('%llguidance {"ignore_once": true}\n')
    assert text.count("%") == text.count("%ignore") == (engine != "openai")
    for beyond in ("%import", "%declare", "%extend", "(?=", "(?!", "(?<", "*?", r"\b", "~ ", "{n"):
        assert beyond not in text.replace('"~ "', "")
    terminals = [line for line in text.splitlines() if line[:1].isupper()]
    assert terminals
    assert not any('"' in line for line in terminals), "a keyword as a named terminal"


def small(rule: Rule, percent: int) -> Rule:
    """A rule with numbers as people write them; the forms for models leave out the others."""

    def combine(node: Formula, parts: tuple[Formula, ...]) -> Formula:
        match node:
            case Comparison(feature, operator, threshold):
                return Comparison(feature, operator, Threshold(-percent / 8, threshold.learnable))
            case Temporal(operator, _, Window()):
                return Temporal(operator, parts[0], Window(percent, percent + 9))
        return with_children(node, parts)

    return Rule(rule.name, fold(rule.body, combine), rule.head, percent / 100)


@given(rules(SIGNATURE, judged=True), st.integers(0, 100))
@settings(max_examples=80)
def test_what_the_printer_writes_is_taken_by_every_form(rule: Rule, percent: int) -> None:
    rule = small(rule, percent)
    text = print_rule(rule)
    plain = all(not isinstance(node, Quantified) for node in nodes(rule.body))
    for engine in ENGINES:
        assert accepts(MATCHERS[engine, False], text)
        assert accepts(MATCHERS[engine, True], text) == plain
    if plain:
        assert SPECIALISED.parse(text)
        assert SPACED.parse(text)


@pytest.mark.parametrize(
    "body",
    [
        "flying(t)",
        "facing(t, kye)",
        "facing(t, left)",
        "facing(t)",
        "carrying(t, key)",
        "carrying(s)",
        "dist_goal(t)",
        "carrying(t) < 0.5",
        "next(t)",
        "not(t)",
        "good(t)",
    ],
)
def test_a_specialised_grammar_cannot_write_what_the_vocabulary_lacks(body: str) -> None:
    text = f"rule a: forall t in step: {body} -> good(t)"
    for engine in ENGINES:
        assert not accepts(MATCHERS[engine, True], text)
        assert accepts(MATCHERS[engine, True], text.replace(f": {body} ->", ": carrying(t) ->"))
    with pytest.raises(UnexpectedInput):
        SPECIALISED.parse(text)


@pytest.mark.parametrize("engine", ["llguidance", "openai"])
def test_blanks_names_and_numbers_end(engine: Engine) -> None:
    for endless in (
        "rule a:" + " " * 100,
        f"rule {'n' * 33}",
        "rule a: forall t in step: dist_goal(t) < " + "9" * 10,
        "rule a: forall t in step: carrying(t+1000",
    ):
        state = MATCHERS[engine, True].deep_copy()
        assert not state.consume_tokens(list(endless.encode()))


@pytest.mark.parametrize("engine", ["llguidance", "openai"])
@pytest.mark.parametrize("seed", range(4))
def test_what_a_specialised_grammar_writes_is_a_rule_with_known_names(engine: Engine, seed: int) -> None:
    """A blind writer picks any allowed byte, and ends as soon as it may."""
    chooser = random.Random(seed)
    state = MATCHERS[engine, True].deep_copy()
    written = bytearray()
    while not state.is_accepting() and len(written) < 1500:
        mask = state.compute_bitmask()
        allowed = [byte for byte in range(END) if mask[byte // 8] >> byte % 8 & 1]
        closing = [byte for byte in allowed if byte in b")->g"]
        byte = chooser.choice(closing or allowed)
        assert state.consume_token(byte)
        written.append(byte)
    parsed = parse_rules(written.decode())
    for problem in parsed.problems:
        assert isinstance(problem, (WindowError, NumberError, LengthError))
    for rule in parsed.rules:
        assert check_names(rule, SIGNATURE) == ()
    assert parsed.rules or parsed.problems


def test_a_plain_grammar_is_wider_than_the_parser_and_the_parser_decides() -> None:
    text = "rule rule: forall t in step: implies(t) -> good(t)"
    assert accepts(MATCHERS["llguidance", False], text)
    assert parse_rules(text).rules == ()


def test_vocabularies_that_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="no predicate"):
        grammar("lark", Signature({}, {}))
    with pytest.raises(ValueError, match="no predicate"):
        grammar("lark", Signature({"at": PredicateSignature("at", ("room",))}, {"room": ()}))
    with pytest.raises(PredicateNameError):
        grammar("lark", Signature({"next": PredicateSignature("next")}, {}))
    evil = 'key" | /.*/ | "'
    with pytest.raises(PredicateNameError):
        grammar("lark", Signature({"at": PredicateSignature("at", ("room",))}, {"room": (evil,)}))


@pytest.mark.parametrize("kind", ["truth", "number"])
def test_a_vocabulary_of_one_kind(kind: str) -> None:
    known = PredicateSignature("x", kind="number" if kind == "number" else "truth")
    for engine in ENGINES:
        text = grammar(engine, Signature({"x": known}, {}))
        assert llguidance.LLMatcher.validate_grammar(llguidance.grammar_from("lark", text)) == ""
    body = "x(t) < 3" if kind == "number" else "x(t)"
    reader = Lark(grammar("lark", Signature({"x": known}, {})), parser="lalr")
    rule = f"rule a: forall t in step: {body} -> good(t)"
    assert reader.parse(rule)
    assert parse_rule(rule)
