"""Declaring predicates over rollouts and turns: a function of one of them, with its sorts and a docstring.

>>> from nser.grounding.text_steps import text_steps
>>> from nser.grounding.vocabulary import Vocabulary, written
>>> @rollout_predicate("text", example='apologises(r, "sorry")')
... def apologises(rollout: Transcript, word: str) -> bool:
...     "The agent says this word of regret."
...     return word in rollout.said.lower()
>>> @turn_number(unit="lines", example="lines(u) > 3")
... def lines(turn: Turn) -> float:
...     "Lines of this turn."
...     return turn.text.count("\\n") + 1
>>> manners = Vocabulary("manners", (apologises, lines), texts={"text": ("sorry",)})
>>> rollouts = [Transcript.of_messages([{"role": "assistant", "content": text}]) for text in ("Sorry.", "No.")]
>>> atom = manners.about("rollout").ground_atoms()[0]
>>> written(atom), manners.degrees(atom, text_steps(rollouts, "rollout")).tolist()
('apologises(t, "sorry")', [1.0, 0.0])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nser.grounding.declare import Declares, declaration
from nser.grounding.steps import Steps
from nser.grounding.text_steps import items_of
from nser.grounding.transcripts import Transcript, Turn
from nser.rules.signature import PredicateSignature, Scope


@dataclass(frozen=True, slots=True)
class EachItem:
    """Asks a function of a rollout or turn, and of constants, about one after the other.

    It answers with true or false, a degree in [0, 1], or a number.
    """

    function: Callable[..., Any]

    def __call__(self, steps: Steps, *constants: str) -> Tensor:
        """[T] its answers as numbers."""
        items = items_of(steps, getattr(self.function, "__name__", "a predicate"))
        return torch.tensor([float(self.function(item, *constants)) for item in items])


def rollout_predicate(*sorts: str, example: str = "", name: str | None = None, scope: Scope = "state") -> Declares:
    """Declare a truth predicate of a `Transcript`; see `nser.grounding.declare.predicate`.

    `sorts` are those of the arguments after the rollout; `r` is the rollout in `example`. The scope "transition" is
    for what tells the outcome itself: people may write it, learners don't, for it explains no reward.
    """
    return declaration(PredicateSignature(name or "", sorts, scope=scope, over="rollout"), example, EachItem)


def turn_predicate(*sorts: str, example: str = "", name: str | None = None) -> Declares:
    """Declare a truth predicate of a `Turn`; `u` is the turn in `example`."""
    return declaration(PredicateSignature(name or "", sorts, over="turn"), example, EachItem)


def rollout_number(
    *sorts: str, unit: str, example: str = "", low: float | None = None, high: float | None = None
) -> Declares:
    """Declare a number of a `Transcript` in `unit`, within [low, high] where they are known."""
    signature = PredicateSignature("", sorts, "number", "state", "", unit, low, high, "rollout")
    return declaration(signature, example, EachItem)


def turn_number(
    *sorts: str, unit: str, example: str = "", low: float | None = None, high: float | None = None
) -> Declares:
    """Declare a number of a `Turn` in `unit`, within [low, high] where they are known."""
    return declaration(PredicateSignature("", sorts, "number", "state", "", unit, low, high, "turn"), example, EachItem)


__all__ = ["Transcript", "Turn", "rollout_number", "rollout_predicate", "turn_number", "turn_predicate"]
