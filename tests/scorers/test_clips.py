from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from nser.replay import Law, ReplayIndex
from nser.scorers.clips import ClipScorer, ClipSettings, Frames
from nser.scorers.events import EventScorer
from nser.scorers.vision import JudgementError, VisionJudge, VisionPrompt, yes_share
from tests.grounding.world import WORLD, random_steps
from tests.induce.fake_server import Answer, completion, failure, serve


class Brightness:
    """z is how bright the last frame is: a judge whose right answer a test knows."""

    version = 7

    def __init__(self) -> None:
        self.seen: list[Frames] = []

    def judge(self, frames: Frames) -> float:
        self.seen.append(frames)
        return float(frames[-1].mean() / 255)


def frame(value: int) -> Frames:
    return np.full((4, 4, 3), value, np.uint8)


Made = tuple[ClipScorer, ReplayIndex, Brightness]


@pytest.fixture
def make() -> Iterator[Any]:
    made: list[ClipScorer] = []

    def build(capacity: int = 100, **settings: Any) -> Made:
        judge, index = Brightness(), ReplayIndex(capacity, Law(eta=4.0))
        scorer = ClipScorer(
            judge, index, ClipSettings(**{"length": 4, "stride": 4, "shown": 2, "room": 50, **settings})
        )
        made.append(scorer)
        return scorer, index, judge

    yield build
    for scorer in made:
        scorer.close()


def play(scorer: ClipScorer, index: ReplayIndex, values: list[int], ends: tuple[int, ...] = ()) -> list[int]:
    """One environment's transitions with frames of these brightnesses; the slots they got."""
    slots = []
    for step, value in enumerate(values):
        wanted = scorer.wants_frame(0) or (step in ends and scorer.collects(0))
        slots.append(int(index.insert(1)[0]))
        scorer.add(0, slots[-1], frame(value) if wanted else None, step in ends)
        index.tick()
    return slots


def relevance(index: ReplayIndex, slots: list[int]) -> list[float]:
    return [float(value) for value in index.explain(slots).relevance]


def test_every_transition_of_a_positive_clip_is_relevant(make: Any) -> None:
    scorer, index, judge = make()
    slots = play(scorer, index, [0, 0, 0, 255, 0, 0, 0, 0, 0, 0, 0, 200])
    assert scorer.background.drain(10)
    assert scorer.collect() == 3
    assert relevance(index, slots) == [1.0] * 4 + [0.0] * 4 + [1.0] * 4
    assert (index.explain(slots).version == 7).all()
    assert [frames.shape for frames in judge.seen] == [(2, 4, 4, 3)] * 3
    figures = scorer.figures()
    assert figures.share_scored == 1.0
    assert figures.positive == pytest.approx(2 / 3)
    assert figures.mean_delay > 0


def test_an_episode_end_cuts_a_clip(make: Any) -> None:
    scorer, index, judge = make()
    slots = play(scorer, index, [0, 255, 0, 0, 0, 0, 0, 255], ends=(1,))
    assert scorer.background.drain(10)
    scorer.collect()
    assert relevance(index, slots) == [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert len(judge.seen) == 2, "the clip that has only begun is not judged"


def test_overlapping_clips_combine_by_the_higher_score_and_never_multiply(make: Any) -> None:
    scorer, index, _ = make(stride=2)
    slots = play(scorer, index, [0, 0, 0, 255, 0, 0, 0, 0])
    assert scorer.background.drain(10)
    scorer.collect()
    # Clips 0-3 (positive), 2-5 and 4-7 (negative): 2 and 3 stay relevant.
    assert relevance(index, slots) == [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]


def test_a_newer_prompt_replaces_what_an_older_one_said(make: Any) -> None:
    scorer, index, _ = make()
    slots = [int(slot) for slot in index.insert(4)]
    index.relate(slots, np.ones(4), 3)
    for slot in slots:
        scorer.add(0, slot, frame(0), False)
    assert scorer.background.drain(10)
    scorer.collect()
    assert relevance(index, slots) == [0.0] * 4


def test_decay_fades_towards_the_beginning(make: Any) -> None:
    scorer, index, _ = make(decay=0.5)
    slots = play(scorer, index, [255] * 4)
    assert scorer.background.drain(10)
    scorer.collect()
    assert relevance(index, slots) == [0.125, 0.25, 0.5, 1.0]


def test_a_late_judgement_does_not_land_on_a_newer_transition(make: Any) -> None:
    scorer, index, _ = make(capacity=4)
    play(scorer, index, [255] * 4)
    assert scorer.background.drain(10)
    fresh = [int(slot) for slot in index.insert(4)]  # overwrites all of them before the judgement is fetched
    scorer.collect()
    assert relevance(index, fresh) == [0.0] * 4
    assert index.stale_relations == 4


def test_where_the_judge_is_behind_nothing_is_rendered(make: Any) -> None:
    scorer, index, judge = make(room=1)
    scorer.background.close()
    scorer.background._jobs.put(None)  # a queue that nobody empties
    assert not scorer.collects(0)
    assert not scorer.wants_frame(0)
    play(scorer, index, [255] * 12)
    assert judge.seen == []
    assert scorer.figures().skipped == 3
    scorer.background._jobs.get()


@pytest.mark.parametrize("wrong", [{"shown": 5, "length": 4}, {"stride": 0}, {"decay": 0.0}])
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="found"):
        ClipSettings(**wrong)


