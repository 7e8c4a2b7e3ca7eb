"""Several answers as one text, and two proposers as one: no rule is lost because two writers chose the same name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nser.induce.evidence import Evidence
from nser.induce.model import ModelError
from nser.induce.proposing import Proposer
from nser.rules.ruleset import RuleSet
from nser.rules.syntax import MAX_NAME
from nser.rules.verdict import Verdict

NAMED = re.compile(r"\brule\s+([A-Za-z_]\w*)(?=\s*(?:\[[^\]\n]*\])?\s*:)")


def joined(texts: Sequence[str]) -> str:
    """The texts one below the other; a rule name that stood before gets a number.

    >>> print(joined(["rule a: forall …", "rule a: forall …\\nrule b: forall …"]))
    rule a: forall …
    rule a_2: forall …
    rule b: forall …
    """
    taken: set[str] = set()

    def named(match: re.Match[str]) -> str:
        name, count = match[1], 1
        while name in taken:
            count += 1
            name = f"{match[1][: MAX_NAME - 4]}_{count}"
        taken.add(name)
        return f"rule {name}"

    return "\n".join(NAMED.sub(named, text) for text in texts)


class Competing:
    """Two proposers in one selection: what a language model writes stands beside what the symbolic learner finds."""

    def __init__(self, model: Proposer, symbolic: Proposer) -> None:
        self.model, self.symbolic = model, symbolic
        self.name, self.rounds, self.guesses = f"both:{model.name}", model.rounds, model.guesses
        self.last_error: ModelError | None = None

    def propose(self, evidence: Evidence, previous: RuleSet | None = None) -> str:
        """Both texts; a model that fails leaves the field to the symbolic learner, and its error is kept."""
        self.last_error = None
        texts = [self.symbolic.propose(evidence)]
        try:
            texts.append(self.model.propose(evidence, previous))
        except ModelError as error:
            self.last_error = error
        return joined(texts)

    def repair(self, evidence: Evidence, refused: Sequence[Verdict], kept: RuleSet | None = None) -> str:
        """What the model makes of refusals; the symbolic learner has nothing to mend."""
        return "" if self.last_error else self.model.repair(evidence, refused, kept)
