"""Why a stored transition has its priority: the factors of the law, and each rule's firing literal by literal."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space, is_image_space_channels_first
from stable_baselines3.common.vec_env import VecTransposeImage

from nser.agents.replay_buffer import IndexedReplayBuffer
from nser.envs.errors import NoVocabularyError
from nser.envs.make import vocabulary_of
from nser.errors import NserError
from nser.experience.trajectories import Trajectories
from nser.grounding.errors import UngroundedError
from nser.grounding.evaluator import Evaluator
from nser.grounding.reference import reference_truths
from nser.grounding.steps import Steps
from nser.grounding.vocabulary import Vocabulary
from nser.rules.printer import print_formula
from nser.rules.store import RuleSet
from nser.rules.syntax import Rule
from nser.rules.walk import conjuncts
from nser.runs.archive import fitting, read_archive
from nser.runs.directory import RunDirectory
from nser.runs.environment import training_env
from nser.runs.errors import CheckpointError
from nser.runs.session import law_of


class SlotRangeError(NserError, IndexError):
    """A slot that the run's buffer does not hold."""


@dataclass(frozen=True)
class Firing:
    """One rule at one transition: body and head truth, and every literal of the body with its own."""

    rule: str
    weight: float
    body: float
    head: float
    contribution: float
    literals: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class TransitionExplanation:
    """What the checkpoint holds of one slot, and what a rule set says of it.

    facts: name of an observation's column → value;  law: the factors as `ReplayIndex.explain` names them;
    score: the rule set's score in [0, 1];  uniform: what a uniform draw would give the slot
    largest_signal: of all live items, which is what a new item has until it is replayed
    """

    slot: int
    action: str
    reward: float
    ended: bool
    facts: dict[str, float]
    law: dict[str, Any]
    uniform: float
    largest_signal: float
    score: float
    firings: tuple[Firing, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True)
