from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from scipy.stats import chisquare

from nser.agents.replay_buffer import BufferStateError, IndexedReplayBuffer
from nser.grounding.steps import Steps
from nser.replay.law import Law
from nser.scorers.placebo import PlaceboScorer

PLAIN = Law(alpha=1.0, epsilon=0.0, beta=1.0, correct="full", normalise="none")


def make(size: int = 8, n_envs: int = 2, law: Law | str = PLAIN) -> IndexedReplayBuffer:
    box = spaces.Box(-1e9, 1e9, (2,), np.float32)
    return IndexedReplayBuffer(size * n_envs, box, spaces.Discrete(3), "cpu", n_envs, law=law, seed=3)


def fill(buffer: IndexedReplayBuffer, count: int, done_every: int = 5, truncate: bool = False) -> None:
    """Observation of the k-th step in environment e is (k, e), the next one (k + 1, e), action and reward follow k."""
    envs = np.arange(buffer.n_envs, dtype=np.float32)
    for k in range(count):
        obs = np.stack([np.full_like(envs, k), envs], 1)
        after = np.stack([np.full_like(envs, k + 1), envs], 1)
        done = np.array([(k + 1 + e) % done_every == 0 for e in range(buffer.n_envs)])
        infos: list[dict[str, Any]] = [{"TimeLimit.truncated": bool(truncate and d)} for d in done]
        buffer.add(obs, after, np.full(buffer.n_envs, k % 3), np.full(buffer.n_envs, float(k)), done, infos)


@pytest.mark.parametrize("count", [3, 8, 13, 21])
def test_what_is_gathered_is_what_the_slot_holds(count: int) -> None:
    """One slot is one position and environment, before and after the ring has wrapped."""
    buffer = make()
    fill(buffer, count)
    batch = buffer.sample(64)
    for i, slot in enumerate(batch.draw.slots):
        position, env = divmod(int(slot), 2)
        step = int(buffer.observations[position, env, 0])
        assert batch.observations[i].tolist() == [step, env]
        assert batch.next_observations[i].tolist() == [step + 1, env]
        assert batch.actions[i].tolist() == [step % 3]
        assert batch.rewards[i].tolist() == [step]
        assert max(count - 8, 0) <= step < count


def test_draws_follow_the_errors_that_were_fed_back() -> None:
    buffer = make(size=5)
    fill(buffer, 5)
    batch = buffer.sample(10)
    errors = np.arange(1.0, 11.0)
    buffer.index.update(buffer.index.draw(1), np.ones(1))  # not every update is of the newest draw
    buffer.update(batch.draw, np.ones(10))
    slots = np.arange(10)
    generations = buffer.index.generations_of(slots)
    buffer.index.update(type(batch.draw)(slots, generations, errors, errors, slots), errors)
    counts = np.zeros(10)
    for _ in range(400):
        counts += np.bincount(buffer.sample(20).draw.slots, minlength=10)
    assert chisquare(counts, errors / errors.sum() * counts.sum()).pvalue > 0.01


def test_weights_undo_the_tilt() -> None:
    buffer = make(size=5)
    fill(buffer, 5)
    draw = buffer.sample(40).draw
    buffer.update(draw, 1.0 + draw.slots)
    batch = buffer.sample(50)
    expected = 1 / (len(buffer.index) * batch.draw.probabilities)
    np.testing.assert_allclose(batch.weights.numpy().ravel(), expected, rtol=1e-6)


@pytest.mark.parametrize("truncate", [True, False])
def test_a_time_limit_is_no_terminal_state(truncate: bool) -> None:
    buffer = make()
    fill(buffer, 8, done_every=2, truncate=truncate)
    batch = buffer.sample(200)
    expected = (batch.observations[:, 0] + 1 + batch.observations[:, 1]) % 2 == 0
    assert batch.dones.ravel().tolist() == [0.0 if truncate else float(d) for d in expected]


def test_ages_count_gradient_steps() -> None:
    buffer = make()
    fill(buffer, 2)
    for _ in range(7):
        buffer.sample(4)
    fill(buffer, 1)
    ages = buffer.index.explain(np.arange(6)).age
    assert ages.tolist() == [7, 7, 7, 7, 0, 0]


@pytest.mark.parametrize("count", [5, 8, 12])
def test_trajectories_are_in_the_order_of_time_and_whole(count: int) -> None:
    buffer = make(size=8)
    fill(buffer, count, done_every=3)
    found = buffer.trajectories()
    for episode in found.iterate():
        assert len(set(episode.observations[:, 1])) == 1
        assert (np.diff(episode.observations[:, 0]) == 1).all()
        assert not episode.finished[:-1].any()
        env, first = int(episode.observations[0, 1]), int(episode.observations[0, 0])
        assert first == 0 or (first + env) % 3 == 0, "an episode whose beginning is lost must not be given out"
    if count < 8:
        assert len(found) == 2 * count


def test_trajectories_of_the_newest_steps() -> None:
    buffer = make(size=100)
    fill(buffer, 60, done_every=4)
    found = buffer.trajectories(newest=40)
    assert 0 < len(found) <= 40
    assert found.observations[:, 0].min() >= 40


