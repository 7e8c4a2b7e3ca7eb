"""Games that are played in words: a picture in signs, a move in free text, an answer.

What a language model writes is read for a move (`move_in`); text without one, or with two different ones, is answered
with "Invalid action", counted, and costs a turn but changes nothing.
"""

from __future__ import annotations

import re
import string
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import gymnasium
from gymnasium import spaces

LONGEST = 4_000  # characters of an observation or an action
CHARACTERS = string.printable
_TAG = re.compile(r"<(?:action|move)>(.*?)</(?:action|move)>", re.DOTALL | re.IGNORECASE)
_LINE = re.compile(r"^[ \t>*#_]*(?:action|move)[*_]*[ \t]*:(.*)$", re.MULTILINE | re.IGNORECASE)


def move_in(text: str, moves: Sequence[str]) -> str | None:
    """The move that a text asks for; None where it asks for none, or leaves open which.

    The last `<action>…</action>` counts, else the last line `Action: …`, else the whole text; there one of the moves
    must stand as a word, and no other.

    >>> moves = ("left", "right")
    >>> move_in("Not left. <action>Right</action>", moves), move_in("left or right?", moves), move_in("Go left!", moves)
    ('right', None, 'left')
    """
    marked = _TAG.findall(text) or _LINE.findall(text)
    words = re.findall(r"\w+", (marked[-1] if marked else text).lower())
    named = {word for word in words if word in moves}
    return named.pop() if len(named) == 1 else None


class TextGame(gymnasium.Env[str, str]):
    """What all games in words share; a game says how it begins, what a move does and how it looks.

    Observations and actions are texts. The first observation explains the game. `info` holds `is_success` and
    `invalid_actions`, how many there were so far. Everything is determined by the seed of the reset and the actions.

    - `name`, `moves`, `rules`: what the game is called, the words for its moves, and what the player is told;
    - `max_turns`: turns until truncation, 1 or more.
    """

    metadata = {"render_modes": ["ansi"]}  # noqa: RUF012  gymnasium's own way
    name: str
    moves: tuple[str, ...]
    rules: str

    def __init__(self, max_turns: int, render_mode: str | None = None) -> None:
        if max_turns < 1:
            raise ValueError(f"found max_turns {max_turns}, expected 1 or more")
        self.max_turns, self.render_mode = max_turns, render_mode
        self.observation_space = spaces.Text(LONGEST, min_length=0, charset=CHARACTERS)
        self.action_space: spaces.Space[Any] = spaces.Text(LONGEST, min_length=0, charset=CHARACTERS)
        self.turns = self.invalid_actions = 0

    @property
    @abstractmethod
    def solved(self) -> bool:
        """Whether the game is won."""

    @abstractmethod
    def picture(self) -> str:
        """How it looks now, in signs."""

    @abstractmethod
    def solution(self) -> list[str] | None:
        """A shortest way to win from here, in moves; None where there is none."""

    @abstractmethod
    def _begin(self) -> None:
        """A new game, from `self.np_random`."""

    @abstractmethod
    def _move(self, number: int) -> tuple[float, bool, str]:
        """Do the move of this number; the reward, whether the game is over, and a sentence to say."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """A new game; the observation is the rules and how it looks. No options are known."""
        super().reset(seed=seed)
        self.turns = self.invalid_actions = 0
        self._begin()
        asked = f"Say one of {', '.join(self.moves)}, as in <action>{self.moves[0]}</action>."
        return f"{self.rules}\n{asked}\n\n{self.picture()}", self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Read a move out of the text and do it."""
        self.turns += 1
        found = move_in(str(action), self.moves)
        if found is None:
            self.invalid_actions += 1
            reward, over, told = 0.0, False, f"Invalid action: say one of {', '.join(self.moves)}."
        else:
            reward, over, told = self._move(self.moves.index(found))
        cut = not over and self.turns >= self.max_turns
        return f"{told}\n{self.picture()}", reward, over, cut, self._info()

    def render(self) -> Any:
        """How it looks, for the render mode "ansi"."""
        return self.picture() if self.render_mode == "ansi" else None

    def _info(self) -> dict[str, Any]:
        return {"is_success": self.solved, "invalid_actions": self.invalid_actions}
