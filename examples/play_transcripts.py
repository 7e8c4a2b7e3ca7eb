"""Text games played by scripted players, written as chat transcripts: how `transcripts.jsonl` beside this was made.

    python examples/play_transcripts.py examples/transcripts.jsonl

Twelve frozen lakes and twelve sums, each by five players of different skill, some of whom talk without making a move.
To play with a model of your own put a function in the players' place that takes the messages so far and returns a text.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from nser.envs.text_arithmetic import Arithmetic
from nser.envs.text_lake import FrozenLakeText
from nser.envs.text_play import play_text, scripted_player
from nser.files import write_text

PLAYERS = ((1.0, 0.0), (1.0, 0.5), (0.9, 0.0), (0.8, 0.5), (0.5, 0.0))  # skill, blunders


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--games", type=int, default=12, help="lakes, and as many sums")
    arguments = parser.parse_args()
    lines = []
    for seed in range(arguments.games):
        for env in (FrozenLakeText(max_turns=8), Arithmetic()):
            for number, (skill, blunders) in enumerate(PLAYERS):
                speaker = scripted_player(env, skill, blunders, seed=len(PLAYERS) * seed + number)
                lines.append(json.dumps(play_text(env, speaker, seed).as_dict()))
    write_text(arguments.output, "\n".join(lines) + "\n")
    won = sum(json.loads(line)["success"] for line in lines)
    print(f"{len(lines)} transcripts, {won} of them won, in {arguments.output}")


if __name__ == "__main__":
    main()
