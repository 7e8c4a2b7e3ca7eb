"""The literals that a symbolic learner may put into a body, with their truth in the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nser.experience.trajectories import Trajectories
from nser.grounding.vocabulary import Vocabulary
from nser.rules.syntax import Atom, Comparison, Formula, Not, Threshold

CUTS = 7  # thresholds tried for each numeric feature

# What a body's worth counts for with one more literal of a kind. Of bodies that fire alike the one with the fewest
# negations reads best. A cut of a number was chosen among many and fits chance better than a predicate does, so
# where there are predicates it has to raise the worth by half. Over five seeds of DoorKey-6x6 (24,000 steps, exploring
# by rules) success was .99 .93 .97 .83 .68 so, and .92 .95 .95 .91 .00 without numbers; at 0.8 they crowded out
# the predicates.
PLAIN, NEGATED, CUT, LONELY_CUT = 0.995, 0.98, 0.65, 0.98


@dataclass(frozen=True)
class Literals:
    """`L` literals and their crisp truth [N, L] in the data; no two columns are equal, none is constant.

    `prices` [L] are the factors by which each lessens what a body's worth counts for.
    """

    formulas: tuple[Formula, ...]
    truth: NDArray[np.bool_]
    prices: NDArray[np.float64]


def candidate_literals(trajectories: Trajectories, vocabulary: Vocabulary) -> Literals:
    """Every predicate over the state (and over a Box action) with its negation, and cuts of every number.

    A column that equals an earlier one says nothing new and is left out, so that of `door_open` and
    `~door_locked` the positive one, declared first, remains.
    """
    steps = trajectories.steps()
    plain: list[tuple[Formula, NDArray[np.bool_]]] = []
    negated: list[tuple[Formula, NDArray[np.bool_]]] = []
    cuts: list[tuple[Formula, NDArray[np.bool_]]] = []
    for atom in vocabulary.ground_atoms(("truth",), ("state",)):
        truth = vocabulary.degrees(atom, steps).numpy() > 0.5
        plain.append((atom, truth))
        negated.append((Not(atom), ~truth))
    for atom in vocabulary.ground_atoms(("number",), ("state", "action")):
        cuts.extend(_cuts(atom, vocabulary.numbers(atom, steps).numpy()))
    return _distinct(plain + negated + cuts, len(trajectories), CUT if plain else LONELY_CUT)


def _cuts(feature: Atom, values: NDArray) -> list[tuple[Formula, NDArray[np.bool_]]]:
    found: list[tuple[Formula, NDArray[np.bool_]]] = []
    for cut in _thresholds(values):
        found.append((Comparison(feature, "<", Threshold(cut, learnable=True)), values < cut))
        found.append((Comparison(feature, ">", Threshold(cut, learnable=True)), values > cut))
    return found


def _thresholds(values: NDArray) -> list[float]:
    """Middles between neighbouring values, at quantiles where there are many; to three figures, for readers."""
    distinct = np.unique(values)
    if len(distinct) < 2:
        return []
    middles = (distinct[1:] + distinct[:-1]) / 2
    if len(middles) > CUTS:
        wanted = np.quantile(values, np.linspace(0, 1, CUTS + 2)[1:-1])
        middles = middles[np.clip(np.searchsorted(distinct, wanted) - 1, 0, len(middles) - 1)]
    return sorted({float(f"{middle:.3g}") for middle in middles})


def _distinct(candidates: list[tuple[Formula, NDArray[np.bool_]]], rows: int, cut: float) -> Literals:
    seen: set[bytes] = set()
    formulas, columns, prices = [], [], []
    for formula, truth in candidates:
        key = np.packbits(truth).tobytes()
        if key in seen or truth.all() or not truth.any():
            continue
        seen.add(key)
        formulas.append(formula)
        columns.append(truth)
        prices.append(PLAIN if isinstance(formula, Atom) else NEGATED if isinstance(formula, Not) else cut)
    truth = np.stack(columns, 1) if columns else np.zeros((rows, 0), np.bool_)
    return Literals(tuple(formulas), truth, np.array(prices))
