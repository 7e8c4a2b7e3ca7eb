from __future__ import annotations

import pickle
from collections import deque
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.env_checker import check_env as check_env_for_sb3

from nser.envs.check import check_vocabulary
from nser.envs.errors import UnknownEnvironmentError
from nser.envs.make import make_env, register_envs, vocabulary_of
from nser.envs.seeding import EpisodeSeeds
from nser.envs.sokoban import Sokoban
from nser.envs.sokoban_levels import Level, LevelError, parse_level, random_level
from nser.envs.sokoban_vocabulary import ACTIONS, sokoban_vocabulary
from nser.grounding.steps import single_steps
from nser.rules.syntax import Atom, Constant, Variable

Place = tuple[int, int]
WAYS: tuple[Place, ...] = ((-1, 0), (1, 0), (0, -1), (0, 1))


def read(env: Sokoban) -> tuple[set[Place], set[Place], set[Place], Place]:
    """Walls, targets, boxes and agent, read off the picture made of signs."""
    rows = "\n".join(env._signs()).splitlines()
    at = {
        sign: {(r, c) for r, row in enumerate(rows) for c, cell in enumerate(row) if cell == sign} for sign in "#.+*$@"
    }
    (agent,) = at["@"] | at["+"]
    return at["#"], at["."] | at["+"] | at["*"], at["$"] | at["*"], agent


def slow_facts(env: Sokoban) -> dict[str, Any]:
    """Every fact by its name, looked up in the picture."""
    walls, targets, boxes, agent = read(env)
    near = {box: min(abs(box[0] - r) + abs(box[1] - c) for r, c in targets) for box in cells(env)}
    off = sorted(boxes - targets)
    facts: dict[str, Any] = {}
    for name, (dr, dc) in zip(ACTIONS, WAYS, strict=True):
        ahead, beyond = (agent[0] + dr, agent[1] + dc), (agent[0] + 2 * dr, agent[1] + 2 * dc)
        push = ahead in boxes and beyond not in walls | boxes
        facts |= {f"wall_{name}": ahead in walls, f"box_{name}": ahead in boxes, f"pushable_{name}": push}
        facts[f"nears_{name}"] = push and near[beyond] < near[ahead]
        facts[f"scores_{name}"] = push and beyond in targets and ahead not in targets
        facts[f"spoils_{name}"] = push and ahead in targets and beyond not in targets
        facts[f"buries_{name}"] = push and dead(beyond, walls, targets)
        facts[f"toward_{name}"] = False
    if off:
        closest = min(off, key=lambda box: (abs(box[0] - agent[0]) + abs(box[1] - agent[1]), box))
        dr, dc = closest[0] - agent[0], closest[1] - agent[1]
        facts |= {"toward_up": dr < 0, "toward_down": dr > 0, "toward_left": dc < 0, "toward_right": dc > 0}
    facts["lost"] = any(dead(box, walls, targets) for box in boxes)
    facts |= {"boxes_left": len(off), "distance": sum(near[box] for box in boxes)}
    return facts


def cells(env: Sokoban) -> list[Place]:
    return [(row, column) for row in range(env.size) for column in range(env.size)]


def dead(cell: Place, walls: set[Place], targets: set[Place]) -> bool:
    row, column = cell
    beside = {(row, column - 1), (row, column + 1)} & walls
    above = {(row - 1, column), (row + 1, column)} & walls
    return bool(beside and above) and cell not in targets


