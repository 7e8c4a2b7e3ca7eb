"""Prompts, made from templates that are files; the version of a template is a hash of its text."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from nser.grounding.vocabulary import Vocabulary
from nser.induce.evidence import Evidence
from nser.induce.summary import CountTokens, contrast, estimate_tokens
from nser.induce.transcripts import rollout_contrast
from nser.rules.printer import print_rule
from nser.rules.signature import PredicateSignature
from nser.rules.store import RuleSet
from nser.rules.syntax import VARIABLES
from nser.rules.texts import quote
from nser.rules.verdict import Verdict

Message = Mapping[str, str]

INDUCE, INDUCE_ROLLOUTS, REPAIR = "induce.md.j2", "induce_rollouts.md.j2", "repair.md.j2"
TEXTS_NAMED = 8  # of a sort of texts, in the vocabulary's list
EPISODE_TOKENS = 3_000  # for episodes; the rest of the prompt takes some 800


@cache
def template_version(name: str) -> str:
    """Eight hexadecimal digits that change with the template's text."""
    text = files("nser.induce").joinpath("prompts", name).read_text(encoding="utf-8")
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def induction_messages(
    evidence: Evidence,
    wanted: int,
    *,
    previous: RuleSet | None = None,
    budget: int = EPISODE_TOKENS,
    count: CountTokens = estimate_tokens,
) -> tuple[Message, ...]:
    """The chat that asks for rules: vocabulary, language, episodes that are shown to proposers, rules so far.

    `budget` tokens at the most are spent on episodes.
    """
    vocabulary = evidence.vocabulary
    if vocabulary.sort != "step":
        return _about_rollouts(evidence, wanted, previous, budget, count)
    shown = evidence.trajectories[~evidence.held]
    told = contrast(shown, vocabulary, budget, count)
    numbers = vocabulary.ground_atoms(("number",), ("state",))
    text = _render(
        INDUCE,
        environment=vocabulary.description or f"An environment called {vocabulary.name}.",
        predicates=[_described(p.signature, vocabulary) for p in vocabulary.predicates.values()],
        has_numbers=bool(numbers),
        number_example=_call(numbers[0].predicate, [t.name for t in numbers[0].args]) if numbers else "",
        has_actions=bool(vocabulary.actions),
        good=told.good,
        bad=told.bad,
        kept=_kept(previous),
        wanted=wanted,
    )
    return ({"role": "user", "content": text},)


def _about_rollouts(
    evidence: Evidence, wanted: int, previous: RuleSet | None, budget: int, count: CountTokens
) -> tuple[Message, ...]:
    """The same of rollouts or of their turns."""
    vocabulary = evidence.vocabulary
    told = rollout_contrast(evidence, budget, count)
    variable = VARIABLES[vocabulary.sort]
    known = [predicate.signature for predicate in vocabulary.predicates.values()]
    numbers = [one.name for one in known if one.kind == "number" and not one.sorts]
    text = _render(
        INDUCE_ROLLOUTS,
        sort=vocabulary.sort,
        things=f"{vocabulary.sort}s",
        variable=variable,
        environment=vocabulary.description or f"A task called {vocabulary.name}.",
        predicates=[_described(one, vocabulary) for one in known],
        has_numbers=bool(numbers),
        number_example=_call(numbers[0], [variable]) if numbers else "",
        has_texts=bool(vocabulary.texts),
        good=told.good,
        bad=told.bad,
        kept=_kept(previous),
        wanted=wanted,
    )
    return ({"role": "user", "content": text},)


def induction_template(evidence: Evidence) -> str:
    """The template that `induction_messages` uses."""
    return INDUCE if evidence.vocabulary.sort == "step" else INDUCE_ROLLOUTS


def repair_messages(
    asked: Sequence[Message], answer: str, refused: Sequence[Verdict], kept: RuleSet | None, wanted: int
) -> tuple[Message, ...]:
    """The chat so far, and what was wrong with the answer."""
    text = _render(REPAIR, refused=refused, kept=_kept(kept), wanted=wanted)
    return (*asked, {"role": "assistant", "content": answer}, {"role": "user", "content": text})


def _render(name: str, **values: object) -> str:
    environment = Environment(
        loader=PackageLoader("nser.induce", "prompts"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # a prompt is no page
        keep_trailing_newline=False,
    )
    return environment.get_template(name).render(**values)


def _described(signature: PredicateSignature, vocabulary: Vocabulary) -> str:
    arguments = [f"{sort.upper()}" for sort in signature.sorts]
    constants = "; ".join(_members(sort, vocabulary) for sort in signature.sorts)
    kind = f", a number in {signature.unit}" if signature.kind == "number" and signature.unit else ""
    kind = kind or (", a number" if signature.kind == "number" else "")
    doc = signature.doc
    for sort in signature.sorts:
        doc = doc.replace(f"{{{sort}}}", sort.upper())
    told = f"{_call(signature.name, [VARIABLES[signature.over], *arguments])}: {doc}{kind}"
    return f"{told} ({constants})" if constants else told


def _members(sort: str, vocabulary: Vocabulary) -> str:
    if sort in vocabulary.texts:
        some = ", ".join(quote(text) for text in vocabulary.texts[sort][:TEXTS_NAMED])
        return f"{sort.upper()} is any text in quotes" + (f", such as {some}" if some else "")
    return f"{sort.upper()} is one of {', '.join(vocabulary.sorts[sort])}"


def _call(name: str, arguments: Sequence[str]) -> str:
    return f"{name}({', '.join(arguments)})"


def _kept(ruleset: RuleSet | None) -> list[str]:
    lines = []
    for rule in ruleset.rules if ruleset else ():
        found = ruleset.provenance.get(rule.name) if ruleset else None
        figures = []
        if found and found.precision is not None:
            figures.append(f"precision {found.precision:.2f}")
        if found and found.lift is not None:
            figures.append(f"lift {found.lift:+.4f}")
        if found and found.firings is not None:
            figures.append(f"{found.firings} firings")
        lines.append(print_rule(rule) + (f"  # {', '.join(figures)}" if figures else ""))
    return lines
