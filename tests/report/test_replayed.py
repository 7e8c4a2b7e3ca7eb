"""What is replayed and why: which items are shown, and that every figure is the index's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nser.report.replayed import COLUMNS, DRAWN, MOST_LIKELY, Stored, items_sheet, shown_items, spread_of
from nser.runs.archive import read_archive
from nser.runs.directory import RunDirectory
from nser.runs.explain import explain_slot, stored_buffer
from nser.runs.session import Session
from nser.runs.train import train
from tests.pixels import PIXELS
from tests.runs.test_runs import settings

PLACE = {column.name: place for place, column in enumerate(COLUMNS)}


@pytest.fixture(scope="module")
def stored(whole: RunDirectory) -> Stored:
    return Stored.of(*stored_buffer(whole), whole.newest_rules())


def test_a_buffer_without_its_agent_is_that_of_the_whole_run(whole: RunDirectory, stored: Stored) -> None:
    session = Session(whole.settings())
    session.buffer.load_state(read_archive(whole.checkpoint)["session"]["buffer"])
    again = session.buffer
    assert stored.buffer.index.stats() == again.index.stats()
    np.testing.assert_array_equal(stored.buffer.rewards, again.rewards)


def test_where_all_items_are_alike_no_error_is_made_a_reason(tmp_path: Path) -> None:
    train(tmp_path / "run", settings(steps=600, replay="uniform", explore="epsilon", final_episodes=0))
    buffer, vocabulary = stored_buffer(RunDirectory.open(tmp_path / "run"))
    sheet = items_sheet(Stored.of(buffer, vocabulary, None))
    assert {row.cells[PLACE["why it is drawn"]].text for row in sheet.rows} == {"every item is as likely as it is"}


def test_a_world_without_words_shows_its_numbers(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    train(run.path, settings(env=PIXELS, steps=300, replay="per", explore="epsilon", final_episodes=0))
    buffer, vocabulary = stored_buffer(run)
    assert vocabulary is None
    sheet = items_sheet(Stored.of(buffer, vocabulary, None))
    assert {row.cells[PLACE["action"]].text for row in sheet.rows} <= {"[0]", "[1]", "[2]"}
    assert all("x0" in row.cells[PLACE["state"]].text for row in sheet.rows)


def test_every_figure_is_what_the_index_says_of_the_slot(whole: RunDirectory, stored: Stored) -> None:
    (buffer, vocabulary), ruleset = stored_buffer(whole), whole.newest_rules()
    assert vocabulary is not None
    assert ruleset is not None
    sheet = items_sheet(stored)
    with_rule = 0
    for row in sheet.rows[::9]:
        told = {name: row.cells[place] for name, place in PLACE.items()}
        explained = explain_slot(buffer, vocabulary, ruleset, int(told["slot"].text))
        assert told["action"].text == explained.action
        assert told["reward"].order == explained.reward
        assert told["times uniform"].order == pytest.approx(explained.law["probability"] / explained.uniform)
        for name in ("signal", "relevance", "age", "weight"):
            assert told[name].order == explained.law[name]
        assert told["age"].note == f"× {explained.law['decay']:.3f}"
        if told["rule"].order is not None:
            with_rule += 1
            best = max(explained.firings, key=lambda firing: firing.contribution)
            assert told["rule"].text == best.rule
    assert with_rule > 2


def test_spread_is_counted_item_by_item(stored: Stored) -> None:
    spread = spread_of(stored)
    probability = stored.explained.probability
    shares: dict[int, float] = {}
    for episode, chance in zip(stored.episodes.tolist(), probability.tolist(), strict=True):
        shares[episode] = shares.get(episode, 0.0) + chance
    needed, covered = 0, 0.0
    for part in sorted(shares.values(), reverse=True):
        if covered >= 0.5 * sum(shares.values()):
            break
        needed, covered = needed + 1, covered + part
    assert (spread.items, spread.episodes, spread.half) == (len(stored), len(shares), needed)
    assert spread.effective == pytest.approx(stored.buffer.index.stats().effective_size)


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=400))
def test_the_likeliest_are_shown_and_none_twice(weights: list[float]) -> None:
    probability = np.array(weights) / sum(weights)
    shown = shown_items(probability)
    assert len(set(shown.tolist())) == len(shown) <= MOST_LIKELY + DRAWN
    assert (np.diff(probability[shown]) <= 0).all()
    hidden = np.setdiff1d(np.arange(len(weights)), shown)
    assert len(shown) >= min(MOST_LIKELY, len(weights))
    if len(hidden):
        assert probability[hidden].max() <= np.sort(probability)[-MOST_LIKELY]
        # Along the law no stretch of more than a draw's worth goes without an item that is shown.
        assert probability[hidden].max() <= 1 / DRAWN + 1e-9


def test_a_checkpoint_of_something_else_is_refused(whole: RunDirectory, tmp_path: Path) -> None:
    from nser.runs.errors import CheckpointError

    other = RunDirectory(tmp_path)
    other.checkpoint.parent.mkdir()
    other.config.write_bytes(whole.config.read_bytes().replace(b'"buffer_size": 2000', b'"buffer_size": 70'))
    other.checkpoint.write_bytes(whole.checkpoint.read_bytes())
    with pytest.raises(CheckpointError, match="does not fit"):
        stored_buffer(other)
