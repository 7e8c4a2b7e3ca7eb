"""Which item to replay next, and with what weight: numbers in, slots out."""

from nser.replay.array_buffer import ArrayBuffer, Batch
from nser.replay.draw import Draw
from nser.replay.errors import (
    ArgumentError,
    CheckpointError,
    EmptyIndexError,
    LawError,
    RelevanceError,
    ReplayError,
    SignalError,
    SlotError,
    ZeroWeightWarning,
)
from nser.replay.explain import Explanation, IndexStats
from nser.replay.index import ReplayIndex
from nser.replay.law import Law
from nser.replay.presets import PRESETS, preset
from nser.replay.schedule import Schedule, annealed, constant, linear
from nser.replay.vector_steps import VectorSteps

__all__ = [
    "PRESETS",
    "ArgumentError",
    "ArrayBuffer",
    "Batch",
    "CheckpointError",
    "Draw",
    "EmptyIndexError",
    "Explanation",
    "IndexStats",
    "Law",
    "LawError",
    "RelevanceError",
    "ReplayError",
    "ReplayIndex",
    "Schedule",
    "SignalError",
    "SlotError",
    "VectorSteps",
    "ZeroWeightWarning",
    "annealed",
    "constant",
    "linear",
    "preset",
]
