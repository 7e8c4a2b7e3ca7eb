"""The built-in learner: a beam search over literals for each action, then a greedy cover.

A body is worth its evidence: with n firings of mean outcome m and standard error e, the *bound* is m − 2e, and the
search maximises bound · √n. The plain mean would find the one lucky step, and n · bound would find the vaguest body
that is still positive. Every literal has its price, numbers the highest (`nser.induce.literals`). Bodies are then
made simpler (`nser.induce.simpler`): a literal that does not change what the rule fires on, or hardly raises its worth,
is not part of the rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nser.grounding.vocabulary import ACTION_IS
from nser.induce.evidence import Evidence
from nser.induce.literals import Literals, candidate_literals
from nser.induce.naming import rule_name
from nser.induce.simpler import Stratum, raw_worth, simpler
from nser.rules.printer import print_rule
from nser.rules.ruleset import RuleSet
from nser.rules.syntax import GOOD, VARIABLES, And, Atom, Constant, Formula, Rule, Truth, Variable
from nser.rules.verdict import Verdict
from nser.rules.walk import renamed

POOL = 12  # bodies of each action that go into the cover
ALIKE = 0.8  # share of their joint firings that two bodies of one action have in common when they are one rule

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Body:
    """Columns of the literal table, an action (or None) and the rows on which all hold."""

    columns: tuple[int, ...]
    action: str | None
    fires: Mask
    worth: float


class SymbolicProposer:
    """Proposes rules from the shown episodes; deterministic, needs no model."""

    name = "symbolic"
    rounds = 0
    guesses = False  # its cuts were found on the shown episodes

    def propose(self, evidence: Evidence, previous: RuleSet | None = None) -> str:
        """Rules in the surface language, best first; empty where nothing has evidence. Always from scratch."""
        del previous
        bodies, literals = search(evidence)
        settings = evidence.settings
        chosen = greedy_cover(bodies, _shown(evidence), settings.max_rules, settings.min_firings)
        taken: set[str] = set()
        lines = []
        for body in chosen:
            formulas = [literals[column] for column in body.columns]
            name = rule_name(formulas, body.action, taken)
            lines.append(print_rule(_rule(name, formulas, body.action, evidence.vocabulary.sort)))
        return "\n".join(lines)

    def repair(self, evidence: Evidence, refused: Sequence[Verdict], kept: RuleSet | None = None) -> str:
        """Nothing: it would find the same again."""
        del evidence, refused, kept
        return ""


def _shown(evidence: Evidence) -> NDArray[np.float64]:
    """Outcomes with the held-out rows blanked as NaN, so that nothing can be learnt from them by mistake."""
    return np.where(evidence.held, np.nan, evidence.outcomes)


def search(evidence: Evidence) -> tuple[list[Body], tuple[Formula, ...]]:
    """The best bodies of every action over the shown rows, and the literals that their columns name."""
    shown = ~evidence.held
    table = candidate_literals(evidence.trajectories, evidence.vocabulary)
    actions = evidence.vocabulary.actions
    taken = evidence.trajectories.actions.reshape(len(shown), -1)
    found: list[Body] = []
    for number, action in enumerate(actions) if actions else [(0, None)]:
        rows = shown & (taken[:, 0] == number) if actions else shown
        if rows.sum() >= evidence.settings.min_firings:
            found += _beam(table, rows, action, evidence)
    return found, table.formulas


def _beam(table: Literals, rows: Mask, action: str | None, evidence: Evidence) -> list[Body]:
    """Bodies of at most `max_literals` literals for one action, made simple, the worthiest first."""
    settings = evidence.settings
    stratum = Stratum(table, rows, evidence.outcomes, settings.min_firings)
    beam: dict[tuple[int, ...], Mask] = {(): stratum.fires(())}
    best: dict[bytes, tuple[float, tuple[int, ...]]] = {}  # by the kinds of rows on which a body fires
    for _ in range(settings.max_literals + 1):
        scored = []
        worths = stratum.worth(list(beam), np.stack(list(beam.values()))).tolist()
        for (columns, fires), worth in zip(beam.items(), worths, strict=True):
            key = fires.tobytes()
            if key not in best or (worth > best[key][0] and len(columns) <= len(best[key][1])):
                best[key] = (worth, columns)
                scored.append((columns, fires))
        beam = _extend(scored, stratum, settings.beam)
        if not beam:
            break
    bodies = {}
    for worth, columns in sorted(best.values(), key=lambda item: (-item[0], len(item[1])))[: 4 * POOL]:
        if worth > 0:
            short = simpler(columns, stratum)
            if short not in bodies:
                inside = stratum.fires(short)
                fires = np.zeros(len(rows), np.bool_)
                fires[rows] = inside[stratum.kinds]
                bodies[short] = Body(short, action, fires, float(stratum.worth([short], inside[None])[0]))
                if len(bodies) == POOL:
                    break
    return list(bodies.values())


def _extend(
    scored: Sequence[tuple[tuple[int, ...], Mask]], stratum: Stratum, width: int
) -> dict[tuple[int, ...], Mask]:
    """The `width` worthiest bodies one literal longer."""
    if not scored or not stratum.inside.shape[1]:
        return {}
    worth = stratum.extended([columns for columns, _ in scored], np.stack([mask for _, mask in scored]))
    order = np.argsort(-worth, axis=None, kind="stable")[: 4 * width]
    longer: dict[tuple[int, ...], Mask] = {}
    for place in order.tolist():
        body, column = divmod(place, worth.shape[1])
        if not math.isfinite(worth[body, column]) or len(longer) == width:
            break
        columns, mask = scored[body]
        extended = tuple(sorted((*columns, column)))
        if extended not in longer:
            longer[extended] = mask & stratum.inside[:, column]
    return longer


def greedy_cover(bodies: Sequence[Body], outcomes: NDArray[np.float64], most: int, least: int) -> list[Body]:
    """Bodies in the order of what each adds: n · bound over the rows that no earlier one fires on.

    A body that fires nearly on the rows of an earlier one for the same action is the same rule again, and left out.
    """
    free = np.isfinite(outcomes)
    chosen: list[Body] = []
    rest = [(body, _gain(body, free, outcomes, least)) for body in bodies]
    while rest and len(chosen) < most:
        best = int(np.argmax([gain for _, gain in rest]))
        body, gain = rest.pop(best)
        if gain <= 0:
            break
        chosen.append(body)
        claimed = body.fires & free
        free &= ~body.fires
        rest = [
            (other, _gain(other, free, outcomes, least) if (other.fires & claimed).any() else gain)
            for other, gain in rest
            if other.action != body.action or not _alike(other.fires, body.fires)
        ]
    return chosen


def _gain(body: Body, free: Mask, outcomes: NDArray[np.float64], least: int) -> float:
    """n · bound over the free rows on which a body fires."""
    new = outcomes[body.fires & free]
    sums = np.array([len(new), new.sum(), (new**2).sum()])
    return float(raw_worth(sums, least)) * np.sqrt(len(new)) if len(new) else -np.inf


def _alike(one: Mask, other: Mask) -> bool:
    return bool((one & other).sum() >= ALIKE * (one | other).sum())


def _rule(name: str, formulas: Sequence[Formula], action: str | None, sort: str) -> Rule:
    variable = VARIABLES[sort]
    step = Variable(variable)
    parts = [renamed(formula, "t", variable) for formula in formulas]
    if action is not None:
        parts.append(Atom(ACTION_IS, (step, Constant(action))))
    body = Truth(True) if not parts else parts[0] if len(parts) == 1 else And(tuple(parts))
    return Rule(name, body, Atom(GOOD, (step,)), variable=variable, sort=sort)
