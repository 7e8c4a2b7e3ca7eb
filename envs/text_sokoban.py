"""Sokoban in words, on the levels of `nser.envs.sokoban`.

>>> game = SokobanText(level="######\\n#@$ .#\\n######")
>>> _ = game.reset(seed=0)
>>> game.solution()
['right', 'right']
>>> observation, reward, *_ = game.step("I push it: <action>right</action>")
>>> print(observation.splitlines()[0], round(reward, 1))
You push a box. -0.1
"""

from __future__ import annotations

from collections import deque
from typing import Any

from nser.envs.sokoban import Sokoban
from nser.envs.sokoban_vocabulary import ACTIONS
from nser.envs.text_game import TextGame

MAX_STATES = 100_000  # that a search for a solution looks at


class SokobanText(TextGame):
    """Push every box onto a target; rewards, levels and their limits are those of `nser.envs.sokoban.Sokoban`.

    - `size`, `boxes`: of random levels;
    - `level`: one level as text in their place.

    Raises `LevelError` for levels that can't be.
    """

    name = "sokoban"
    moves = ACTIONS
    rules = (
        "You (@, or + on a target) push boxes ($) onto the targets (.), where they look like *. # is a wall. Boxes "
        "can't be pulled, nor can two be pushed at once. Each turn you take one step."
    )

    def __init__(
        self,
        size: int = 6,
        boxes: int = 1,
        *,
        level: str | None = None,
        max_turns: int = 40,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_turns, render_mode)
        self._game = Sokoban(size, boxes, level=level, max_steps=max_turns + 1, render_mode="ansi")
        self._begin()

    @property
    def solved(self) -> bool:
        """Whether every box is on a target."""
        return self._game.solved

    def picture(self) -> str:
        """The level."""
        return str(self._game.render())

    def solution(self) -> list[str] | None:
        """A shortest solution; None where there is none, or none was found among the first 100,000 states."""
        level, start = self._game.level, self._game.state
        before: dict[Any, tuple[Any, str]] = {start: (None, "")}
        waiting = deque([start])
        while waiting and len(before) < MAX_STATES:
            state = waiting.popleft()
            agent, boxes = state
            if boxes <= level.targets:
                way = []
                while state != start:
                    state, move = before[state]
                    way.append(move)
                return way[::-1]
            for move, step in zip(self.moves, level.steps, strict=True):
                ahead, beyond = agent + step, agent + 2 * step
                moved = boxes
                if ahead in boxes and beyond not in boxes and beyond not in level.walls:
                    moved = boxes - {ahead} | {beyond}
                after = (ahead, moved)
                if ahead not in level.walls and ahead not in moved and after not in before:
                    before[after] = state, move
                    waiting.append(after)
        return None

    def _begin(self) -> None:
        self._game.reset(seed=int(self.np_random.integers(2**31)))

    def _move(self, number: int) -> tuple[float, bool, str]:
        agent, boxes = self._game.state
        _, reward, over, _, _ = self._game.step(number)
        after, moved = self._game.state
        told = "You push a box." if moved != boxes else "You take a step." if after != agent else "The way is blocked."
        return reward, over, "You solved it." if over else told
