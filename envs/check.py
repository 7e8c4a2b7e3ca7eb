"""Does a vocabulary say anything of its environment? Random play tells which predicates never change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from nser.envs.make import vocabulary_of
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

    def __str__(self) -> str:
        more = f" and {len(self.atoms) - SHOWN} more" if len(self.atoms) > SHOWN else ""
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.kind}: {', '.join(self.atoms[:SHOWN])}{more}{detail}; {ADVICE[self.kind]}"


def check_vocabulary(
    env: gymnasium.Env[Any, Any], steps: int = 2000, *, vocabulary: Vocabulary | None = None, seed: int = 0
) -> list[Finding]:
    """Play `steps` random actions and report every predicate that random play says nothing by.

    Truths are reported that are never or always above 1/2, or equal to another one on every step; numbers that
    are constant or leave their declared bounds; and whatever raises `DegreeError`. Atoms of one predicate with
    the same fate share a finding. `vocabulary` is the environment's own by default. An empty list is praise;
    a finding is a hint: random play never opens some doors.
    """
    vocabulary = vocabulary or vocabulary_of(env)
    played = random_steps(env, steps, seed)
    fates: dict[tuple[Kind, str, str], list[str]] = defaultdict(list)
    twins: dict[bytes, list[str]] = defaultdict(list)
    for atom in vocabulary.ground_atoms(("truth", "number"), ("state", "action", "transition")):
        truth = vocabulary.predicates[atom.predicate].signature.kind == "truth"
        try:
            values = (vocabulary.degrees if truth else vocabulary.numbers)(atom, played)
        except DegreeError as error:
            fates["broken", atom.predicate, f"{error.value:g} at row {error.row}"].append(written(atom))
            continue
        for kind, detail in _truth_fates(values) if truth else _number_fates(vocabulary, atom, values):
            fates[kind, atom.predicate, detail].append(written(atom))
        if truth and 0 < int((values > 0.5).sum()) < len(values):
            twins[values.numpy().tobytes()].append(written(atom))
    findings = [Finding(kind, tuple(atoms), detail) for (kind, _, detail), atoms in fates.items()]
    return findings + [Finding("identical", tuple(atoms)) for atoms in twins.values() if len(atoms) > 1]


def random_steps(env: gymnasium.Env[Any, Any], steps: int, seed: int = 0) -> Steps:
    """`steps` transitions of random play, as the evaluator reads them."""
    observations, actions, episodes = [], [], []
    env.action_space.seed(seed)
    observation, _ = env.reset(seed=seed)
    episode = 0
    for _ in range(steps):
        action = env.action_space.sample()
        observations.append(_row(env.observation_space, observation))
        actions.append(np.asarray(action))
        episodes.append(episode)
        observation, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            observation, _ = env.reset()
            episode += 1
    return Steps(
        torch.as_tensor(np.array(observations, dtype=np.float32)),
        torch.as_tensor(np.array(actions)),
        torch.as_tensor(episodes),
    )


def _row(space: spaces.Space[Any], observation: Any) -> Any:
    """One observation as a row of numbers, in a layout that automatic vocabularies read."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        return spaces.flatten(space, observation)
    return np.ravel(observation)


def _truth_fates(degrees: Tensor) -> Iterable[tuple[Kind, str]]:
    true = degrees > 0.5
    if not true.any():
        yield "never true", ""
    elif true.all():
        yield "always true", ""


def _number_fates(vocabulary: Vocabulary, atom: Atom, values: Tensor) -> Iterable[tuple[Kind, str]]:
    signature = vocabulary.predicates[atom.predicate].signature
    low, high = float(values.min()), float(values.max())
    if low == high:
        yield "constant", f"{low:g}"
    slack = 1e-6 * max(abs(low), abs(high), 1.0)  # bounds are float32 in most spaces
    below = signature.low is not None and low < signature.low - slack
    above = signature.high is not None and high > signature.high + slack
    if below or above:
        yield "out of bounds", f"seen {low:g} to {high:g}, declared {signature.low} to {signature.high}"
