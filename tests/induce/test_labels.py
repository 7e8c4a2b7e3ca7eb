from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from nser.experience.trajectories import Trajectories
from nser.induce.kinds import numbered
from nser.induce.labels import advantage, progress, return_to_go, success
from nser.induce.novelty import novelty
from tests.induce.planted import CHAIN, LEAVES, NUMBERS, ROOMS, play


def test_progress_ranks_the_action_that_leads_on_above_every_other() -> None:
    played = play(300, 0)
    found = progress(played, CHAIN, 0.95)
    for room in range(ROOMS - 1):
        here = played.observations[:, 0] == room
        right = played.actions == LEAVES[room]
        assert found[here & right].mean() > 0.02
        assert found[here & ~right].max() <= 1e-9


def test_advantage_is_progress_summed_to_the_end_of_the_episode() -> None:
    """Σ γᵏ (r + γ V(s′) − V(s)) telescopes to G − V(s), plus what a time limit cut off."""
    played = play(60, 5)
    gamma = 0.9
    found, steps = advantage(played, CHAIN, gamma), progress(played, CHAIN, gamma)
    summed, ahead = np.zeros(len(steps)), 0.0
    for row in reversed(range(len(steps))):
        if row + 1 == len(steps) or played.episodes[row + 1] != played.episodes[row]:
            ahead = 0.0
        ahead = steps[row] + gamma * ahead
        summed[row] = ahead
    ended = {episode for episode, over in zip(played.episodes, played.terminated, strict=True) if over}
    rows = np.isin(played.episodes, list(ended))
    assert rows.any()
    np.testing.assert_allclose(found[rows], summed[rows], atol=1e-9)


def test_progress_agrees_with_values_solved_by_linear_algebra() -> None:
    """With many visits the shrunken sweeps come near the exact values of the chain under random play."""
    gamma = 0.9
    played = play(4000, 1, limit=400)
    # V(z) = ¼ (r + γ V(z + 1)) + ¾ γ V(z)
    value = np.zeros(ROOMS)
    for room in reversed(range(ROOMS - 1)):
        ahead = 1.0 if room == ROOMS - 2 else gamma * value[room + 1]
        value[room] = (ahead / 4) / (1 - gamma * 3 / 4)
    before, after = played.observations[:, 0].astype(int), played.next_observations[:, 0].astype(int)
    expected = played.rewards + gamma * np.where(played.terminated, 0, value[after]) - value[before]
    np.testing.assert_allclose(progress(played, CHAIN, gamma), expected, atol=0.02)


def test_progress_sees_no_progress_where_there_is_no_evidence() -> None:
    """A state seen once must not look better than where it was reached from."""
    played = play(200, 2)
    rows = np.flatnonzero((played.observations[:, 0] == 0) & (played.actions == 0))
    odd = played.next_observations.copy()
    odd[rows[0], 0] = 99.0  # a kind of state that nobody has seen before or after
    strange = dataclasses.replace(played, next_observations=odd)
    assert abs(progress(strange, CHAIN, 0.95)[rows[0]]) < 0.05


def test_numbers_alone_are_cut_into_bins() -> None:
    played = play(300, 3)
    found = progress(played, NUMBERS, 0.95)
    right = played.actions == np.array([*LEAVES, 0])[played.observations[:, 0].astype(int)]
    assert found[right].mean() > found[~right].mean() + 0.02


@pytest.mark.parametrize("label", [return_to_go, success])
def test_the_other_labels_are_centred(label: object) -> None:
    played = play(100, 4)
    assert callable(label)
    assert label(played, CHAIN, 0.9).mean() == pytest.approx(0, abs=1e-9)


def test_nothing_played_gives_no_labels() -> None:
    nothing = play(3, 0)[:0]
    for label in (progress, return_to_go, success, advantage):
        assert len(label(nothing, CHAIN, 0.9)) == 0


def test_kinds_are_told_apart_by_every_column_whatever_their_number() -> None:
    generator = np.random.default_rng(0)
    for columns in (1, 8, 70):
        codes = generator.integers(2, size=(300, columns)).astype(np.int16)
        found = numbered(codes)
        same = (codes[:, None] == codes[None]).all(2)
        np.testing.assert_array_equal(found[:, None] == found[None], same)


def achieved_slowly(played: Trajectories) -> list[set[str]]:
    """What every step of the chain brought about for the first time in its episode."""
    found: list[set[str]] = []
    known: set[str] = set()
    usual = float(np.median(played.rewards))
    for row in range(len(played)):
        before, after = played.observations[row], played.next_observations[row]
        if row == 0 or played.episodes[row] != played.episodes[row - 1]:
            known = literals(before)
        now = literals(after) | ({"rewarded"} if played.rewards[row] > usual else set())
        found.append(now - known)
        known |= now
    return found


def literals(observation: np.ndarray) -> set[str]:
    rooms = {f"{'' if room == observation[0] else '~'}r{room}" for room in range(ROOMS)}
    return rooms | {"noise" if observation[1] > 0.5 else "~noise"}


@pytest.mark.parametrize("limit", [3, 12, 40])
def test_novelty_is_the_sum_over_first_achievements_of_one_by_the_root_of_their_episodes(limit: int) -> None:
    played = play(80, 7, limit=limit)
    achieved = achieved_slowly(played)
    episodes = {name: sum(name in one for one in achieved) for one in achieved for name in one}
    slow = np.array([sum(1 / np.sqrt(episodes[name]) for name in one) for one in achieved])
    np.testing.assert_allclose(novelty(played, CHAIN, 0.9), slow - slow.mean(), atol=1e-12)


def test_novelty_needs_no_reward() -> None:
    played = play(300, 0)
    found = novelty(dataclasses.replace(played, rewards=np.zeros(len(played), np.float32)), CHAIN, 0.95)
    for room in range(ROOMS - 1):
        here, right = played.observations[:, 0] == room, played.actions == LEAVES[room]
        assert found[here & right].mean() > 0.02 + found[here & ~right].mean()


def test_novelty_of_numbers_and_of_nothing() -> None:
    played = play(50, 3)
    found = novelty(played, NUMBERS, 0.9)
    assert found.shape == (len(played),)
    assert abs(found.mean()) < 1e-12
    assert len(novelty(played[:0], CHAIN, 0.9)) == 0
