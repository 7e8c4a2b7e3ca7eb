"""Episodes as short texts: what a language model is shown of a trajectory.

A step is an *event* where a predicate over the state flips that seldom does, where a reward comes, or where the episode
ends. An event is told in full: the state, the action, what changed. The steps between two events are told by their
actions alone, run-length compressed. Best and worst episodes stand against each other, as many as fit into a budget
of tokens.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from nser.experience.trajectories import Trajectories
from nser.grounding.vocabulary import Vocabulary, written
from nser.induce.splits import split_return
from nser.rules.syntax import Atom

CountTokens = Callable[[str], int]
CHARACTERS_PER_TOKEN = (
    3.0  # symbols and names take more tokens than prose; too low a guess wastes room, too high overflows
)
RUNS_SHOWN = 8  # runs of equal actions between two events that are told in order
COMMON = 0.2  # a predicate that flips on more of the steps than this is no news by itself
NUMBERS_SHOWN = 8  # numeric features told at an event; a long vector is told by its first ones


def estimate_tokens(text: str) -> int:
    """About how many tokens a text takes where the model's tokenizer is not at hand; errs on the high side."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


@dataclass(frozen=True)
class Contrast:
    """Best and worst episodes as texts, the best of the best first."""

    good: tuple[str, ...]
    bad: tuple[str, ...]


