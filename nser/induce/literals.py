"""The literals that a symbolic learner may put into a body, with their truth in the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nser.experience.trajectories import Trajectories
from nser.grounding.vocabulary import Vocabulary
from nser.rules.signature import Scope
from nser.rules.syntax import Atom, Comparison, Formula, Not, Threshold

CUTS = 7  # thresholds tried for each numeric feature


@dataclass(frozen=True)
class Literals:
    """`L` literals and their crisp truth [N, L] in the data; no two columns are equal, none is constant."""

    formulas: tuple[Formula, ...]
    truth: NDArray[np.bool_]


def candidate_literals(trajectories: Trajectories, vocabulary: Vocabulary) -> Literals:
    """Every predicate over the state (and over a Box action) with its negation, and cuts of every number.

    A column that equals an earlier one says nothing new and is left out, so that of `door_open` and
    `~door_locked` the positive one, declared first, remains.
    """
    steps = trajectories.steps()
    plain: list[tuple[Formula, NDArray[np.bool_]]] = []
    negated: list[tuple[Formula, NDArray[np.bool_]]] = []
    for atom in vocabulary.ground_atoms(("truth",), ("state",)):
        truth = vocabulary.degrees(atom, steps).numpy() > 0.5
        plain.append((atom, truth))
        negated.append((Not(atom), ~truth))
    scopes: tuple[Scope, ...] = ("action",) if plain else ("state", "action")
    for atom in vocabulary.ground_atoms(("number",), scopes):
        plain.extend(_cuts(atom, vocabulary.numbers(atom, steps).numpy()))
    return _distinct(plain + negated, len(trajectories))


def _cuts(feature: Atom, values: NDArray) -> list[tuple[Formula, NDArray[np.bool_]]]:
    found: list[tuple[Formula, NDArray[np.bool_]]] = []
    for cut in _thresholds(values):
        below = values < cut
        found.append((Comparison(feature, "<", Threshold(cut, learnable=True)), below))
        found.append((Comparison(feature, ">", Threshold(cut, learnable=True)), ~below))
    return found


def _thresholds(values: NDArray) -> list[float]:
    """Middles between neighbouring values where there are few, else quantiles; to three figures, for readers."""
    distinct = np.unique(values)
    if len(distinct) < 2:
        return []
    if len(distinct) <= CUTS + 1:
        middles = (distinct[1:] + distinct[:-1]) / 2
    else:
        middles = np.quantile(values, np.linspace(0, 1, CUTS + 2)[1:-1])
    return sorted({float(f"{middle:.3g}") for middle in middles})


def _distinct(candidates: list[tuple[Formula, NDArray[np.bool_]]], rows: int) -> Literals:
    seen: set[bytes] = set()
    formulas, columns = [], []
    for formula, truth in candidates:
        key = np.packbits(truth).tobytes()
        if key in seen or truth.all() or not truth.any():
            continue
        seen.add(key)
        formulas.append(formula)
        columns.append(truth)
    return Literals(tuple(formulas), np.stack(columns, 1) if columns else np.zeros((rows, 0), np.bool_))