@pytest.mark.parametrize(("size", "boxes"), [(5, 1), (6, 2), (7, 2), (9, 4)])
def test_observation_and_vocabulary_agree_with_the_picture(size: int, boxes: int) -> None:
    env = Sokoban(size, boxes, max_steps=40)
    rng = np.random.default_rng(0)
    observation, _ = env.reset(seed=size)
    seen, facts = [], []
    for _ in range(800):
        walls, targets, stand, agent = read(env)
        planes = [[(cell in plane) for cell in cells(env)] for plane in (walls, targets, stand, {agent})]
        inner = np.array(planes, dtype=np.float32).reshape(4, size, size)[:, 1:-1, 1:-1]
        np.testing.assert_array_equal(observation[35:], inner.ravel())
        assert env.observation_space.contains(observation)
        seen.append(observation)
        facts.append(slow_facts(env))
        observation, _, terminated, truncated, _ = env.step(rng.integers(4))
        if terminated or truncated:
            observation, _ = env.reset()
    steps = single_steps(torch.as_tensor(np.array(seen)), torch.zeros(len(seen), dtype=torch.int64))
    vocabulary = vocabulary_of(env)
    assert vocabulary is sokoban_vocabulary(size)
    for name, known in vocabulary.predicates.items():
        column = {"push_": "", "_ahead": ""}
        plain = name
        for word, nothing in column.items():
            plain = plain.replace(word, nothing)
        ways = ACTIONS if known.signature.sorts else ("",)
        for way in ways if name != "action_is" else ():
            atom = Atom(name, (Variable("t"), *([Constant(way)] if way else [])))
            found = (vocabulary.degrees if known.signature.kind == "truth" else vocabulary.numbers)(atom, steps)
            assert found.tolist() == [fact[f"{plain}_{way}" if way else plain] for fact in facts], atom