def contrast(
    trajectories: Trajectories,
    vocabulary: Vocabulary,
    budget: int,
    count: CountTokens = estimate_tokens,
) -> Contrast:
    """As many of the best and of the worst episodes, in turns, as `budget` tokens hold; at least one of each.

    Among bad episodes of equal return the longest tell most; among good ones the shortest. A single episode that is
    longer than its share is cut in the middle, where least happens.
    """
    returns, lengths = trajectories.returns, trajectories.lengths
    best = np.lexsort((lengths, -returns))
    worst = np.lexsort((-lengths, returns))
    split = split_return(returns)
    if split is None:
        split = float(returns.mean()) if len(returns) else 0.0
    good = [int(i) for i in best if returns[i] > split]
    bad = [int(i) for i in worst if returns[i] <= split]
    share = max(budget // 4, 1)
    rare = rare_atoms(trajectories, vocabulary)
    told: dict[str, list[str]] = {"good": [], "bad": []}
    left = budget
    for kind, number in in_turns(good, bad):
        start = int(trajectories.starts[number])
        episode = trajectories[start : start + int(lengths[number])]
        text = _cut(episode_lines(episode, vocabulary, rare), min(share, left) if told[kind] else share, count)
        cost = count(text)
        if told[kind] and cost > left:
            break
        told[kind].append(text)
        left -= cost
    return Contrast(tuple(told["good"]), tuple(told["bad"]))


def rare_atoms(trajectories: Trajectories, vocabulary: Vocabulary) -> frozenset[str]:
    """The predicates over the state whose flips are events: those that change seldom, or all where none does."""
    steps = trajectories.steps()
    atoms = vocabulary.ground_atoms(("truth",), ("state",))
    same = (steps.episodes[1:] == steps.episodes[:-1]).numpy()
    rates = {}
    for atom in atoms:
        truth = vocabulary.degrees(atom, steps).numpy() > 0.5
        rates[_short(atom)] = float((truth[1:] != truth[:-1])[same].mean()) if same.any() else 0.0
    rare = frozenset(atom for atom, rate in rates.items() if rate <= COMMON)
    return rare or frozenset(rates)


def episode_lines(episode: Trajectories, vocabulary: Vocabulary, rare: frozenset[str]) -> list[str]:
    """One episode as lines: its return, the facts at the start, then events and what was done between them."""
    facts = _facts(episode, vocabulary)
    actions = _actions(episode, vocabulary)
    usual = float(episode.rewards[0])  # a constant reward, as in CartPole, is no event
    lines = [f"return {float(episode.rewards.sum()):.4g} after {len(episode)} steps", f"t0: {facts.at(0)}"]
    between: list[str] = []
    for row in range(len(episode)):
        flips = facts.flips(row)
        reward, last = float(episode.rewards[row]), row == len(episode) - 1
        rewarded = reward != 0 and (last or reward != usual)
        if not (last or rewarded or any(flip.removeprefix("~") in rare for flip in flips)):
            between.append(actions[row])
            continue
        if between:
            span = f"t{row - len(between)}" + (f"-{row - 1}" if len(between) > 1 else "")
            lines.append(f"{span}: {_compressed(between)}")
            between = []
        ending = _ending(episode, row) if last else ""
        told = [*flips, *([f"reward {reward:.3g}"] if rewarded else []), *([ending] if ending else [])]
        lines.append(f"t{row}: {facts.at(row)} | {actions[row]} => {', '.join(told)}")
    return lines


@dataclass(frozen=True)
class _Facts:
    """Truth [T + 1, P] of the atoms before every step and after the last, and numbers [T + 1, F]."""

    atoms: tuple[str, ...]
    truth: NDArray[np.bool_]
    features: tuple[str, ...]
    numbers: NDArray[np.float64]

    def at(self, row: int) -> str:
        held = [atom for atom, true in zip(self.atoms, self.truth[row], strict=True) if true]
        if held and row:
            return ", ".join(held)  # numbers are told at the start, and where nothing else tells states apart
        held += [f"{name} = {value:.3g}" for name, value in zip(self.features, self.numbers[row], strict=True)]
        return ", ".join(held) or "nothing holds"

    def flips(self, row: int) -> list[str]:
        changed = np.flatnonzero(self.truth[row] != self.truth[row + 1])
        return [("" if self.truth[row + 1, i] else "~") + self.atoms[i] for i in changed]


def _facts(episode: Trajectories, vocabulary: Vocabulary) -> _Facts:
    steps, after = episode.steps(), episode[len(episode) - 1 :].next_steps()

    def column(atom: Atom, truth: bool) -> NDArray:
        read = vocabulary.degrees if truth else vocabulary.numbers
        return np.append(read(atom, steps).numpy(), read(atom, after).numpy())

    atoms = vocabulary.ground_atoms(("truth",), ("state",))
    numbers = vocabulary.ground_atoms(("number",), ("state",))[:NUMBERS_SHOWN]
    rows = len(episode) + 1
    return _Facts(
        tuple(_short(atom) for atom in atoms),
        np.stack([column(a, True) > 0.5 for a in atoms], 1) if atoms else np.zeros((rows, 0), np.bool_),
        tuple(_short(atom) for atom in numbers),
        np.stack([column(a, False) for a in numbers], 1) if numbers else np.zeros((rows, 0)),
    )


def _actions(episode: Trajectories, vocabulary: Vocabulary) -> list[str]:
    if vocabulary.actions:
        return [vocabulary.actions[int(action)] for action in episode.actions.reshape(len(episode))]
    return ["(" + ", ".join(f"{value:.2g}" for value in np.atleast_1d(action)) + ")" for action in episode.actions]


def _short(atom: Atom) -> str:
    """`facing(key)`: the step is said once, at the head of the line."""
    return written(Atom(atom.predicate, atom.args[1:])).removesuffix("()")


def _compressed(actions: Sequence[str]) -> str:
    """Runs of equal actions in order; of a long aimless stretch only how often each was taken."""
    runs = [(action, len(list(run))) for action, run in groupby(actions)]
    if len(runs) > RUNS_SHOWN:
        return "in some order " + ", ".join(f"{action} x{times}" for action, times in Counter(actions).most_common())
    return ", ".join(action if times == 1 else f"{action} x{times}" for action, times in runs)


def _ending(episode: Trajectories, row: int) -> str:
    if episode.terminated[row]:
        return "the end"
    return "out of time" if episode.finished[row] else "still running"


def in_turns(good: Sequence[int], bad: Sequence[int]) -> Iterator[tuple[str, int]]:
    """One of the good ones, one of the bad ones, and so on, each with its side: `good` or `bad`."""
    for place in range(max(len(good), len(bad))):
        if place < len(good):
            yield "good", good[place]
        if place < len(bad):
            yield "bad", bad[place]


def _cut(lines: list[str], budget: int, count: CountTokens) -> str:
    """The lines joined; the middle is left out until the rest fits, the first two and the last one always stay."""
    if count("\n".join(lines)) <= budget:
        return "\n".join(lines)
    head, tail = lines[:2], lines[-1:]
    room = budget - count("\n".join([*head, *tail])) - 8
    for place, line in enumerate(reversed(lines[2:-1])):
        room -= count(line) + 1
        if room < 0:
            left_out = len(lines) - 3 - place
            return "\n".join([*head, f"({left_out} lines left out)", *lines[len(lines) - 1 - place : -1], *tail])
    return "\n".join(lines)