# The endpoint -----------------------------------------------------------------------------------------------


def looks(request: dict[str, Any]) -> Answer:
    """A server that really looks: yes with the share of white in the last image, as log-probabilities."""
    from PIL import Image

    parts = request["messages"][0]["content"]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    images = [np.asarray(Image.open(io.BytesIO(base64.b64decode(url.split(",")[1])))) for url in urls]
    white = float(images[-1].mean() / 255)
    logarithms = {"Yes": np.log(max(white, 1e-6)), " no": np.log(max(1 - white, 1e-6)), "the": -9.0}
    top = [{"token": token, "logprob": float(value), "bytes": None} for token, value in logarithms.items()]
    answer = json.loads(completion("Yes").body)
    answer["choices"][0]["logprobs"] = {"content": [{**top[0], "top_logprobs": top}], "refusal": None}
    return Answer(body=json.dumps(answer))


PROMPT = VisionPrompt("Pick up the key.")


def test_the_server_sees_the_frames_and_its_probabilities_count() -> None:
    with serve(looks) as server:
        judge = VisionJudge("vlm", server.url, PROMPT)
        assert judge.judge(np.stack([frame(0), frame(255)])) == pytest.approx(1.0, abs=1e-5)
        assert judge.judge(np.stack([frame(255), frame(51)])) == pytest.approx(0.2, abs=1e-5)
    first = server.requests[0]["messages"][0]["content"]
    assert first[0]["text"].startswith("Task: Pick up the key.")
    assert len(first) == 3


def test_without_probabilities_the_word_counts() -> None:
    for word, expected in (("yes", 1.0), (" No.", 0.0)):
        with serve([completion(word)]) as server:
            assert VisionJudge("vlm", server.url, PROMPT).judge(np.stack([frame(9)])) == expected


@pytest.mark.parametrize("answer", [completion("perhaps"), failure(400), completion(None), Answer(body="<html>")])
def test_other_answers_are_no_judgement(answer: Answer) -> None:
    with serve([answer]) as server, pytest.raises(JudgementError):
        VisionJudge("vlm", server.url, PROMPT, timeout=5).judge(np.stack([frame(9)]))


def test_spellings_are_summed() -> None:
    tokens = [("▁Yes", np.log(0.2)), ("YES", np.log(0.1)), ("no", np.log(0.1)), ("Nope", np.log(0.4))]
    assert yes_share(tokens) == pytest.approx(0.75)
    assert yes_share([("maybe", 0.0)]) is None


def test_prompts_have_versions() -> None:
    assert PROMPT.version == VisionPrompt("Pick up the key.").version
    assert PROMPT.version != VisionPrompt("Open the door.").version


def test_scripted_events_mark_the_steps_that_lead_to_them() -> None:
    steps = random_steps(60, 3, crisp=True)
    found = EventScorer(["hot(t) & near(t, cup)"], WORLD, length=3).relevance(steps)
    event = (steps.observations[:, 0] * steps.observations[:, 1]).numpy() > 0
    episode = steps.episodes.numpy()
    for row in range(60):
        ahead = [event[k] for k in range(row, min(row + 3, 60)) if episode[k] == episode[row]]
        assert found[row] == float(any(ahead))
    with pytest.raises(ValueError, match="found no events"):
        EventScorer([], WORLD)


def test_only_frames_that_are_shown_are_asked_for(make: Any) -> None:
    scorer, index, judge = make(length=8, stride=8, shown=2)
    asked = []
    for step in range(16):
        asked.append(scorer.wants_frame(0))
        assert scorer.collects(0)
        scorer.add(0, int(index.insert(1)[0]), frame(step) if asked[-1] else None, False)
    assert asked == [False, False, False, True] * 4
    assert scorer.background.drain(10)
    assert [[int(f.mean()) for f in frames] for frames in judge.seen] == [[3, 7], [11, 15]]


def test_the_last_frame_of_an_episode_is_shown(make: Any) -> None:
    scorer, index, judge = make(length=8, stride=8, shown=2)
    play(scorer, index, [0, 0, 0, 10, 255], ends=(4,))
    assert scorer.background.drain(10)
    assert [[int(f.mean()) for f in frames] for frames in judge.seen] == [[10, 255]]
