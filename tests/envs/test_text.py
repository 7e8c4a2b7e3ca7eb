"""Games and tasks in words: moves in free text, rewards, seeds, players and their transcripts."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from nser.envs.errors import NoVocabularyError
from nser.envs.make import make_env, vocabulary_of
from nser.envs.sokoban_levels import LevelError
from nser.envs.symbolic import IN_WORDS
from nser.envs.text_arithmetic import Arithmetic, arithmetic_task, format_ok, is_exact
from nser.envs.text_game import TextGame, move_in
from nser.envs.text_lake import FrozenLakeText
from nser.envs.text_play import play_text, random_player, scripted_player
from nser.envs.text_sokoban import SokobanText
from nser.scorers.rollouts import RolloutScorer
from tests.grounding.test_transcripts import holds

MOVES = ("left", "down", "right", "up")
GAMES: tuple[Callable[[], TextGame], ...] = (FrozenLakeText, SokobanText)


@pytest.mark.parametrize(
    ("text", "move"),
    [
        ("<action>up</action>", "up"),
        ("<move> Down! </move>", "down"),
        ("left, no: <action>left</action> or <action>up</action>", "up"),
        ("Action: right.", "right"),
        ("I could go left.\n**Action:** right", "right"),
        ("right", "right"),
        ("right and right again", "right"),
        ("left or right", None),
        ("<action>left or right</action> so left", None),
        ("<action>jump</action> left", None),
        ("upstairs", None),
        ("", None),
    ],
)
def test_moves_in_free_text(text: str, move: str | None) -> None:
    assert move_in(text, MOVES) == move


@pytest.mark.parametrize("env_id", IN_WORDS)
def test_gymnasium_finds_nothing_wrong(env_id: str) -> None:
    env = make_env(env_id).unwrapped
    check_env(env, skip_render_check=True)
    assert make_env(env_id, render_mode="ansi").unwrapped.render()
    with pytest.raises(NoVocabularyError):
        vocabulary_of(env)


@pytest.mark.parametrize("make", [*GAMES, Arithmetic])
@given(text=st.text(max_size=40))
@settings(deadline=None, max_examples=15)
def test_any_text_is_answered_within_the_space(make: Callable[[], gymnasium.Env], text: str) -> None:
    env = make()
    observation, _ = env.reset(seed=1)
    assert observation in env.observation_space
    told, reward, _, _, info = env.step(text)
    assert told in env.observation_space
    assert np.isfinite(float(reward))
    assert isinstance(info["is_success"], bool)


@pytest.mark.parametrize("make", GAMES)
def test_what_is_no_move_costs_a_turn_and_changes_nothing(make: Callable[..., TextGame]) -> None:
    game = make(max_turns=3)
    game.reset(seed=3)
    before = game.picture()
    for turn in range(3):
        told, reward, over, cut, info = game.step("let me see")
        assert told.startswith("Invalid action: say one of")
        assert told.endswith(before)
        assert (reward, over, cut, info["invalid_actions"]) == (0.0, False, turn == 2, turn + 1)


@pytest.mark.parametrize("make", GAMES)
@pytest.mark.parametrize("seed", range(5))
def test_the_solution_wins_and_none_is_shorter_by_its_own_moves(make: Callable[[], TextGame], seed: int) -> None:
    game = make()
    game.reset(seed=seed)
    way = game.solution()
    assert way
    for left, move in enumerate(way):
        assert game.solution() == way[left:] or len(game.solution() or []) == len(way) - left
        _, reward, over, _, info = game.step(move)
    assert over
    assert info["is_success"]
    assert reward > 0
    assert game.solution() == []


@pytest.mark.parametrize("make", [*GAMES, Arithmetic])
def test_a_seed_and_the_same_words_give_the_same_game(make: Callable[[], Any]) -> None:
    one, other = (play_text(env, scripted_player(env, 0.5, 0.2, seed=9), 4) for env in (make(), make()))
    assert one == other
    assert one != play_text(make(), scripted_player(make(), 0.5, 0.2, seed=9), 5)


def test_a_hole_ends_the_game_without_a_reward() -> None:
    game = FrozenLakeText(frozen=0.4)
    endings = [play_text(game, random_player(game, seed), seed) for seed in range(12)]
    fell = [one for one in endings if "You fell into a hole." in one.turns[-1].text]
    assert fell
    assert all(one.reward == 0 and not one.metadata["success"] for one in fell)
    assert all(holds("reached_goal(r)", one) == [one.reward == 1] for one in endings)


def test_slippery_ice_leads_aside() -> None:
    game = FrozenLakeText(slippery=True, max_turns=100)
    longer = 0
    for seed in range(6):
        game.reset(seed=seed)
        shortest = len(game.solution() or [])
        longer += len(play_text(game, scripted_player(game), seed).own) > shortest
    assert longer >= 3


def test_sokoban_pays_what_sokoban_pays() -> None:
    game = SokobanText(level="######\n#@$ .#\n######")
    won = play_text(game, scripted_player(game), 0)
    assert won.reward == pytest.approx(-0.1 - 0.1 + 1 + 10)
    assert "You push a box." in won.turns[2].text
    blocked = play_text(game, lambda messages: "up", 0)
    assert "The way is blocked." in blocked.turns[2].text
    assert blocked.metadata["truncated"]
    with pytest.raises(LevelError):
        SokobanText(size=3)


def test_a_box_in_a_corner_has_no_solution() -> None:
    game = SokobanText(level="######\n#$ @.#\n######")
    game.reset(seed=0)
    assert game.solution() is None


@pytest.mark.parametrize("arguments", [{"size": 1}, {"frozen": 0.0}, {"max_turns": 0}])
def test_lakes_that_can_not_be(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="found"):
        FrozenLakeText(**arguments)


@pytest.mark.parametrize(
    ("answer", "right"),
    [("16", True), ("16.0", True), ("$16$", True), ("32/2", True), ("+16", True), ("1,6", False), ("-16", False),
     ("16 apples", False), ("1/0", False), ("__import__('os')", False), ("9" * 50, False)],
)  # fmt: skip
def test_numbers_are_compared_exactly(answer: str, right: bool) -> None:
    assert is_exact(f"<answer>{answer}</answer>", 16) == right


def test_thousands_and_fractions() -> None:
    assert is_exact("Answer: 1,234", 1234)
    assert is_exact("Answer: -1,234,567.5", Fraction(-2469135, 2))
    assert not is_exact("Answer: 12,34", 1234)
    assert not is_exact("<answer>16</answer><answer>16</answer>", 16)
    assert format_ok("<answer>x</answer>")
    assert not format_ok("16")


def test_tasks_follow_from_their_generator_and_their_text_tells_the_answer() -> None:
    for seed in range(20):
        task = arithmetic_task(np.random.default_rng(seed), 4)
        assert task == arithmetic_task(np.random.default_rng(seed), 4)
        asked = task.prompt.splitlines()[0].removeprefix("What is ").removesuffix("?")
        assert set(asked) <= set("0123456789+-*() ")
        assert eval(asked, {"__builtins__": {}}) == task.answer  # worked out from the left, as the brackets say


def test_arithmetic_tells_right_wrong_and_formless_apart() -> None:
    env = Arithmetic()
    env.reset(seed=2)
    right = env.task.answer
    for text, reward, told in (
        (f"<answer>{right}</answer>", 1.0, "Correct."),
        (f"<answer>{right + 1}</answer>", 0.0, "Wrong."),
        (f"{right}", 0.0, "Invalid input"),
    ):
        env.reset(seed=2)
        observation, found, over, _, info = env.step(text)
        assert observation.startswith(told)
        assert (found, over, info["answer_format_ok"]) == (reward, True, "<answer>" in text)


def test_rules_judge_what_is_played() -> None:
    from nser.rules.parse import parse_rules

    rules = parse_rules(
        "rule short: forall r in rollout: reached_goal(r) & turns(r) < 8 -> good(r)\n"
        "rule lost [0.5]: forall u in turn: invalid_action(u) & next(invalid_action(u+1)) -> good(u)"
    ).rules
    game = FrozenLakeText()
    good = play_text(game, scripted_player(game), 1)
    bad = play_text(game, lambda messages: "hm", 1)
    assert RolloutScorer(rules).score([good, bad]).tolist() == pytest.approx([1.0, 0.5])
