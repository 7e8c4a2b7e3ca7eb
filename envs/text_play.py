"""Playing games in words: who speaks, and the transcript of it.

>>> from nser.envs.text_lake import FrozenLakeText
>>> game = FrozenLakeText(size=3)
>>> won = play_text(game, scripted_player(game), seed=1)
>>> won.reward, len(won.own), won.metadata["success"], won.group
(1.0, 4, True, 'frozen_lake-1')
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nser.envs.text_arithmetic import Arithmetic
from nser.envs.text_game import TextGame
from nser.grounding.transcripts import AGENT, Transcript

Speaker = Callable[[Sequence[Mapping[str, Any]]], str]
"""`speaker(messages) -> text`: the chat so far, in the form of OpenAI's messages, to the agent's next turn."""

BLUNDERS = ("Let me think about it.", "<action>jump</action>", "left or right, who knows")


def play_text(env: TextGame | Arithmetic, speaker: Speaker, seed: int) -> Transcript:
    """One game from its seed: observations are the user's turns, what the speaker says is the agent's.

    The transcript's group is name and seed of the game, so that several rollouts of one game are compared with each
    other; `metadata` tells success, truncation and what `info` held at the end.
    """
    observation, info = env.reset(seed=seed)
    messages: list[dict[str, Any]] = [{"role": "user", "content": observation}]
    total, over, cut = 0.0, False, False
    while not (over or cut):
        text = speaker(messages)
        messages.append({"role": AGENT, "content": text})
        observation, reward, over, cut, info = env.step(text)
        messages.append({"role": "user", "content": observation})
        total += reward
    told = {name: value for name, value in info.items() if name != "is_success"}
    return Transcript.of_messages(
        messages,
        round(total, 6),
        task=env.name,
        group=f"{env.name}-{seed}",
        metadata={"success": bool(info["is_success"]), "truncated": cut, **told},
    )


def scripted_player(env: TextGame | Arithmetic, skill: float = 1.0, blunders: float = 0.0, seed: int = 0) -> Speaker:
    """A player that looks into the game: right with probability `skill`, else at random.

    With probability `blunders` it says something that holds no move; its own generator makes it repeatable.
    """
    rng = np.random.default_rng(seed)

    def speak(messages: Sequence[Mapping[str, Any]]) -> str:
        del messages
        if rng.random() < blunders:
            return str(rng.choice(BLUNDERS))
        knows = rng.random() < skill
        if isinstance(env, Arithmetic):
            return f"I make it <answer>{env.task.answer + (0 if knows else int(rng.integers(1, 10)))}</answer>"
        way = env.solution() if knows else None
        move = way[0] if way else str(rng.choice(env.moves))
        return f"I go on. <action>{move}</action>"

    return speak


def random_player(env: TextGame, seed: int = 0) -> Speaker:
    """Any move, each with the same probability."""
    return scripted_player(env, skill=0.0, seed=seed)
