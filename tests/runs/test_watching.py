"""VLM-guided replay inside a run: frames reach the judge, its word reaches the index, and nobody waits."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nser.runs.session import Session
from nser.runs.train import train
from nser.runs.watching import FrameTap, JudgeError, Watching
from nser.scorers.clips import ClipSettings, Frames
from tests.induce.fake_server import Answer, completion, serve
from tests.runs.test_runs import settings, told

DOORKEY = "MiniGrid-DoorKey-5x5-v0"
QUICK = {"env": DOORKEY, "explore": "epsilon", "replay": "vlm-rb", "steps": 800, "final_episodes": 0}


def has_key(request: dict[str, Any]) -> Answer:
    """Decodes the last picture and says yes while the key's yellow is still on the grid."""
    from PIL import Image

    url = request["messages"][0]["content"][-1]["image_url"]["url"]
    picture = np.asarray(Image.open(io.BytesIO(base64.b64decode(url.split(",")[1]))))
    yellow = (picture[..., 0] > 200) & (picture[..., 1] > 200) & (picture[..., 2] < 80)
    return completion("yes" if yellow.sum() > 50 else "no")


def test_clips_are_judged_by_what_they_show_and_reach_the_index(tmp_path: Path) -> None:
    with serve(has_key) as server:
        train(tmp_path / "run", settings(**QUICK, vlm=f"{server.url}#vlm", clip_length=8, clip_stride=8))
        assert len(server.requests) > 3
        assert all(len(request["messages"][0]["content"]) <= 9 for request in server.requests)
    figures = [line["clips"] for line in told(tmp_path / "run") if line["kind"] == "train"][-1]
    assert figures["work"]["done"] > 0
    assert figures["work"]["failed"] == 0
    assert 0 < figures["share_scored"] <= 1


class Recorder:
    """Remembers every clip it is shown."""

    version = 1

    def __init__(self) -> None:
        self.seen: list[Frames] = []

    def judge(self, frames: Frames) -> float:
        self.seen.append(frames)
        return 1.0


def test_a_transition_gets_the_frame_that_it_led_to() -> None:
    session = Session(settings(**{**QUICK, "vlm": "http://127.0.0.1:9/v1#m"}))
    assert session.watching is not None
    session.watching.close()
    judge = Recorder()
    watching = Watching(judge, session.buffer, session.taps, ClipSettings(4, 4, 4))
    (tap,) = session.taps
    tap.reset()
    pictures = []
    for k in range(9):
        obs = np.zeros((1, *session.buffer.obs_shape), np.float32)
        tap.step(k % 3)
        pictures.append(np.asarray(session.envs[0].render(), np.uint8))
        watching.on_step([False])
        session.buffer.add(obs, obs, np.array([k % 3]), np.zeros(1), np.array([False]), [{}])
    watching.flush()
    assert watching.scorer.background.drain(10)
    watching.flush()
    watching.close()
    for clip, frames in enumerate(judge.seen):
        for place, frame in enumerate(frames):
            np.testing.assert_array_equal(frame, pictures[4 * clip + place])
    assert len(judge.seen) == 2
    assert session.buffer.index.explain(np.arange(9)).version.tolist() == [1] * 8 + [-1]


def test_nothing_is_rendered_where_nothing_is_wanted() -> None:
    session = Session(settings(**{**QUICK, "vlm": "http://127.0.0.1:9/v1#m"}))
    tap = FrameTap(session.envs[0])
    tap.reset()
    tap.step(0)
    frames = [tap.frame]
    tap.wanted = True
    tap.step(0)
    frames.append(tap.frame)
    assert frames[0] is None
    assert frames[1] is not None
    assert frames[1].dtype == np.uint8
    session.close()


def test_scripted_events_are_the_ceiling_and_need_no_pictures(tmp_path: Path) -> None:
    event = "events:action_is(t, pickup) & facing(t, key)"
    given = settings(**QUICK, vlm=event, clip_length=4)
    session = Session(given)
    assert session.watching is None
    assert not session.taps
    train(tmp_path / "run", given)
    again = told(tmp_path / "run")
    assert not any("clips" in line for line in again)
    assert again[-1]["kind"] == "done"


def test_draws_go_by_relevance_alone() -> None:
    """P ∝ p for discrete actions: what the TD errors were has no part in it."""
    session = Session(settings(**QUICK, vlm="events:carrying(t)"))
    session.agent.learn(300)
    draw = session.buffer.index.draw(8)
    before = session.buffer.index.explain(draw.slots).signal
    session.buffer.update(draw, np.full(8, 50.0))
    np.testing.assert_array_equal(session.buffer.index.explain(draw.slots).signal, before)


@pytest.mark.parametrize("word", ["", "gpt", "http://127.0.0.1:9/v1"])
def test_a_judge_must_be_named(tmp_path: Path, word: str) -> None:
    with pytest.raises(JudgeError, match="expected http://"):
        train(tmp_path / "run", settings(**QUICK, vlm=word))
    assert not list(tmp_path.iterdir())