class ByStep:
    """Relevance from the observation alone, so that a test can tell which row got which score."""

    past, future = 0, 0

    def __init__(self, version: int, scale: float = 0.01) -> None:
        self.version, self.scale, self.calls = version, scale, 0

    def relevance(self, steps: Steps) -> np.ndarray:
        self.calls += 1
        return steps.observations[:, 0].numpy().astype(np.float64) * self.scale + steps.observations[:, 1].numpy() * 0.5


@pytest.mark.parametrize("count", [5, 8, 11])
def test_a_new_scorer_scores_every_stored_transition(count: int) -> None:
    buffer = make()
    fill(buffer, count)
    buffer.set_scorer(ByStep(4))
    _check_scores(buffer, 0.01, 4)
    buffer.set_scorer(ByStep(5, scale=0.02))
    _check_scores(buffer, 0.02, 5)


def test_new_transitions_are_scored_in_groups_and_all_of_them() -> None:
    buffer = make(size=100)
    scorer = ByStep(1, scale=0.001)
    fill(buffer, 10)
    buffer.set_scorer(scorer)
    fill(buffer, 85)
    assert scorer.calls == 4  # two environments, once for the old and once for the new
    buffer.score_new()
    _check_scores(buffer, 0.001, 1)


class NextStep(ByStep):
    """Relevance of a row is read off the row after it, in the same episode."""

    past, future = 1, 1

    def relevance(self, steps: Steps) -> np.ndarray:
        self.calls += 1
        known = np.zeros(len(steps))
        same = (steps.episodes[1:] == steps.episodes[:-1]).numpy()
        known[:-1][same] = steps.observations[1:, 0].numpy()[same] * self.scale
        return known


def test_a_score_that_needs_the_future_is_mended_when_the_future_comes() -> None:
    buffer = make(size=300)
    fill(buffer, 10, done_every=50)
    buffer.set_scorer(NextStep(1, scale=0.001))
    fill(buffer, 64, done_every=50)  # the tenth row's next step came after it was scored
    buffer.score_new()
    found = buffer.index.explain(np.arange(2 * 74)).relevance.reshape(74, 2)
    for k in range(73):
        same = buffer.episodes[k, 0] == buffer.episodes[k + 1, 0]
        assert found[k, 0] == pytest.approx(buffer.observations[k + 1, 0, 0] * 0.001 if same else 0.0)


def _check_scores(buffer: IndexedReplayBuffer, scale: float, version: int) -> None:
    rows = buffer.stored_rows()
    slots = (rows[:, None] * 2 + np.arange(2)).ravel()
    found = buffer.index.explain(slots)
    expected = buffer.observations[rows][:, :, 0] * scale + np.arange(2) * 0.5
    np.testing.assert_allclose(found.relevance, expected.ravel(), rtol=1e-6)
    assert (found.version == version).all()


def test_steps_around_a_slot_stay_in_its_environment() -> None:
    buffer = make()
    fill(buffer, 11)
    steps, place = buffer.steps_at(2 * 1 + 1, past=2, future=3)
    stored = int(buffer.observations[1, 1, 0])
    assert steps.observations[place].tolist() == [stored, 1]
    assert (steps.observations[:, 1] == 1).all()
    assert (np.diff(steps.observations[:, 0].numpy()) == 1).all()


def test_state_round_trip_goes_on_with_the_same_draws() -> None:
    buffer = make(law=Law())
    fill(buffer, 13)
    buffer.update(buffer.sample(16).draw, np.linspace(0, 1, 16))
    copy = make(law=Law())
    copy.load_state(buffer.state())
    for one in (buffer, copy):
        fill(one, 3)
    np.testing.assert_array_equal(copy.sample(32).draw.slots, buffer.sample(32).draw.slots)
    np.testing.assert_array_equal(copy.episodes, buffer.episodes)


def test_a_state_that_does_not_fit_changes_nothing() -> None:
    buffer = make(size=8)
    fill(buffer, 5)
    before = buffer.index.state_dict()
    other = make(size=9)
    fill(other, 9)
    with pytest.raises(BufferStateError, match="saved observations has shape"):
        buffer.load_state(other.state())
    assert buffer.pos == 5
    assert {k: str(v) for k, v in buffer.index.state_dict().items()} == {k: str(v) for k, v in before.items()}


def test_a_buffer_with_its_scorer_pickles() -> None:
    buffer = make(law=Law())
    buffer.set_scorer(PlaceboScorer(0.5, seed=1))
    fill(buffer, 8)
    copy = pickle.loads(pickle.dumps(buffer))
    np.testing.assert_array_equal(copy.sample(16).draw.slots, buffer.sample(16).draw.slots)


def test_memory_optimisation_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="found optimize_memory_usage=True, expected False"):
        IndexedReplayBuffer(8, spaces.Box(0, 1, (1,)), spaces.Discrete(2), optimize_memory_usage=True)


def test_placebo_boosts_the_share_it_says() -> None:
    scorer = PlaceboScorer(0.02, seed=0)
    steps = Steps(*(np_to(np.zeros(20_000)) for _ in range(3)))
    assert scorer.relevance(steps).mean() == pytest.approx(0.02, abs=0.004)
    state = scorer.state()
    following = scorer.relevance(steps)
    scorer.load_state(state)
    np.testing.assert_array_equal(scorer.relevance(steps), following)
    with pytest.raises(ValueError, match="found share"):
        PlaceboScorer(1.5)


def np_to(array: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(array)