@given(st.integers(5, 7), st.integers(1, 2), st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_random_levels_can_be_solved(size: int, boxes: int, seed: int) -> None:
    level = random_level(np.random.default_rng(seed), size, min(boxes, (size - 2) ** 2 // 6))
    assert not level.boxes & level.targets
    assert len(level.boxes) == len(level.targets)
    assert level.agent not in level.boxes | level.walls
    assert solution(level) is not None
    again = random_level(np.random.default_rng(seed), size, min(boxes, (size - 2) ** 2 // 6))
    assert again == level


def solution(level: Level) -> list[int] | None:
    """Actions that solve the level, found by trying all."""
    start = (level.agent, level.boxes)
    came: dict[Any, Any] = {start: None}
    waiting = deque([start])
    while waiting:
        state = agent, boxes = waiting.popleft()
        if boxes == level.targets:
            actions = []
            while came[state] is not None:
                state, action = came[state]
                actions.append(action)
            return actions[::-1]
        for action, step in enumerate(level.steps):
            ahead, beyond, then = agent + step, agent + 2 * step, boxes
            if ahead in boxes and beyond not in level.walls | boxes:
                then = boxes - {ahead} | {beyond}
            after = (ahead, then)
            if ahead not in level.walls | then and after not in came:
                came[after] = (state, action)
                waiting.append(after)
    return None


@pytest.mark.parametrize("seed", range(3))
def test_solving_earns_what_the_table_says(seed: int) -> None:
    env = Sokoban(6, 2)
    env.reset(seed=seed)
    actions = solution(env._level)
    assert actions
    total = 0.0
    for number, action in enumerate(actions):
        _, reward, terminated, truncated, info = env.step(action)
        total += float(reward)
        assert terminated == info["is_success"] == (number == len(actions) - 1)
        assert not truncated
    assert total == pytest.approx(10 + 2 - 0.1 * len(actions))


def test_pushes_off_targets_and_into_corners() -> None:
    env = Sokoban(level="######\n#    #\n# @* #\n#   $#\n#  . #\n######", max_steps=5)
    env.reset(seed=0)
    assert slow_facts(env)["spoils_right"]
    assert env.step(3)[1] == pytest.approx(-1.1)
    for action in (1, 3):  # below the box, then up against it
        env.step(action)
    _, _, terminated, truncated, info = env.step(0)
    assert (terminated, truncated, info) == (False, False, {"is_success": False})
    *_, truncated, _ = env.step(0)
    assert truncated


def test_a_buried_box_loses_the_level() -> None:
    env = Sokoban(level="#####\n#   #\n#@$ #\n# . #\n#####")
    env.reset(seed=0)
    env.step(3)
    assert not slow_facts(env)["lost"]
    env = Sokoban(level="#####\n#@$ #\n#   #\n# . #\n#####")
    observation, _ = env.reset(seed=0)
    assert observation[env.vocabulary.features.index("buries_right")] == 1
    observation, *_ = env.step(3)
    assert observation[env.vocabulary.features.index("lost")] == 1


def test_blocked_steps_change_nothing() -> None:
    env = Sokoban(level="######\n#@$$ #\n#    #\n#    #\n# .. #\n######")
    before, _ = env.reset(seed=0)
    for action in (0, 2, 3):
        observation, reward, *_ = env.step(action)
        np.testing.assert_array_equal(observation, before)
        assert reward == -0.1


def test_environment_checkers_are_content() -> None:
    register_envs()
    for env_id in ("nser/Sokoban-v0", "nser/Sokoban-6x6-1-v0"):
        env = gymnasium.make(env_id, render_mode="rgb_array").unwrapped
        check_env(env)
        check_env_for_sb3(env)
    env = gymnasium.make("nser/Sokoban-v0", size=9, boxes=3, render_mode="ansi").unwrapped
    check_env(env)
    assert isinstance(env, Sokoban)
    assert (env.size, env.boxes) == (9, 3)


def test_ids_of_all_sizes() -> None:
    env: Any = make_env("nser/Sokoban-12x12-5-v0")
    assert (env.size, env.boxes) == (12, 5)
    env = make_env("nser/Sokoban-v0", boxes=1, render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().shape == (112, 112, 3)
    with pytest.raises(UnknownEnvironmentError, match="found 9 boxes in Sokoban of size 6, expected 1 to 2"):
        make_env("nser/Sokoban-6x6-9-v0")
    with pytest.raises(UnknownEnvironmentError, match="Did you mean nser/Sokoban-6x6-1-v0"):
        make_env("nser/Sokoban-6x6-v0")


def test_episodes_can_be_played_again() -> None:
    env = EpisodeSeeds(make_env("nser/Sokoban-v0"), seed=3)
    for _ in range(3):
        env.reset()
    for action in (0, 1, 2, 3, 3, 2):
        observation = env.step(action)[0]
    copy = EpisodeSeeds(make_env("nser/Sokoban-v0"), seed=0)
    np.testing.assert_array_equal(copy.restore(env.position()), observation)


@pytest.mark.parametrize(
    ("level", "message"),
    [
        ("####\n#@$x#\n#####", "found 'x' in a level"),
        ("#####\n#@$.#\n#@  #\n#####", "found 2 agents"),
        ("#####\n#@$ #\n#####", "found 1 boxes and 0 targets"),
        ("#####\n#@  #\n#####", "found 0 boxes and 0 targets"),
        ("# ###\n#@$.#\n#####", "found no wall at row 0, column 1"),
        ("", "found 0 agents"),
    ],
)
def test_levels_that_are_none_are_refused(level: str, message: str) -> None:
    with pytest.raises(LevelError, match=message):
        parse_level(level)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 4}, "found Sokoban of size 4, expected 5 to 20"),
        ({"size": 21}, "expected 5 to 20"),
        ({"size": 5, "boxes": 2}, "found 2 boxes in Sokoban of size 5, expected 1 to 1"),
        ({"boxes": 0}, "found 0 boxes"),
        ({"render_mode": "human"}, "found render_mode 'human', expected ansi"),
    ],
)
def test_sizes_that_can_not_be_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(LevelError, match=message):
        Sokoban(**arguments)


@pytest.mark.parametrize("action", [4, -1])
def test_unknown_actions_are_refused(action: int) -> None:
    env = Sokoban()
    env.reset(seed=0)
    with pytest.raises(ValueError, match="expected 0 to 3: up, down, left, right"):
        env.step(action)


def test_vocabulary_says_something_and_pickles() -> None:
    findings = check_vocabulary(Sokoban(6, 2), steps=6000)
    assert {atom.split("(")[0] for finding in findings for atom in finding.atoms} <= {"push_spoils"}  # rare by chance
    copy = pickle.loads(pickle.dumps(sokoban_vocabulary(7)))
    assert copy.predicates == sokoban_vocabulary(7).predicates
    assert copy.features == sokoban_vocabulary(7).features
