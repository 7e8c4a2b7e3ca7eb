"""Clips: short runs of rendered frames, judged as a whole by a vision model (arXiv 2602.01915).

A clip of L frames gets z = P(yes) / (P(yes) + P(no)) from a judge that has seen a prompt and the frames, and every
transition of it the relevance p = 1[z >= 0.5]. Judging is slow, so it runs in the background; a transition keeps the
law's default relevance until its clip is judged. Open in the paper, and options here with their defaults: the stride
between clips (disjoint), what overlapping clips do (the higher score counts), the decay of a score towards a clip's
beginning (none), how many frames the model is shown (8 of 32, evenly spaced).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nser.background import Background, BackgroundFigures
from nser.replay.index import ReplayIndex

Frames = NDArray[np.uint8]


class Judge(Protocol):
    """Looks at frames [K, H, W, 3] uint8 and says how sure it is that they show what its prompt asks for."""

    version: int

    def judge(self, frames: Frames) -> float:
        """z in [0, 1]; raises an `NserError` where there is no judgement."""


@dataclass(frozen=True)
class ClipSettings:
    """How transitions are cut into clips.

    length:    L, transitions of a clip; an episode's end cuts it shorter
    stride:    transitions from one clip's beginning to the next; `length` makes them disjoint, fewer makes them overlap
    shown:     frames that the judge is shown: every (length // shown)-th, and the last one of an episode
    threshold: z from which on a clip counts as positive
    decay:     factor for each step back from the clip's last transition, 1 for none
    room:      clips that may wait for the judge; when it is full no further clip is rendered
    """

    length: int = 32
    stride: int = 32
    shown: int = 8
    threshold: float = 0.5
    decay: float = 1.0
    room: int = 8

    def __post_init__(self) -> None:
        if not 1 <= self.shown <= self.length:
            raise ValueError(f"found shown {self.shown}, expected 1 to {self.length}, the length of a clip")
        if not self.stride >= 1:
            raise ValueError(f"found stride {self.stride}, expected at least 1")
        if not 0 < self.decay <= 1:
            raise ValueError(f"found decay {self.decay}, expected a factor in (0, 1]")


@dataclass(frozen=True)
class Clip:
    """Frames [K, H, W, 3] that are shown, and the slots [L] of the transitions with their generations then."""

    frames: Frames
    slots: NDArray[np.int64]
    generations: NDArray[np.int64]
    born: int


@dataclass(frozen=True)
class ClipFigures:
    """How far the judge is behind.

    share_scored: share of live transitions that carry a judgement of the present prompt, in [0, 1]
    mean_delay:   steps of the index's clock from the end of a clip to its judgement, over those judged so far
    positive:     share of the judged clips that were positive
    skipped:      clips that were never rendered, since the judge was far behind
    """

    work: BackgroundFigures
    skipped: int
    share_scored: float
    mean_delay: float
    positive: float


class ClipScorer:
    """Collects frames of one environment after the other, has clips judged, and relates their slots.

    Ask `wants_frame` before rendering, and `collects` where an episode may end: only frames that a judge is shown are
    worth their cost, and where it is far behind, none is.
    """

    def __init__(self, judge: Judge, index: ReplayIndex, settings: ClipSettings | None = None) -> None:
        self.judge, self.index = judge, index
        self.settings = settings or ClipSettings()
        self.background: Background[Clip, float] = Background(lambda clip: judge.judge(clip.frames), self.settings.room)
        self._open: dict[int, list[_Collecting]] = {}
        self._since: dict[int, int] = {}
        self._judged = self._positive = self._skipped = 0
        self._delays = 0

    def collects(self, env: int) -> bool:
        """Whether the next transition belongs to a clip that is, or will be, collected: its last frame is wanted."""
        return bool(self._open.get(env)) or (self._begins(env) and self.background.has_room())

    def wants_frame(self, env: int) -> bool:
        """Whether the next transition's frame is one of those that the judge is shown."""
        if not self.collects(env):
            return False
        every = self.settings.length // self.settings.shown
        places = [len(clip.slots) for clip in self._open.get(env, ())]
        if self._begins(env):
            places.append(0)
        return any(place % every == every - 1 for place in places)

    def add(self, env: int, slot: int, frame: Frames | None, done: bool) -> None:
        """A transition was stored in `slot`; `frame` [H, W, 3] shows where it led, None where none was wanted."""
        if self._begins(env):
            self._since[env] = 0
            if self.background.has_room():
                self._open.setdefault(env, []).append(_Collecting())
            else:
                self._skipped += 1
        self._since[env] = self._since.get(env, 0) + 1
        collecting = self._open.get(env, [])
        for clip in collecting:
            clip.slots.append(slot)
            if frame is not None:
                clip.frames.append(frame)
        for clip in [c for c in collecting if done or len(c.slots) >= self.settings.length]:
            collecting.remove(clip)
            self._submit(clip)
        if done:
            self._since[env] = self.settings.stride  # the next episode begins a clip of its own

    def collect(self) -> int:
        """Relate the clips that were judged meanwhile; how many there were. Cheap when there are none."""
        found = self.background.results()
        for clip, z in found:
            positive = z >= self.settings.threshold
            back = np.arange(len(clip.slots))[::-1]
            score = (self.settings.decay**back) * positive
            # Overlapping clips: the higher score counts. A score of an older prompt counts no more.
            held = self.index.explain(clip.slots)
            same = (held.version == self.judge.version) & (held.generation == clip.generations)
            relevance = np.maximum(score, np.where(same, held.relevance, 0.0))
            self.index.relate(clip.slots, relevance, self.judge.version, clip.generations)
            self._judged += 1
            self._positive += positive
            self._delays += self.index.clock - clip.born
        return len(found)

    def figures(self) -> ClipFigures:
        """How far the judge is behind."""
        live = self.index.live_slots()
        scored = float((self.index.explain(live).version == self.judge.version).mean()) if len(live) else 0.0
        judged = max(self._judged, 1)
        return ClipFigures(
            self.background.figures(), self._skipped, scored, self._delays / judged, self._positive / judged
        )

    def close(self) -> None:
        """End the background thread."""
        self.background.close()

    def _begins(self, env: int) -> bool:
        return self._since.get(env, self.settings.stride) >= self.settings.stride

    def _submit(self, clip: _Collecting) -> None:
        if not clip.frames:
            self._skipped += 1
            return
        slots = np.array(clip.slots, np.int64)
        frames = np.stack(clip.frames[-self.settings.shown :])
        self.background.submit(Clip(frames, slots, self.index.generations_of(slots), self.index.clock))


class _Collecting:
    """A clip whose end has not come yet."""

    def __init__(self) -> None:
        self.frames: list[Frames] = []
        self.slots: list[int] = []
