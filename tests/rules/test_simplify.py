"""Simplification by sympy: never text, never for long, never without saying so."""

from __future__ import annotations

import sys

import pytest

from nser.rules import simplify as module
from nser.rules.logic import equivalent
from nser.rules.parse import parse_formula, parse_rule
from nser.rules.printer import print_formula, print_rule
from nser.rules.simplify import MAX_VARIABLES, simplify, simplify_rule
from nser.rules.simplify_worker import minimise
from tests.rules.strategies import SIGNATURE


@pytest.mark.parametrize(
    ("text", "shorter"),
    [
        ("(p(t) & q(t)) | (p(t) & ~q(t))", "p(t)"),
        ("x(t) < 1 & x(t) < 2 & p(t)", "x(t) < 1.0 & p(t)"),
        ("x(t) < 1 & p(t) | x(t) >= 1 & p(t)", "p(t)"),
        ("~next(p(t)) | ~~next(p(t)) & q(t)", "q(t) | ~next(p(t))"),
        ("p(t) & ~p(t)", "false"),
        ("true & true", "true"),
    ],
)
def test_what_can_be_said_shorter_is(text: str, shorter: str) -> None:
    formula = parse_formula(text)
    found = simplify(formula)
    assert found.changed
    assert equivalent(found.formula, formula) == "yes"
    assert equivalent(found.formula, parse_formula(shorter)) == "yes"
    assert len(print_formula(found.formula)) <= len(shorter)


@pytest.mark.parametrize("issue", ["sympy #14643", "sympy #9921"])
def test_beyond_the_cap_the_formula_comes_back_and_says_so(issue: str) -> None:
    """simplify_logic hung on ten `|`, and now hands back what it got without a word; to_cnf blows up."""
    texts = {
        "sympy #14643": " | ".join(f"p{i}(t)" for i in range(10)),
        "sympy #9921": " & ".join(f"(p{i}(t) | q{i}(t) & r{i}(t))" for i in range(10)),
    }
    formula = parse_formula(texts[issue])
    found = simplify(formula)
    assert (found.formula, found.changed) == (formula, False)
    assert f"the cap is {MAX_VARIABLES}" in found.reason


def test_a_time_limit_holds_and_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("slow")
    slow = folder / "python"
    slow.write_text("#!/bin/sh\nexec sleep 600\n")
    slow.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(slow))
    formula = parse_formula("p(t) | p(t)")
    found = simplify(formula, seconds=0.05)
    assert (found.formula, found.changed) == (formula, False)
    assert "not done within 0.05 seconds" in found.reason


def test_a_process_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert "failed" in simplify(parse_formula("p(t) | p(t)")).reason


def test_a_worker_that_lies_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_asked", lambda *_: (0,))
    found = simplify(parse_formula("p(t) & q(t) & q(t)"))
    assert not found.changed
    assert "does not say the same" in found.reason


def test_a_rule_keeps_its_head_and_weight() -> None:
    rule = parse_rule("rule a [0.5]: forall t in step: carrying(t) & (carrying(t) | bumped(t)) -> ~good(t)")
    shorter, found = simplify_rule(rule, SIGNATURE)
    assert found.changed
    assert print_rule(shorter) == "rule a [0.5]: forall t in step: carrying(t) -> ~good(t)"


def test_minimising_uses_what_no_world_has() -> None:
    # variable 0 is x < 1, variable 1 is x < 2: the row 01 does not exist
    assert minimise(2, [0b11], [0b01]) == 0
    assert minimise(2, [0b10, 0b11], []) == 1
    assert minimise(1, [], []) is False
    assert minimise(2, [0b00, 0b11], []) in (
        ["and", ["or", 0, ["not", 1]], ["or", ["not", 0], 1]],
        ["or", ["and", 0, 1], ["and", ["not", 0], ["not", 1]]],
    )
