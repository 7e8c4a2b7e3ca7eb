"""The grammar of `rules.lark` as each engine of constrained decoding wants it, made from that one file.

A constraint saves tokens, it is no check: several servers drop a grammar without a word, so whatever comes
back is parsed and checked again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Literal

from nser.rules.scope import TIMELESS, check_name
from nser.rules.signature import Signature
from nser.rules.syntax import VARIABLES

Engine = Literal["lark", "llguidance", "openai"]

# A model may write names and numbers without end where nothing stops it.
_BOUNDED = {
    **dict.fromkeys(("RULE_NAME", "VARIABLE", "SORT", "PREDICATE", "TERM"), r"/[A-Za-z_][A-Za-z0-9_]{0,31}/"),
    "NUMBER": r"/-?[0-9]{1,9}(\.[0-9]{1,9})?([eE][-+]?[0-9]{1,2})?/",
    "INT": r"/[0-9]{1,3}/",
    "STRING": r"/\x22[^\x22\\\x00-\x1f]{1,60}\x22/",
}
# One spelling is enough for a machine.
_ASCII = {
    **{"_forall": '"forall"', "_exists": '"exists"', "_in": '"in"', "_not": '"~"', "_and": '"&"'},
    **{"_or": '"|"', "_arrow": '"->"', "_iff": '"<->"', "_at_most": '"<="', "_at_least": '">="'},
}
# Without a blank of its own a keyword may be written into the next name, as in `forallt`.
_WORDS = {"rule": "rule ", "forall": "forall ", "exists": "exists ", "in": " in "}
_SPACED = {
    **_WORDS,
    **{":": ": ", ",": ", "},
    **{sign: f" {sign} " for sign in ("&", "|", "->", "<->", "<", "<=", ">", ">=")},
}


def grammar(engine: Engine = "lark", signature: Signature | None = None) -> str:
    """The grammar of one or more rules, its start symbol `start`.

    `lark` is the file itself; `llguidance` bounds blanks, names and numbers; `openai` has explicit single
    spaces in place of ignored blanks, for engines that ignore nothing, and reads one rule a line.

    With a signature the grammar is specialised: unknown predicates, wrong arities and wrong constants
    become impossible to write, and masks become cheap. Its rules speak of `t in step` (or `r in rollout`, as the
    predicates do), are `good(t)` or `~good(t)` of it, and have no quantifiers, which a disjunction over the few
    constants replaces. Raises ValueError when the signature has no predicate that could be written, or predicates over
    several sorts, PredicateNameError for a name that the language cannot use.
    """
    blocks = _blocks(files("nser.rules").joinpath("rules.lark").read_text(encoding="utf-8"))
    if signature is not None:
        _specialise(blocks, signature)
    if engine == "lark":
        return _joined(blocks)
    blocks |= {name: f"{name}: {text}" for name, text in _BOUNDED.items() if name in blocks}
    blocks |= {name: f"{name}: {text}" for name, text in _ASCII.items() if name in blocks}
    if engine == "llguidance":
        blocks = {name: _spaced(block, _WORDS) for name, block in blocks.items()}
        blocks["BLANK"] = "BLANK: /[ \\n]{1,4}/"
        return '%llguidance {"ignore_once": true}\n\n' + _joined(blocks)
    del blocks["BLANK"]
    blocks["rule"] = blocks["rule"].replace(' ";"?', "")
    blocks = {name: _spaced(block, _SPACED) for name, block in blocks.items()}
    blocks["weight"] = 'weight: " [" NUMBER "]"'
    blocks["start"] = 'start: rule ("\\n" rule)*'
    return _joined(blocks)


def _blocks(text: str) -> dict[str, str]:
    """The definitions of a Lark grammar by name, without comments and directives."""
    lines = [line for line in text.splitlines() if line and not line.startswith(("//", "%"))]
    blocks: dict[str, str] = {}
    name = ""
    for line in lines:
        if begins := re.match(r"\??(\w+):", line):
            name = begins[1]
            blocks[name] = line
        else:
            blocks[name] += f"\n{line}"
    return blocks


def _joined(blocks: dict[str, str]) -> str:
    ignored = "%ignore BLANK\n" if "BLANK" in blocks else ""
    return "\n".join(blocks.values()) + "\n" + ignored


def _spaced(block: str, table: Mapping[str, str]) -> str:
    """A definition with blanks put into its literals."""
    return re.sub(r'"([^"]+)"', lambda match: f'"{table.get(match[1], match[1])}"', block)


def _specialise(blocks: dict[str, str], signature: Signature) -> None:
    """Put the names of a vocabulary in place of the terminals of names."""
    truths: list[str] = []
    numbers: list[str] = []
    for known in signature.predicates.values():
        check_name(known.name)
        if not all(sort in signature.texts or signature.sorts.get(sort) for sort in known.sorts):
            continue
        arguments = "".join(f' "," {"STRING" if s in signature.texts else _sort(s)}' for s in known.sorts)
        (truths if known.kind == "truth" else numbers).append(f'"{known.name}" "(" time{arguments} ")"')
    leaves = [name for name, found in (("atom", truths), ("comparison", numbers)) if found]
    if not leaves:
        raise ValueError("the vocabulary has no predicate that a rule could use")
    over = {known.over for known in signature.predicates.values()}
    if len(over) > 1:
        raise ValueError(f"found predicates over {', '.join(sorted(over))}, expected one sort; make a grammar for each")
    sort_of_rules = over.pop()
    variable = VARIABLES[sort_of_rules]
    used = sorted({sort for known in signature.predicates.values() for sort in known.sorts})
    for sort in used:
        if constants := signature.sorts.get(sort):
            for constant in constants:
                check_name(constant, "constant")
            blocks[_sort(sort)] = _choice(_sort(sort), (f'"{constant}"' for constant in constants))
    bound = f'_forall "{variable}" _in "{sort_of_rules}"'
    blocks["rule"] = f'rule: "rule" RULE_NAME [weight] ":" {bound} ":" body _arrow head ";"?'
    blocks["head"] = f'head: [_not] "good" "(" "{variable}" ")"'
    blocks["body"] = "?body: closed_or"
    blocks["closed"] = "?closed: primary\n       | _not closed -> negation"
    primary = re.sub(r"^\?primary: atom\n +\| comparison", f"?primary: {' | '.join(leaves)}", blocks["primary"])
    blocks["primary"] = primary
    blocks["time"] = f'time: "{variable}"'
    if sort_of_rules not in TIMELESS:
        blocks["time"] += f'\n    | "{variable}" "+" INT\n    | "{variable}" "-" INT'
    blocks["comparison"] = blocks["comparison"].replace("atom", "feature")
    blocks["atom"] = _choice("atom", truths)
    blocks["feature"] = _choice("feature", numbers)
    dropped = ["positive", "open", "open_and", "open_or", "quantified", "_exists"]
    dropped += ["term", "VARIABLE", "SORT", "PREDICATE", "TERM"]
    dropped += [] if any(sort in signature.texts for sort in used) else ["STRING"]
    dropped += [] if truths else ["atom"]
    dropped += [] if numbers else ["comparison", "feature", "threshold", "_at_most", "_at_least"]
    for name in dropped:
        del blocks[name]


def _sort(name: str) -> str:
    """The rule for the constants of a sort; engines tell rules from terminals by case."""
    return f"sort_{name.lower()}"


def _choice(name: str, alternatives: Iterable[str]) -> str:
    return f"{name}: " + "\n    | ".join(alternatives)
