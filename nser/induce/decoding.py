"""The grammar that decoding is held to: the language's own, specialised and narrowed to what is worth generating.

What the language allows and a model only wastes tokens on is left out: ignored blanks (a small model emits newlines
without end), rule names that are keywords, `true` and `false`, nested parentheses, windows. What remains is a
conjunction of at most six literals, each plain, negated, or of the step before: the form that data can judge best.
A model that is not constrained may write anything of the language.
"""

from __future__ import annotations

import re

from nser.rules.grammar import Engine, grammar
from nser.rules.signature import Signature

MAX_LITERALS = 6

# No keyword holds an underscore, and no engine has to look ahead to know it.
NARROWED = {
    "RULE_NAME": "RULE_NAME: /[a-z]{1,12}_[a-z0-9_]{1,16}/",
    "NUMBER": r"NUMBER: /-?[0-9]{1,4}(\.[0-9]{1,3})?/",
}
DROPPED = frozenset(
    {"formula", "implication", "closed_or", "closed_and", "closed", "primary", "window", "weight", "INT", "_or", "_iff"}
)


def decoding_grammar(engine: Engine, signature: Signature) -> str:
    """A Lark grammar with explicit single blanks, specialised to the vocabulary, one rule a line.

    `llguidance` puts that engine's header before it; OpenAI's tools and vLLM take it as it is.
    """
    blocks: dict[str, str] = {}
    for line in grammar("openai", signature).splitlines():
        begins = re.match(r"\??(\w+):", line)
        name = begins[1] if begins else next(reversed(blocks))
        blocks[name] = f"{blocks[name]}\n{line}" if name in blocks else line
    leaves = [name for name in ("atom", "comparison") if name in blocks]
    body = "literal"
    for _ in range(MAX_LITERALS - 1):
        body = f"literal [_and {body}]"
    ordered = "\n" in blocks["time"]  # offsets are offered where things follow each other
    narrowed = NARROWED | {
        "time": re.sub(r"\n.*", "", blocks["time"], flags=re.DOTALL),
        "body": f"body: {body}",
        "literal": "literal: [_not] leaf" + (' | "prev" "(" leaf ")"' if ordered else ""),
        "leaf": f"leaf: {' | '.join(leaves)}",
    }
    kept = {name: block for name, block in blocks.items() if name not in DROPPED}
    kept["rule"] = kept["rule"].replace("[weight] ", "")  # data weigh the rules
    header = "%llguidance {}\n\n" if engine == "llguidance" else ""
    return header + "\n".join((kept | narrowed).values()) + "\n"
