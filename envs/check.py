"""Does a vocabulary say anything of its environment? Random play tells which predicates never change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium
from torch import Tensor

from nser.envs.make import vocabulary_of
from nser.experience.record import record
from nser.grounding.errors import DegreeError
from nser.grounding.steps import Steps
from nser.grounding.vocabulary import Vocabulary, written
from nser.rules.syntax import Atom

Kind = Literal["never true", "always true", "identical", "constant", "out of bounds", "broken"]
ADVICE: dict[Kind, str] = {
    "never true": "no rule can use it on such data; longer or better play may reach it",
    "always true": "it tells nothing apart",
    "identical": "one of them is enough",
    "constant": "no threshold can split it",
    "out of bounds": "mend the declared bounds or the function",
    "broken": "mend the function or the observation it reads",
}
SHOWN = 6


@dataclass(frozen=True, slots=True)
class Finding:
    """Something odd about some atoms of a vocabulary; `detail` holds the numbers where there are any."""

    kind: Kind
    atoms: tuple[str, ...]
    detail: str = ""

    @property
    def advice(self) -> str:
        """What to do about it."""
        return ADVICE[self.kind]

    def as_dict(self) -> dict[str, Any]:
        """The finding as JSON values."""
        return {"kind": self.kind, "atoms": list(self.atoms), "detail": self.detail, "advice": self.advice}

    def __str__(self) -> str:
        more = f" and {len(self.atoms) - SHOWN} more" if len(self.atoms) > SHOWN else ""
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.kind}: {', '.join(self.atoms[:SHOWN])}{more}{detail}; {self.advice}"


def check_vocabulary(
    env: gymnasium.Env[Any, Any], steps: int = 2000, *, vocabulary: Vocabulary | None = None, seed: int = 0
) -> list[Finding]:
    """Play `steps` random actions and report every predicate that random play says nothing by.

    `vocabulary` is the environment's own by default. An empty list is praise; a finding is a hint: random play never
    opens some doors. See `check_steps`.
    """
    return check_steps(vocabulary or vocabulary_of(env), random_steps(env, steps, seed))


def check_steps(vocabulary: Vocabulary, steps: Steps) -> list[Finding]:
    """Report every predicate that says nothing of these transitions.

    Truths are reported that are never or always above 1/2; numbers that are constant or leave their declared
    bounds; two truths or two numbers that are equal on every step; and whatever raises. Atoms of one predicate with
    the same fate share a finding.
    """
    fates: dict[tuple[Kind, str, str], list[str]] = defaultdict(list)
    twins: dict[tuple[bool, bytes], list[str]] = defaultdict(list)
    for atom in vocabulary.ground_atoms(("truth", "number"), ("state", "action", "transition")):
        truth = vocabulary.predicates[atom.predicate].signature.kind == "truth"
        try:
            values = (vocabulary.degrees if truth else vocabulary.numbers)(atom, steps)
        except DegreeError as error:
            fates["broken", atom.predicate, f"{error.value:g} at row {error.row}"].append(written(atom))
            continue
        except Exception as error:  # a predicate is somebody's own function, and anything may come out of it
            fates["broken", atom.predicate, f"{type(error).__name__}: {error}"].append(written(atom))
            continue
        for kind, detail in _truth_fates(values) if truth else _number_fates(vocabulary, atom, values):
            fates[kind, atom.predicate, detail].append(written(atom))
        varies = 0 < int((values > 0.5).sum()) < len(values) if truth else bool((values != values[:1]).any())
        if varies:
            twins[truth, values.numpy().tobytes()].append(written(atom))
    findings = [Finding(kind, tuple(atoms), detail) for (kind, _, detail), atoms in fates.items()]
    return findings + [Finding("identical", tuple(atoms)) for atoms in twins.values() if len(atoms) > 1]


def random_steps(env: gymnasium.Env[Any, Any], steps: int, seed: int = 0) -> Steps:
    """`steps` transitions of random play, as the evaluator reads them."""
    return record(env, None, steps=steps, seed=seed).steps()


def _truth_fates(degrees: Tensor) -> Iterable[tuple[Kind, str]]:
    if not len(degrees):
        return  # nothing was played, so nothing is known
    true = degrees > 0.5
    if not true.any():
        yield "never true", ""
    elif true.all():
        yield "always true", ""


def _number_fates(vocabulary: Vocabulary, atom: Atom, values: Tensor) -> Iterable[tuple[Kind, str]]:
    if not len(values):
        return
    signature = vocabulary.predicates[atom.predicate].signature
    low, high = float(values.min()), float(values.max())
    if low == high:
        yield "constant", f"{low:g}"
    slack = 1e-6 * max(abs(low), abs(high), 1.0)  # bounds are float32 in most spaces
    below = signature.low is not None and low < signature.low - slack
    above = signature.high is not None and high > signature.high + slack
    if below or above:
        yield "out of bounds", f"seen {low:g} to {high:g}, declared {signature.low} to {signature.high}"