class RowExplanation:
    """What a rule set says of one row of recorded data; episode and step within it count from 0."""

    row: int
    episode: int
    step: int
    action: str
    reward: float
    facts: dict[str, float]
    score: float
    firings: tuple[Firing, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def stored_buffer(run: RunDirectory) -> tuple[IndexedReplayBuffer, Vocabulary | None]:
    """The buffer of a run's last checkpoint without an agent, and the vocabulary of its environment if it has one.

    Raises `CheckpointError` where there is none that can be read.
    """
    settings = run.settings()
    if not run.checkpoint.exists():
        raise CheckpointError(
            run.checkpoint,
            f"run {run.path} has saved no checkpoint yet; the first comes after {settings.checkpoint_every:,} steps, "
            "at its end, or when it is stopped by Ctrl-C",
        )
    state = read_archive(run.checkpoint)
    env = training_env(settings.env, settings.seed)
    observed = stored_space(env.observation_space)
    buffer = IndexedReplayBuffer(
        settings.buffer_size,
        observed,
        env.action_space,
        "cpu",
        settings.n_envs,
        law=law_of(settings),
    )
    with fitting(run.checkpoint):
        buffer.load_state(state["session"]["buffer"])
    try:
        return buffer, vocabulary_of(env)
    except NoVocabularyError:
        return buffer, None
    finally:
        env.close()


def stored_space(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """The space of observations as Stable-Baselines3 stores them: a picture's channels come first."""
    if isinstance(space, spaces.Box) and is_image_space(space) and not is_image_space_channels_first(space):
        return VecTransposeImage.transpose_space(space)
    return space


def explain_slot(
    buffer: IndexedReplayBuffer, vocabulary: Vocabulary | None, ruleset: RuleSet, slot: int
) -> TransitionExplanation:
    """Why the transition in `slot` has its priority, and which of the rules fire on it; without rules, the former.

    Raises `SlotRangeError`, and `UngroundedError` for rules of another vocabulary, or without one.
    """
    stored = len(buffer.stored_rows()) * buffer.n_envs
    if not 0 <= slot < stored:
        raise SlotRangeError(
            f"found slot {slot}, expected 0 to {stored - 1}: the checkpoint holds {stored:,} transitions"
        )
    score, firings = _scored(buffer, vocabulary, ruleset, slot) if ruleset.rules else (0.0, ())
    steps, place = buffer.steps_at(slot, 0, 0)
    row, env = divmod(slot, buffer.n_envs)
    return TransitionExplanation(
        slot=slot,
        action=action_of(buffer, vocabulary, row, env),
        reward=float(buffer.rewards[row, env]),
        ended=bool(buffer.dones[row, env]),
        facts=facts_of(steps, place, vocabulary),
        law=buffer.index.explain([slot]).rows()[0],
        uniform=1 / len(buffer.index),
        largest_signal=buffer.index.stats().max_signal,
        score=score,
        firings=firings,
    )


def _scored(
    buffer: IndexedReplayBuffer, vocabulary: Vocabulary | None, ruleset: RuleSet, slot: int
) -> tuple[float, tuple[Firing, ...]]:
    if vocabulary is None:
        raise UngroundedError(
            "found rules, but no vocabulary for the environment of the run, expected one that grounds them: --vocab"
        )
    evaluator = Evaluator(ruleset.rules, vocabulary).requires_grad_(False)
    steps, place = buffer.steps_at(slot, evaluator.past, evaluator.future)
    return float(evaluator(steps)[place]), _firings(evaluator, vocabulary, steps, place)


def explain_row(trajectories: Trajectories, vocabulary: Vocabulary, ruleset: RuleSet, row: int) -> RowExplanation:
    """What a rule set says of one recorded transition. Raises `SlotRangeError` for a row that is not there."""
    if not 0 <= row < len(trajectories):
        raise SlotRangeError(
            f"found row {row}, expected 0 to {len(trajectories) - 1}: the data hold {len(trajectories):,}"
        )
    evaluator = Evaluator(ruleset.rules, vocabulary).requires_grad_(False)
    first = max(row - evaluator.past, 0)
    steps, place = trajectories.steps()[first : row + evaluator.future + 1], row - first
    taken = trajectories.actions[row]
    episode = int(trajectories.numbers[row])
    return RowExplanation(
        row=row,
        episode=episode,
        step=row - int(trajectories.starts[episode]),
        action=vocabulary.actions[int(taken)] if vocabulary.actions else str(taken.tolist()),
        reward=float(trajectories.rewards[row]),
        facts=facts_of(steps, place, vocabulary),
        score=float(evaluator(steps)[place]),
        firings=_firings(evaluator, vocabulary, steps, place),
    )


def _firings(evaluator: Evaluator, vocabulary: Vocabulary, steps: Steps, place: int) -> tuple[Firing, ...]:
    body, head = evaluator.truths(steps)
    contributions = evaluator.contributions(evaluator.firings(steps))
    return tuple(
        Firing(
            rule.name,
            rule.weight,
            float(body[place, j]),
            float(head[place, j]),
            float(contributions[place, j]),
            _literals(rule, vocabulary, steps, place),
        )
        for j, rule in enumerate(evaluator.rules)
    )


def _literals(rule: Rule, vocabulary: Vocabulary, steps: Steps, place: int) -> tuple[tuple[str, float], ...]:
    parts = conjuncts(rule.body)
    alone = [Rule(rule.name, part, rule.head) for part in parts]
    degrees, _ = reference_truths(alone, vocabulary, steps)
    return tuple((print_formula(part), float(degrees[place, i])) for i, part in enumerate(parts))


def action_of(buffer: IndexedReplayBuffer, vocabulary: Vocabulary | None, row: int, env: int) -> str:
    """The name of the action that was taken in a row of an environment; its numbers where nothing names it."""
    taken = buffer.actions[row, env]
    return vocabulary.actions[int(taken[0])] if vocabulary and vocabulary.actions else str(taken.tolist())


def facts_of(steps: Steps, place: int, vocabulary: Vocabulary | None) -> dict[str, float]:
    """The observation at a step: the name of each number, and the number."""
    values = steps.observations[place].tolist()
    names = vocabulary.columns(len(values)) if vocabulary else tuple(f"x{i}" for i in range(len(values)))
    return {name: round(value, 6) for name, value in zip(names, values, strict=True)}
