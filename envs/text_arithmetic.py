"""A task with a verifiable answer: a small sum, one answer, an exact checker and a checker of the form.

>>> task = arithmetic_task(np.random.default_rng(0))
>>> print(task.prompt.splitlines()[0], task.answer)
What is (18 - 11) + 7? 14
>>> is_exact("7 and 7, so <answer>14</answer>", task.answer), is_exact("It is 14.", task.answer)
(True, False)
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from nser.envs.text_game import CHARACTERS, LONGEST
from nser.grounding.answers import answers_in

FORM = "Think step by step, then end with the number as in <answer>12</answer>."
LARGEST = 20  # of the numbers in a task
_SIGNS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}


@dataclass(frozen=True, slots=True)
class Task:
    """A question and its only answer."""

    prompt: str
    answer: int


def arithmetic_task(rng: np.random.Generator, numbers: int = 3) -> Task:
    """A sum of so many whole numbers from 2 to 20, worked from the left; the same for the same generator."""
    value = int(rng.integers(2, LARGEST + 1))
    written = str(value)
    for place in range(1, numbers):
        sign = str(rng.choice(list(_SIGNS)))
        other = int(rng.integers(2, LARGEST + 1))
        value = _SIGNS[sign](value, other)
        written = f"({written}) {sign} {other}" if place > 1 else f"{written} {sign} {other}"
    return Task(f"What is {written}?\n{FORM}", value)


def format_ok(text: str) -> bool:
    """Whether a text holds exactly one answer in a form that the checker finds."""
    return len(answers_in(text)) == 1


def is_exact(text: str, answer: int | Fraction) -> bool:
    """Whether the only answer of a text equals the right one as a number: 16, 16.0, +16 and 32/2 do, 1,6 does not."""
    found = answers_in(text)
    if len(found) != 1:
        return False
    return _number(found[0]) == answer


class Arithmetic(gymnasium.Env[str, str]):
    """One question, one answer, reward 1 for the right one and 0 otherwise.

    `info` holds `is_success`, `answer_format_ok` and, once answered, `answer`. Determined by the seed of the reset.

    - `numbers`: how many a question holds, 2 to 8.
    """

    metadata = {"render_modes": ["ansi"]}  # noqa: RUF012  gymnasium's own way
    name = "arithmetic"

    def __init__(self, numbers: int = 3, render_mode: str | None = None) -> None:
        if not 2 <= numbers <= 8:
            raise ValueError(f"found {numbers} numbers in a question, expected 2 to 8")
        self.numbers, self.render_mode = numbers, render_mode
        self.observation_space = spaces.Text(LONGEST, min_length=0, charset=CHARACTERS)
        self.action_space: spaces.Space[Any] = spaces.Text(LONGEST, min_length=0, charset=CHARACTERS)
        self.task = arithmetic_task(self.np_random, numbers)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """A new question."""
        super().reset(seed=seed)
        self.task = arithmetic_task(self.np_random, self.numbers)
        return self.task.prompt, {"is_success": False, "answer_format_ok": False}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Judge an answer."""
        right, fits = is_exact(str(action), self.task.answer), format_ok(str(action))
        told = "Correct." if right else "Wrong." if fits else "Invalid input: there is no answer in the form asked for."
        info = {"is_success": right, "answer_format_ok": fits, "answer": self.task.answer}
        return told, float(right), True, False, info

    def render(self) -> Any:
        """The question, for the render mode "ansi"."""
        return self.task.prompt if self.render_mode == "ansi" else None


def _number(text: str) -> Fraction | None:
    """A number as people write it; None for anything else. Texts are never run."""
    plain = text.strip().strip("$").replace(" ", "").removeprefix("+")
    groups = plain.split(".")[0].lstrip("-").split(",")
    if len(groups) > 1 and all(len(group) == 3 for group in groups[1:]) and 1 <= len(groups[0]) <= 3:
        plain = plain.replace(",", "")
    if not plain or len(plain) > 40 or set(plain) - set(string.digits + "-./"):
        return None
    try:
        return Fraction(plain)
    except (ValueError, ZeroDivisionError):
        return None
