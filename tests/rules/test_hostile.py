"""The whole chain of checks under hostile input; by hand: `python -m tests.rules.test_hostile 10000`."""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from nser.rules.checks.extract import extract
from nser.rules.checks.pipeline import Checked, check_file, check_reply
from nser.rules.diff import diff, merge
from nser.rules.parse import parse_rules
from nser.rules.printer import print_rule
from nser.rules.store import RuleSet, load_rules, save_rules
from tests.rules.fuzz import inputs
from tests.rules.strategies import SIGNATURE


def hold(text: str, checked: Checked) -> None:
    """What is true of every answer."""
    for rule in checked.rules:
        assert parse_rules(print_rule(rule)).rules == (rule,)
    for verdict in checked.verdicts:
        assert "\n" not in str(verdict)
        assert str(verdict).isprintable()
        assert verdict.as_dict()["code"] == verdict.code
        assert verdict.position is None or 0 <= verdict.position.offset <= len(text)
    # What could not be read may have the name of a rule that stays.
    judged = {verdict.rule for verdict in checked.refused if not verdict.code.startswith("R1")}
    assert not {rule.name for rule in checked.rules} & judged


def test_hostile_texts_through_every_check() -> None:
    kinds: Counter[str] = Counter()
    for kind, text in inputs(500, seed=3, large=False):
        kinds[kind] += 1
        hold(text, check_file(text, SIGNATURE))
        hold(extract(text).text, check_reply(text))
    assert len(kinds) == 5
    assert kinds["huge"] == 5


def test_what_passes_goes_through_the_store(tmp_path: Path) -> None:
    rules = {rule.name: rule for _, text in inputs(200, seed=4, large=False) for rule in check_reply(text).rules}
    assert len(rules) > 3
    batch = tuple(rules.values())[:500]
    save_rules(tmp_path / "x.rules", RuleSet(batch))
    assert load_rules(tmp_path / "x.rules").rules == batch
    assert diff(batch, batch) == ()
    assert merge(batch, batch, batch[:1]).rules == batch[:1]


@pytest.mark.parametrize("kind", ["call", "deep", "template"])
def test_text_of_others_is_never_run(kind: str, tmp_path: Path) -> None:
    """sympy #10805: sympify runs what it reads; so no text ever comes near it, and none is formatted or imported."""
    path = tmp_path / "touched"
    evil = {
        "call": f"__import__('os').system('touch {path}')",
        "deep": "~" * 5000 + f"open('{path}', 'w')",
        "template": f"{{{{ cycler.__init__.__globals__.os.popen('touch {path}') }}}}",
    }[kind]
    for text in (evil, f"rule a: forall t in step: {evil} -> good(t)", f'{{"rules": "{evil}"}}', f"```\n{evil}\n```"):
        checked = check_reply(text, SIGNATURE)
        assert checked.rules == ()
        assert checked.refused
    assert not path.exists()


@pytest.mark.parametrize("sign", ["~", "(", "next(", "exists x in object: "])
def test_fifty_thousand_levels_are_one_error(sign: str) -> None:
    """lark #181: a recursive transformer overflows on a deep tree."""
    (verdict,) = check_file(f"rule a: forall t in step: {sign * 50_000}p(t) -> good(t)").verdicts
    assert verdict.code == "R102"


@pytest.mark.parametrize("word", ["not", "next", "forall", "true", "iff"])
def test_a_keyword_is_no_name(word: str) -> None:
    """lark #434: a grammar can't take keywords out of the names, so the reader does."""
    for text in (f"rule {word}: forall t in step: p(t) -> good(t)", f"rule a: forall t in step: p({word}) -> good(t)"):
        (verdict,) = check_file(text).verdicts
        assert verdict.code == "R101"
        assert f"`{word}`" in verdict.sentence


def main(count: int) -> None:
    """Run `count` inputs and print the slowest calls in seconds of the processor."""
    times = []
    for number, (kind, text) in enumerate(inputs(count, seed=1)):
        for check in (check_file, check_reply):
            begun = time.process_time()
            hold(text if check is check_file else extract(text).text, check(text, SIGNATURE))
            times.append((time.process_time() - begun, kind, number, len(text), check.__name__))
    times.sort(reverse=True)
    print(f"{count} inputs, no crash; slowest calls:", *times[:5], sep="\n  ")


if __name__ == "__main__":
    main(int(sys.argv[1]))
